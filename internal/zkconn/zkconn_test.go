package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

func TestUseSharesOneSessionPerConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newFake(), newFake()
		s := zkconn.Use(one, config(time.Second))
		require.Same(t, s, zkconn.Use(one, config(time.Second)))
		require.NotSame(t, s, use(t, other, time.Second))
		s.Release()
		require.Same(t, s, zkconn.Use(one, config(time.Second)), "it has a user still")
		s.Release()
		s.Release()
		require.NotSame(t, s, use(t, one, time.Second), "it went with its last user")
	})
}

func TestASessionWithoutUsersAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Second))
		time.Sleep(10 * time.Second)
		s.Release()
		synctest.Wait()
		asked := conn.beats()
		require.NotZero(t, asked)
		time.Sleep(time.Hour)
		require.Equal(t, asked, conn.beats())
	})
}
