package lock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// A saboteur is an observer that does something at the first event of a kind.
type saboteur struct {
	mu   sync.Mutex
	kind recipes.EventKind // 0: none
	do   func(ctx context.Context, e recipes.Event)
}

func (s *saboteur) observe(ctx context.Context, e recipes.Event) {
	s.mu.Lock()
	now := e.Kind == s.kind
	if now {
		s.kind = 0
	}
	do := s.do
	s.mu.Unlock()
	if now {
		do(ctx, e)
	}
}

func (s *saboteur) arm(kind recipes.EventKind, do func(context.Context, recipes.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind, s.do = kind, do
}

const badLabel = "metrics: bad label"

// ends are how an observer keeps its caller from returning.
var ends = map[string]func(context.Context, recipes.Event){
	"panics": func(context.Context, recipes.Event) { panic(badLabel) },
	"ends":   func(context.Context, recipes.Event) { runtime.Goexit() },
}

// requireEnded runs f on a goroutine of its own, as net/http runs a handler. It requires
// that an observer ended f in the way of that name, and not a bug.
func requireEnded(t *testing.T, name string, f func()) {
	t.Helper()
	var panicked any
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f()
		returned = true
	}()
	<-done
	require.False(t, returned)
	if name == "panics" {
		require.Equal(t, badLabel, panicked)
	} else {
		require.Nil(t, panicked)
	}
}

// A sabotaged lock is one of each kind, with a saboteur.
type sabotaged struct {
	*saboteur
	*locktest.Bubble
	kind  locktest.Kind
	lock  recipes.InterProcessLock
	rival recipes.InterProcessLock // of another process
}

// forSabotaged runs a test in a bubble for each kind of lock.
func forSabotaged(t *testing.T, test func(t *testing.T, s *sabotaged)) {
	t.Helper()
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		s := &sabotaged{saboteur: new(saboteur), Bubble: b, kind: k}
		s.lock = k.MustMake(t, b.Ours, "/lock", recipes.WithObserver(s.observe))
		s.rival = k.MustMakeRival(t, b.Other, "/lock")
		test(t, s)
	})
}

// isFree checks that nobody holds the lock or waits for it, and that it is of use, to the
// same owner, too.
func (s *sabotaged) isFree(
	t *testing.T, ctx context.Context, //nolint:revive // t comes first in tests
) {
	t.Helper()
	require.False(t, s.lock.IsAcquiredInThisProcess())
	require.ErrorIs(t, s.lock.Release(ctx), recipes.ErrNotOwner)
	time.Sleep(time.Second)
	for _, node := range s.Cluster.Znodes() {
		require.NotContains(t, node, "_c_", "it blocks others")
	}
	for _, lock := range []recipes.InterProcessLock{s.rival, s.lock} {
		ok, err := lock.AcquireTimeout(ctx, time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, lock.Release(ctx))
	}
}

// uses are the ways to use a lock once, each of which calls inside while it is held.
var uses = map[string]func(
	ctx context.Context, lock recipes.InterProcessLock, inside func(),
){
	"its methods": func(
		ctx context.Context, lock recipes.InterProcessLock, inside func(),
	) {
		_ = lock.Acquire(ctx)
		inside()
		_ = lock.Release(ctx)
	},
	"Acquire": func(ctx context.Context, lock recipes.InterProcessLock, inside func()) {
		hold, _ := recipes.Acquire(ctx, lock)
		inside()
		_ = hold.Release(ctx)
	},
	"Do": func(ctx context.Context, lock recipes.InterProcessLock, inside func()) {
		_ = recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error {
			inside()
			return nil
		})
	},
}

// A panic at "queued" or "acquired" left the znode in the queue for as long as the
// session, and the owner's claim unsettled for ever. What an observer ends at "released"
// is released.
func TestAnObserverThatEndsAcquireLeavesNothing(t *testing.T) {
	for name, end := range ends {
		for _, kind := range []recipes.EventKind{
			recipes.EventQueued, recipes.EventAcquired, recipes.EventReleased,
		} {
			for way, use := range uses {
				t.Run(fmt.Sprint(way, " ", name, " at ", kind), func(t *testing.T) {
					forSabotaged(t, func(t *testing.T, s *sabotaged) {
						ctx, ran := locktest.Owner(t), false
						s.arm(kind, end)
						requireEnded(t, name, func() {
							use(ctx, s.lock, func() { ran = true })
						})
						require.Equal(t, kind == recipes.EventReleased, ran)
						s.isFree(t, ctx)
					})
				})
			}
		}
	}
}

// An observer that re-enters before it panics keeps what it has entered, until the owner
// releases that.
func TestAnObserverThatReentersBeforeItEndsAcquire(t *testing.T) {
	for name, end := range ends {
		locktest.Run(t, name, func(t *testing.T, s *locktest.Bubble) {
			var boom saboteur
			ctx, rival := locktest.Owner(t), s.Mutex(t, s.Other, "/lock")
			lock := s.Mutex(t, s.Ours, "/lock", recipes.WithObserver(boom.observe))
			boom.arm(recipes.EventAcquired, func(told context.Context, e recipes.Event) {
				require.NoError(t, lock.Acquire(told))
				end(told, e)
			})
			requireEnded(t, name, func() { _ = lock.Acquire(ctx) })
			time.Sleep(time.Minute)
			require.True(t, lock.IsOwned(ctx))
			require.NoError(t, lock.Hold(ctx).Err())
			locktest.RequireBusy(locktest.Owner(t), t, rival)
			require.NoError(t, lock.Release(ctx))
			require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
			locktest.Use(t, rival)
		})
	}
}

// The others of the same owner, who wait for that Acquire, go on.
func TestAnObserverThatEndsAcquireFreesItsOwner(t *testing.T) {
	for name, end := range ends {
		locktest.Run(t, name, func(t *testing.T, s *locktest.Bubble) {
			var boom saboteur
			ctx := locktest.Owner(t)
			lock := s.Mutex(t, s.Ours, "/lock", recipes.WithObserver(boom.observe))
			boom.arm(recipes.EventQueued, func(ctx context.Context, e recipes.Event) {
				time.Sleep(time.Second)
				end(ctx, e)
			})
			second := make(chan (<-chan error), 1)
			time.AfterFunc(time.Second/2, func() {
				second <- locktest.Start(func() error { return lock.Acquire(ctx) })
			})
			requireEnded(t, name, func() { _ = lock.Acquire(ctx) })
			require.NoError(t, <-<-second)
			require.NoError(t, lock.Release(ctx))
		})
	}
}

// Where the wait has failed all is settled before it is told.
func TestAnObserverThatEndsAFailedWait(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			forSabotaged(t, func(t *testing.T, s *sabotaged) {
				ctx, rival := locktest.Owner(t), locktest.Owner(t)
				require.NoError(t, s.rival.Acquire(rival))
				s.arm(recipes.EventTimedOut, end)
				requireEnded(t, name, func() {
					_, _ = s.lock.AcquireTimeout(ctx, time.Second)
				})
				s.arm(recipes.EventFailed, end)
				waiting, cancel := context.WithTimeoutCause(
					ctx, time.Second, locktest.ErrChangedMind,
				)
				defer cancel()
				requireEnded(t, name, func() { _ = s.lock.Acquire(waiting) })
				require.NoError(t, s.rival.Release(rival))
				s.isFree(t, ctx)
			})
		})
	}
}

// A loss is told on a goroutine of its own, which may end; the lock is none the worse.
func TestAnObserverThatEndsWhenALossIsTold(t *testing.T) {
	forSabotaged(t, func(t *testing.T, s *sabotaged) {
		ctx := locktest.Owner(t)
		require.NoError(t, s.lock.Acquire(ctx))
		s.arm(recipes.EventLost, ends["ends"])
		s.Cluster.ExpireSession(s.Ours.SessionID())
		time.Sleep(time.Second)
		require.ErrorIs(t, s.lock.Release(ctx), recipes.ErrLockLost)
		s.isFree(t, ctx)
	})
}

// No mutex is held while an observer is called: it may call any method of the lock.
func TestAnObserverMayCallTheLock(t *testing.T) {
	for _, kind := range []recipes.EventKind{
		recipes.EventQueued, recipes.EventAcquired, recipes.EventTimedOut,
		recipes.EventFailed,
		recipes.EventReleased, recipes.EventLost,
	} {
		locktest.Run(t, kind.String(), func(t *testing.T, s *locktest.Bubble) {
			var calls saboteur
			var lock *recipes.InterProcessMutex
			called, ctx := make(chan struct{}), locktest.Owner(t)
			lock = s.Mutex(t, s.Ours, "/lock", recipes.WithObserver(calls.observe))
			calls.arm(kind, func(told context.Context, e recipes.Event) {
				defer close(called)
				holds := kind == recipes.EventAcquired
				require.Equal(t, holds, lock.IsOwned(told))
				require.Equal(t, holds, lock.LockPath(told) != "")
				require.Equal(t, holds, lock.IsAcquiredInThisProcess())
				require.Equal(
					t, holds || kind == recipes.EventLost, lock.Hold(told) != nil,
				)
				lock.MakeRevocable(func() {})
				_, err := lock.Participants(context.WithoutCancel(told))
				require.NoError(t, err)
				_, err = lock.AcquireTimeout(locktest.Owner(t), 0)
				require.NoError(t, err)
				if holds {
					require.NoError(t, lock.Acquire(told))
					require.NoError(t, lock.Release(told))
					require.Equal(t, lock.Hold(told).Path(), e.Node)
				}
			})
			provoke(t, s, lock, ctx, kind)
			<-called
		})
	}
}

// provoke makes the lock tell a step.
func provoke(
	t *testing.T, s *locktest.Bubble, lock *recipes.InterProcessMutex,
	ctx context.Context, kind recipes.EventKind, //nolint:revive // t comes first in tests
) {
	t.Helper()
	switch kind {
	case recipes.EventTimedOut, recipes.EventFailed:
		rival, others := s.Mutex(t, s.Other, "/lock"), locktest.Owner(t)
		require.NoError(t, rival.Acquire(others))
		if kind == recipes.EventTimedOut {
			_, err := lock.AcquireTimeout(ctx, time.Second)
			require.NoError(t, err)
		} else {
			ctx, cancel := context.WithTimeoutCause(
				ctx, time.Second, locktest.ErrChangedMind,
			)
			defer cancel()
			require.ErrorIs(t, lock.Acquire(ctx), locktest.ErrChangedMind)
		}
		require.NoError(t, rival.Release(others))
		return
	}
	require.NoError(t, lock.Acquire(ctx))
	if kind == recipes.EventLost {
		s.Lose(t, lock.Hold(ctx))
		time.Sleep(time.Minute)
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
		return
	}
	require.NoError(t, lock.Release(ctx))
}

type callKey struct{}

// The ctx is that of the call that made the step, and the recipe is told by name.
func TestAnObserverIsToldTheCallAndTheRecipe(t *testing.T) {
	forSabotaged(t, func(t *testing.T, s *sabotaged) {
		var mu sync.Mutex
		var told []string
		note := func(ctx context.Context, e recipes.Event) {
			mu.Lock()
			defer mu.Unlock()
			call, _ := ctx.Value(callKey{}).(string)
			told = append(
				told, strings.Join([]string{e.Recipe, e.Kind.String(), call}, " "),
			)
			if e.Kind == recipes.EventLost || e.Kind == recipes.EventTimedOut {
				require.NoError(t, ctx.Err(), e.Kind)
			}
		}
		lock := s.kind.MustMake(t, s.Ours, "/lock", recipes.WithObserver(note))
		call := func(ctx context.Context, what string) context.Context {
			return context.WithValue(ctx, callKey{}, what)
		}
		ctx, rival := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, s.rival.Acquire(rival))
		_, err := lock.AcquireTimeout(call(ctx, "try"), time.Second)
		require.NoError(t, err)
		require.NoError(t, s.rival.Release(rival))
		require.NoError(t, lock.Acquire(call(ctx, "first")))
		require.NoError(t, lock.Release(call(ctx, "end")))
		within, cancel := context.WithCancel(call(ctx, "second"))
		require.NoError(t, lock.Acquire(within))
		cancel()
		s.Cluster.ExpireSession(s.Ours.SessionID())
		time.Sleep(time.Second)
		require.ErrorIs(t, lock.Release(call(ctx, "end")), recipes.ErrLockLost)
		// the loss may be found by Release, and is told on a goroutine of its own
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, want := range []string{
			"queued try", "timed out try", "queued first", "acquired first",
			"released end",
			"lost second",
		} {
			require.Contains(t, told, s.kind.Recipe+" "+want)
		}
		require.NotContains(t, told, s.kind.Recipe+" lost end")
	})
}

// Leases that were acquired before the observer panics at one of them are all given back.
func TestReturnAllGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		var boom saboteur
		s := locktest.NewSemaphore(
			t, locktest.ConnectThrough(
				t, cluster, "ours",
			), "/semaphore", 3, recipes.WithObserver(boom.observe))
		leases, err := s.AcquireN(t.Context(), 3)
		require.NoError(t, err)
		err = s.ReturnAll(t.Context(), []*recipes.Lease{leases[0], nil, leases[1], nil})
		require.ErrorContains(t, err, "release /semaphore: lease 2 is nil")
		require.ErrorContains(t, err, "lease 4 is nil")
		nodes, err := s.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 1)

		two, err := s.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		boom.arm(recipes.EventReleased, ends["panics"])
		requireEnded(t, "panics", func() {
			_ = s.ReturnAll(t.Context(), append(two, leases[2]))
		})
		nodes, err = s.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Empty(t, nodes)
		require.NoError(t, s.ReturnAll(t.Context(), leases), "they are released")
	})
}

// A member whose observer panics keeps none of the others.
func TestAMemberThatPanicsKeepsNoOther(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		for name, end := range ends {
			for _, kind := range []recipes.EventKind{
				recipes.EventQueued, recipes.EventAcquired, recipes.EventReleased,
			} {
				var boom saboteur
				ctx, b := locktest.Owner(t), s.Mutex(t, s.Ours, "/b")
				multi := recipes.NewInterProcessMultiLockOf(s.Lock, s.Mutex(
					t, s.Ours, "/c", recipes.WithObserver(boom.observe)), b)
				boom.arm(kind, end)
				requireEnded(t, name, func() {
					if multi.Acquire(ctx) == nil {
						_ = multi.Release(ctx)
					}
				})
				require.False(t, s.Lock.IsOwned(ctx), kind)
				require.False(t, b.IsOwned(ctx), kind)
				require.False(t, multi.IsAcquiredInThisProcess(), kind)
				time.Sleep(time.Second)
				for _, z := range s.Cluster.Znodes() {
					require.NotContains(t, z, "_c_", kind)
				}
			}
		}
	})
}

func TestObserver(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		var one, two locktest.Recorder
		a, b := p.Mutex(
			path, recipes.WithObserver(one.Observe),
		), locktest.SharedPeer(t).Mutex(path, recipes.WithObserver(two.Observe))
		ctx := locktest.Owner(t)
		p.Tap.Delay(10 * time.Millisecond)
		require.NoError(t, a.Acquire(ctx))
		p.Tap.Delay(0)
		require.NoError(t, a.Acquire(ctx))
		hold := a.Hold(ctx)
		ok, err := b.AcquireTimeout(t.Context(), 200*time.Millisecond)
		require.NoError(t, err)
		require.False(t, ok)
		cancelled, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		waiting := locktest.Start(func() error { return b.Acquire(cancelled) })
		// before that, a cancelled Acquire only fails
		locktest.Eventually(t, func() bool { return len(two.Kinds()) == 3 }, "not queued")
		cancel(why)
		require.ErrorIs(t, locktest.Within(t, waiting, "cancelled"), why)
		require.NoError(t, a.Release(ctx))
		require.NoError(t, a.Release(ctx))
		require.NoError(t, b.Acquire(ctx))
		require.NoError(t, p.Conn.Delete(b.LockPath(ctx), -1))
		two.Await(t, recipes.EventLost)
		require.ErrorIs(t, b.Release(ctx), recipes.ErrLockLost)

		require.Equal(t, []recipes.EventKind{
			recipes.EventQueued, recipes.EventAcquired, recipes.EventReleased,
		}, one.Kinds())
		require.Equal(t, []recipes.EventKind{
			recipes.EventQueued, recipes.EventTimedOut,
			recipes.EventQueued, recipes.EventFailed,
			recipes.EventQueued, recipes.EventAcquired, recipes.EventLost,
		}, two.Kinds())
		acquired := one.Await(t, recipes.EventAcquired)
		require.Equal(t, path, acquired.Path)
		require.Equal(t, hold.Path(), acquired.Node)
		require.Equal(t, hold.FencingToken(), acquired.Token)
		require.GreaterOrEqual(t, acquired.Elapsed, 20*time.Millisecond)
		require.Equal(t, 1, two.Await(t, recipes.EventQueued).Ahead)
		require.GreaterOrEqual(
			t, two.Await(t, recipes.EventTimedOut).Elapsed, 30*time.Millisecond,
		)
		require.ErrorIs(t, two.Await(t, recipes.EventFailed).Err, why)
		require.ErrorIs(t, two.Await(t, recipes.EventLost).Err, recipes.ErrLockLost)
		for _, kind := range append(two.Kinds(), one.Kinds()...) {
			require.NotEqual(t, "unknown", kind.String())
		}
	})
}
