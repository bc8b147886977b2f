package calls_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

var errEnough = errors.New("enough")

// owner counts its users.
type owner struct {
	users  atomic.Int32
	closed chan struct{}
}

func newOwner() *owner { return &owner{closed: make(chan struct{})} }

func (o *owner) Retain()                 { o.users.Add(1) }
func (o *owner) Release()                { o.users.Add(-1) }
func (o *owner) Closed() <-chan struct{} { return o.closed }

// HAZARDS E1: no call of the client takes a ctx, and a mute server can hold it up for
// ever.
func TestACallerLeavesAHangingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of, release := newOwner(), make(chan struct{})
		call := calls.Start(of, func() (string, error) {
			<-release
			return "late", errEnough
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
		defer cancel()
		began := time.Now()
		_, err := call.Wait(ctx)
		require.Equal(t, errEnough, outcome.Cancellation(err))
		require.Equal(t, began.Add(time.Second), time.Now())

		var followed string
		call.Then(of, func(value string, err error) {
			followed = fmt.Sprint(value, ": ", err)
		})
		require.EqualValues(t, 2, of.users.Load(), "a call under way is a user")
		require.False(t, call.Ended())
		close(release)
		<-call.Done()
		synctest.Wait()
		require.True(t, call.Ended())
		require.Equal(t, "late: enough", followed)
		require.Equal(t, errEnough, call.Err())
		require.Zero(t, of.users.Load(), "and leaves with its end")
	})
}

func TestWaitPrefersTheResult(t *testing.T) {
	of := newOwner()
	call := calls.Start(of, func() (int, error) { return 7, nil })
	<-call.Done()
	close(of.closed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // a select chooses at random
		value, err := call.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, value)
	}
}

func TestACloseEndsTheWait(t *testing.T) {
	of, release := newOwner(), make(chan struct{})
	defer close(release)
	close(of.closed)
	_, err := calls.Call(t.Context(), of, func() (none struct{}, err error) {
		<-release
		return none, nil
	})
	require.ErrorIs(t, err, outcome.ErrClosed)
}

// A call that ends its goroutine is over, and has failed: whoever waits is told.
func TestACallThatEndsItsGoroutine(t *testing.T) {
	of := newOwner()
	call := calls.Start(of, func() (string, error) {
		runtime.Goexit()
		return "", nil
	})
	_, err := call.Wait(t.Context())
	require.ErrorContains(t, err, "runtime.Goexit")
	require.True(t, outcome.Final(err))
}
