package zkconn_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// HAZARDS E1: no call of the client takes a ctx, and a mute server can hold it up for
// ever.
func TestACallerLeavesAHangingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Hour))
		release := make(chan struct{})
		call := zkconn.Start(s, func() (string, error) {
			<-release
			return "late", zk.ErrNoNode
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
		defer cancel()
		began := time.Now()
		_, err := call.Wait(ctx)
		require.Equal(t, errEnough, outcome.Cancellation(err))
		require.Equal(t, began.Add(time.Second), time.Now())

		var followed string
		call.Then(func(value string, err error) {
			followed = fmt.Sprint(value, ": ", err)
		})
		s.Release()
		require.Same(t, s, zkconn.Use(conn, config(time.Hour)),
			"a call under way is a user")
		s.Release()
		close(release)
		<-call.Done()
		synctest.Wait()
		require.Equal(t, "late: zk: node does not exist", followed)
		require.ErrorIs(t, call.Err(), zk.ErrNoNode)
		require.NotSame(t, s, use(t, conn, time.Hour), "and leaves with its end")
	})
}

func TestWaitPrefersTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour)
		call := zkconn.Start(s, func() (int, error) { return 7, nil })
		<-call.Done()
		s.ConnClosed()
		for range 100 { // a select chooses at random
			value, err := call.Wait(cancelled(t, errEnough))
			require.NoError(t, err)
			require.Equal(t, 7, value)
		}
	})
}
