package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// requireBusy checks that an error says where the wait stood, in its text and in fields.
func requireBusy(t *testing.T, err error) *recipes.BusyError {
	t.Helper()
	require.ErrorIs(t, err, recipes.ErrBusy)
	require.NotErrorIs(t, err, recipes.ErrUnavailable)
	var busy *recipes.BusyError
	require.ErrorAs(t, err, &busy)
	require.ErrorIs(t, busy, recipes.ErrBusy)
	require.ErrorContains(t, busy, busy.Path+" is busy")
	if at := "acquire " + busy.Path + ": "; strings.Contains(err.Error(), "acquire ") {
		require.ErrorContains(t, err, at)
	}
	if busy.Behind != "" {
		at := fmt.Sprintf("%d ahead, behind %s", busy.Ahead, busy.Behind)
		require.ErrorContains(t, err, at)
		require.ErrorContains(t, busy, at)
		require.True(t, strings.HasPrefix(busy.Behind, busy.Path+"/"))
	}
	return busy
}

// waysToWait are all ways to wait for a lock that may end before it is held. Their errors
// match cause, unless that is nil: then a limit has ended the wait.
var waysToWait = map[string]func(
	ctx context.Context, r rivalry, end func(cause error),
) (cause, err error){
	"its own method": func(
		ctx context.Context, r rivalry, end func(error),
	) (error, error) {
		time.AfterFunc(time.Second, func() { end(locktest.ErrChangedMind) })
		return locktest.ErrChangedMind, r.wanted.Acquire(ctx)
	},
	"AcquireTimeout, cancelled": func(
		ctx context.Context, r rivalry, end func(error),
	) (error, error) {
		time.AfterFunc(time.Second, func() { end(locktest.ErrChangedMind) })
		_, err := r.wanted.AcquireTimeout(ctx, time.Minute)
		return locktest.ErrChangedMind, err
	},
	"Acquire, cancelled": func(
		ctx context.Context, r rivalry, end func(error),
	) (error, error) {
		time.AfterFunc(time.Second, func() { end(locktest.ErrChangedMind) })
		_, err := recipes.Acquire(ctx, r.wanted)
		return locktest.ErrChangedMind, err
	},
	"Acquire, cancelled within its limit": func(
		ctx context.Context, r rivalry, end func(error),
	) (error, error) {
		time.AfterFunc(time.Second, func() { end(locktest.ErrChangedMind) })
		_, err := recipes.Acquire(ctx, r.wanted, recipes.WaitAtMost(time.Minute))
		return locktest.ErrChangedMind, err
	},
	"Acquire, by its limit": func(
		ctx context.Context, r rivalry, _ func(error),
	) (error, error) {
		_, err := recipes.Acquire(ctx, r.wanted, recipes.WaitAtMost(time.Second))
		return nil, err
	},
	"a single attempt": func(
		ctx context.Context, r rivalry, _ func(error),
	) (error, error) {
		return nil, recipes.Do(ctx, r.wanted, locktest.Nothing, recipes.WaitAtMost(0))
	},
}

// Each wait that ctx or a limit has ended says that others were ahead, or that nobody
// knows, and matches ctx's cause.
func TestWhatEndedAWait(t *testing.T) {
	for way, wait := range waysToWait {
		t.Run(way, func(t *testing.T) {
			forEveryRivalry(t, func(t *testing.T, r rivalry) {
				ctx, end := context.WithCancelCause(r.ctx)
				defer end(nil)
				cause, err := wait(ctx, r, end)
				if cause != nil {
					require.ErrorIs(t, err, cause)
				}
				busy := requireBusy(t, err)
				require.Positive(t, busy.Ahead)

				ctx, end = context.WithCancelCause(r.ctx)
				defer end(nil)
				r.ours.Cut()
				time.Sleep(5 * time.Second)
				cause, err = wait(ctx, r, end)
				if cause != nil {
					require.ErrorIs(t, err, cause)
				}
				require.ErrorIs(t, err, recipes.ErrUnavailable)
				require.NotErrorIs(t, err, recipes.ErrBusy)
				require.False(t, errors.As(err, new(*recipes.BusyError)))
				r.ours.Heal()
			})
		})
	}
}

// A ctx that was done before leaves nothing known.
func TestACtxThatIsDoneBeforeTheWait(t *testing.T) {
	forEveryRivalry(t, func(t *testing.T, r rivalry) {
		ctx, end := context.WithCancelCause(r.ctx)
		end(locktest.ErrChangedMind)
		for way, wait := range waysToWait {
			_, err := wait(ctx, r, end)
			require.ErrorIs(t, err, locktest.ErrChangedMind, way)
			require.ErrorIs(t, err, recipes.ErrUnavailable, way)
			require.NotErrorIs(t, err, recipes.ErrBusy, way)
		}
	})
}

// The BusyError is of the lock that was waited for, also where the ctx was cancelled for
// another one, and where an outage leaves open whether this one is busy.
func TestTheBusyErrorOfAnotherLock(t *testing.T) {
	forEveryRivalry(t, func(t *testing.T, r rivalry) {
		other := fmt.Errorf("a worker: %w", &recipes.BusyError{Path: "/other", Ahead: 7})
		acquire := func() (found *recipes.BusyError) {
			ctx, end := context.WithCancelCause(r.ctx)
			time.AfterFunc(time.Second, func() { end(other) })
			held, err := r.wanted.AcquireTimeout(ctx, time.Minute)
			require.False(t, held)
			require.ErrorIs(t, err, other)
			require.ErrorAs(t, err, &found)
			held, err = r.wanted.AcquireTimeout(ctx, time.Minute)
			require.False(t, held)
			require.ErrorIs(t, err, other, "ctx was done before")
			return found
		}
		require.NotEqual(t, "/other", acquire().Path)
		r.ours.Cut()
		time.Sleep(5 * time.Second)
		require.Equal(t, "/other", acquire().Path, "the ctx's cause, as it is")
		r.ours.Heal()
	})
}

// What an observer is told of a wait matches what its caller is told.
func TestTheEventOfAWaitThatEndedBusy(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		rival := k.MustMakeRival(t, b.Other, "/lock")
		require.NoError(t, rival.Acquire(locktest.Owner(t)))
		var failed error
		lock := k.MustMake(t, b.Ours, "/lock", recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventFailed {
					failed = e.Err
				}
			}))
		ctx, cancel := context.WithTimeout(locktest.Owner(t), time.Second)
		defer cancel()
		require.Error(t, lock.Acquire(ctx))
		require.ErrorIs(t, failed, context.DeadlineExceeded)
		_ = requireBusy(t, failed)
	})
}

// An owner that waits for itself, on another goroutine, waits as everybody does.
func TestAnOwnerThatIsBusyElsewhere(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		holder, owner := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, b.Mutex(t, b.Other, "/lock").Acquire(holder))
		first, stop := context.WithCancel(owner)
		defer stop()
		go func() { _ = b.Lock.Acquire(first) }()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(owner, time.Second)
		defer cancel()
		err := b.Lock.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, &recipes.BusyError{Path: "/lock"}, requireBusy(t, err))
		held, err := b.Lock.AcquireTimeout(owner, 0)
		require.NoError(t, err)
		require.False(t, held)
	})
}

// The waits of elections and of semaphores end alike.
func TestWhatEndedTheWaitOfAnElectionOrForLeases(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		rival := locktest.NewLatch(t, b.Other, "/latch")
		_, err := rival.Await(t.Context())
		require.NoError(t, err)
		latch := locktest.NewLatch(t, b.Ours, "/latch")
		require.NoError(t, b.Mutex(t, b.Other, "/selector").Acquire(locktest.Owner(t)))
		selector, err := recipes.NewLeaderSelector(b.Ours, "/selector")
		require.NoError(t, err)
		leases := locktest.NewSemaphore(t, b.Ours, "/leases", 3)
		_, err = leases.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		require.NoError(t, recipes.SetSharedCount(t.Context(), b.Ours, "/count", 1))
		shared := locktest.NewSharedSemaphore(t, b.Ours, "/shared", "/count")
		for path, c := range map[string]struct {
			wait  func(ctx context.Context) error
			ahead int
		}{
			"/latch": {func(ctx context.Context) error {
				_, err := latch.Await(ctx)
				return err
			}, 1},
			"/selector": {func(ctx context.Context) error {
				return selector.Run(ctx, locktest.Nothing)
			}, 1},
			"/leases": {func(ctx context.Context) error {
				_, err := leases.AcquireTimeout(ctx, 2, time.Minute)
				return err
			}, 2},
			"/shared": {func(ctx context.Context) error {
				_, err := shared.AcquireN(ctx, 2)
				return err
			}, 0},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := c.wait(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, path)
			busy := requireBusy(t, err)
			require.Equal(t, path, busy.Path)
			require.Equal(t, c.ahead, busy.Ahead, path)
		}
	})
}

// A single attempt of a multi lock that loses one member while it tries another starts
// over. If its second is over by then, it is busy at the one that it has lost.
func TestAMemberThatIsLostDuringAnAttempt(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		first := b.Mutex(t, b.Ours, "/a")
		second := b.Mutex(t, b.Ours, "/b", recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired {
					for _, child := range locktest.Children(t, b.Other, "/a") {
						require.NoError(t, b.Other.Delete("/a/"+child, -1))
					}
					time.Sleep(time.Second) // it is told
				}
			}))
		multi := recipes.NewInterProcessMultiLockOf(first, second)
		err := recipes.Do(t.Context(), multi, locktest.Nothing, recipes.WaitAtMost(0))
		require.Equal(t, "/a", requireBusy(t, err).Path)
		require.False(t, first.IsAcquiredInThisProcess(), "it is given back")
		held, err := multi.AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, held)
	})
}
