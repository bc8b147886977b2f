package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

func TestACallUnderWayIsAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Hour))
		release := make(chan struct{})
		call := calls.Start(s, func() (none struct{}, err error) {
			<-release
			return none, nil
		})
		s.Release()
		require.Same(t, s, zkconn.Use(conn, config(time.Hour)))
		s.Release()
		close(release)
		<-call.Done()
		synctest.Wait()
		require.NotSame(t, s, use(t, conn, time.Hour), "and leaves with its end")
	})
}
