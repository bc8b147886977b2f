package lock_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestReentryByGoroutine(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock := p.Mutex(path)
		ctx := t.Context()
		for range 3 {
			require.NoError(t, lock.Acquire(ctx))
		}
		ok, err := lock.AcquireTimeout(ctx, 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.Len(t, p.Children(path), 1, "a re-entry made a znode")
		for range 3 {
			require.NoError(t, lock.Release(ctx))
			require.True(t, lock.IsOwned(ctx))
		}
		require.NoError(t, lock.Release(ctx))
		require.False(t, lock.IsOwned(ctx))
		require.Empty(t, p.Children(path))
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
	})
}

func TestReentryByContext(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		lock := locktest.SharedPeer(t).Mutex(zkserver.Path(t))
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		type key struct{}
		derived, cancel := context.WithCancel(context.WithValue(ctx, key{}, "value"))
		defer cancel()
		require.NoError(t, locktest.Within(
			t, locktest.Start(func() error { return lock.Acquire(derived) }),
			"re-entry on another goroutine",
		))
		require.NoError(t, locktest.Within(
			t, locktest.Start(func() error { return lock.Release(derived) }),
			"release on another goroutine",
		))
		require.True(t, lock.IsOwned(ctx))

		require.False(
			t, lock.IsOwned(t.Context()),
			"the goroutine is not the owner that its ctx had carried",
		)
		require.ErrorIs(t, lock.Release(t.Context()), recipes.ErrNotOwner)
		require.ErrorIs(
			t, lock.Release(recipes.WithOwner(ctx)), recipes.ErrNotOwner,
			"an owner within an owner is another one",
		)
		require.NoError(t, lock.Release(ctx))
	})
}

func TestOneOwnerOnTwoGoroutinesAtOnce(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		other, lock := locktest.SharedPeer(t).Mutex(path), p.Mutex(path)
		require.NoError(t, other.Acquire(t.Context()))
		ctx := locktest.Owner(t)
		one := locktest.Start(func() error { return lock.Acquire(ctx) })
		p.AwaitChildren(path, 2)
		two := locktest.Start(func() error { return lock.Acquire(ctx) })
		impatient, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, lock.Acquire(impatient), context.DeadlineExceeded)
		require.NoError(t, other.Release(t.Context()))
		require.NoError(t, locktest.Within(t, one, "first acquire"))
		require.NoError(t, locktest.Within(t, two, "second acquire, a re-entry"))
		require.Len(t, p.Children(path), 1)
		require.NoError(t, lock.Release(ctx))
		require.NoError(t, lock.Release(ctx))
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
	})
}

func TestGoroutinesOnOneValueExcludeEachOther(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock := p.Mutex(path)
		require.NoError(t, lock.Acquire(t.Context()))
		ok, err := lock.AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, ok)

		require.ErrorIs(t, locktest.Within(
			t, locktest.Start(func() error { return lock.Release(t.Context()) }),
			"release",
		), recipes.ErrNotOwner)
		got := make(chan struct{})
		done := locktest.Start(func() error {
			if err := lock.Acquire(t.Context()); err != nil {
				return err
			}
			close(got)
			return lock.Release(t.Context())
		})
		p.AwaitChildren(path, 2)
		select {
		case <-got:
			t.Fatal("two goroutines hold the lock")
		default:
		}
		require.NoError(t, lock.Release(t.Context()))
		require.NoError(t, locktest.Within(t, done, "the other goroutine's turn"))
	})
}

// Two goroutines were inside at once by a ctx that had outlived its Do, or its hold.
func TestACtxThatOutlivesItsHoldNamesNobody(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		if k.Recipe == "read lock" {
			return // readers share
		}
		lock := k.MustMake(t, b.Ours, "/lock")
		var kept context.Context
		require.NoError(t, recipes.Do(t.Context(), lock, func(
			ctx context.Context, _ *recipes.Hold,
		) error {
			kept = context.WithoutCancel(ctx)
			return nil
		}))
		require.EqualValues(t, 1, inside(kept, t, lock), "of Do")
		hold := locktest.Acquire(t.Context(), t, lock)
		kept = context.WithoutCancel(hold.Context(t.Context()))
		require.NoError(t, hold.Release(t.Context()))
		require.EqualValues(t, 1, inside(kept, t, lock), "of Hold.Context")
		hold = locktest.Acquire(t.Context(), t, lock)
		kept = context.WithoutCancel(hold.Context(t.Context()))
		b.Lose(t, hold)
		if k.IsReentrant() {
			err := lock.Acquire(kept)
			require.ErrorIs(t, err, recipes.ErrLockLost, "it is held, lost")
		}
		require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrLockLost)
		require.EqualValues(t, 1, inside(kept, t, lock), "of a lost hold")
	})
}

// Whom a ctx names it goes on to name while that owner holds anything of the lock: the
// other side, a member, or what was re-entered.
func TestACtxNamesItsOwnerWhileThatHoldsAnything(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		rw := locktest.NewReadWriteLock(t, b.Ours, "/rw")
		x := b.Mutex(t, b.Ours, "/x")
		multi := recipes.NewInterProcessMultiLockOf(b.Lock, x)
		for name, c := range map[string]struct {
			lock recipes.InterProcessLock
			also interface { // what its owner acquires beside it, and keeps
				recipes.InterProcessLock
				IsOwned(ctx context.Context) bool
			}
		}{
			"a re-entry":    {b.Lock, b.Lock},
			"a downgrade":   {rw.WriteLock(), rw.ReadLock()},
			"a member":      {multi, x},
			"of two, other": {multi, b.Lock},
		} {
			hold := locktest.Acquire(t.Context(), t, c.lock)
			kept := context.WithoutCancel(hold.Context(t.Context()))
			require.NoError(t, c.also.Acquire(kept), name)
			require.NoError(t, hold.Release(t.Context()), name)
			require.True(t, c.also.IsOwned(kept), name)
			require.EqualValues(t, 5, inside(kept, t, c.also), name)
			require.NoError(t, c.also.Release(kept), name)
			require.False(t, c.also.IsOwned(kept), name)
			if c.lock != recipes.InterProcessLock(rw.WriteLock()) {
				require.EqualValues(t, 1, inside(kept, t, c.also), name)
			}
		}
	})
}

// An inner function that releases explicitly and by a defer freed the lock under the Do
// around it.
func TestADoubleReleaseLeavesTheOuterHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		theirs := b.Mutex(t, b.Other, "/lock")
		require.NoError(t, recipes.Do(t.Context(), b.Lock, func(
			ctx context.Context, outer *recipes.Hold,
		) error {
			inner := locktest.Acquire(ctx, t, b.Lock)
			require.NoError(t, inner.Release(ctx))
			require.ErrorIs(t, inner.Release(ctx), recipes.ErrNotOwner)
			locktest.RequireBusy(t.Context(), t, theirs)
			require.NoError(t, outer.Err())
			return nil
		}))
		require.False(t, b.Lock.IsAcquiredInThisProcess())
	})
}

// Who hears of the loss releases at once: the ctx tells of the loss, not of the release.
func TestTheCauseOfALossIsNotTheRelease(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for range 300 {
			hold := locktest.Acquire(t.Context(), t, b.Lock)
			ctx := hold.Context(t.Context())
			b.Lose(t, hold)
			require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrLockLost)
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), recipes.ErrLockLost)
		}
	})
}

// An observer that panics: what it was told of is given back, and so is what others
// found of it.
func TestTheCtxOfAHoldThatWasGivenBackEnds(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var m *recipes.InterProcessSemaphoreMutex
		var found context.Context
		m = locktest.NewSemaphoreMutex(t, b.Ours, "/m",
			recipes.WithObserver(func(ctx context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired {
					found = m.Hold(ctx).Context(t.Context())
					panic("observer")
				}
			}))
		require.Panics(t, func() { _ = m.Acquire(t.Context()) })
		require.Nil(t, m.Hold(t.Context()))
		require.ErrorIs(t, context.Cause(found), recipes.ErrNotOwner)
	})
}

// A worker that locks once for each job, and a job's ctx that outlives its Do: both were
// inside at once, as the goroutine of the worker is an owner again.
func TestAKeptCtxIsNotRevivedByItsGoroutine(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var kept context.Context
		require.NoError(t, recipes.Do(t.Context(), b.Lock, func(
			ctx context.Context, _ *recipes.Hold,
		) error {
			kept = context.WithoutCancel(ctx)
			return nil
		}))
		require.NoError(t, recipes.Do(t.Context(), b.Lock, func(
			context.Context, *recipes.Hold,
		) error {
			var held bool
			require.NoError(t, <-locktest.Start(func() (err error) {
				held, err = b.Lock.AcquireTimeout(kept, time.Second)
				return err
			}))
			require.False(t, held, "another goroutine is inside, too")
			return nil
		}))
	})
}

// Nor by an owner of WithOwner that the kept ctx itself does not carry.
func TestAKeptCtxIsNotRevivedByItsOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		hold := locktest.Acquire(ctx, t, b.Lock)
		kept := context.WithoutCancel(hold.Context(t.Context()))
		require.NoError(t, hold.Release(ctx))
		require.NoError(t, b.Lock.Acquire(ctx))
		held, err := b.Lock.AcquireTimeout(kept, time.Second)
		require.NoError(t, err)
		require.False(t, held, "both are inside")
		late := context.WithoutCancel(hold.Context(t.Context()))
		held, err = b.Lock.AcquireTimeout(late, time.Second)
		require.NoError(t, err)
		require.False(t, held, "a ctx of an ended hold")
	})
}

// Nor by a multi lock of the same goroutine which has the lock anew, beside another one
// that the goroutine has had for longer.
func TestAKeptCtxIsNotRevivedByAMultiLock(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		if k.Recipe == "read lock" {
			return // readers share
		}
		long, lock := b.Mutex(t, b.Ours, "/long"), k.MustMake(t, b.Ours, "/lock")
		multi := recipes.NewInterProcessMultiLockOf(lock, long)
		require.NoError(t, long.Acquire(t.Context()))
		keep := func(of recipes.InterProcessLock) (kept context.Context) {
			require.NoError(t, recipes.Do(t.Context(), of, func(
				ctx context.Context, _ *recipes.Hold,
			) error {
				kept = context.WithoutCancel(ctx)
				return nil
			}))
			return kept
		}
		kept := keep(lock)
		require.NoError(t, recipes.Do(t.Context(), multi, func(
			within context.Context, hold *recipes.Hold,
		) error {
			if k.IsReentrant() {
				require.NoError(t, lock.Acquire(within))
				require.NoError(t, lock.Release(within))
			}
			var held bool
			require.NoError(t, <-locktest.Start(func() (err error) {
				held, err = lock.AcquireTimeout(kept, time.Second)
				return err
			}))
			require.False(t, held, "another goroutine is inside, too")
			return hold.Err()
		}))
		require.NoError(t, long.Release(t.Context()))
	})
}

// Nor by an acquisition that has failed.
func TestAKeptCtxIsNotKeptAliveByAFailure(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock, x := k.MustMake(t, b.Ours, "/lock"), b.Mutex(t, b.Ours, "/x")
		hold := locktest.Acquire(
			t.Context(), t, recipes.NewInterProcessMultiLockOf(lock, x))
		kept := context.WithoutCancel(hold.Context(t.Context()))
		require.NoError(t, x.Acquire(kept))
		require.NoError(t, hold.Release(t.Context()))
		rival := locktest.Acquire(t.Context(), t, k.MustMakeRival(t, b.Other, "/lock"))
		held, err := lock.AcquireTimeout(kept, time.Second)
		require.NoError(t, err)
		require.False(t, held)
		require.NoError(t, x.Release(kept))
		require.EqualValues(t, 1, inside(kept, t, x))
		require.NoError(t, rival.Release(t.Context()))
	})
}

// Nor does one that has failed revive it for what its owner has acquired anew: by the
// ctx, others were inside with that owner.
func TestAKeptCtxIsNotRevivedByAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		anew, fails int // of a read lock, its write lock, and a semaphore mutex
		lost        bool
		as          error // nil: it is busy
	}{
		"an upgrade":  {0, 1, false, recipes.ErrUpgrade},
		"a lost hold": {1, 1, true, recipes.ErrLockLost},
		"a busy lock": {2, 2, false, nil},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			rw := locktest.NewReadWriteLock(t, b.Ours, "/rw")
			m, owner := locktest.NewSemaphoreMutex(t, b.Ours, "/m"), locktest.Owner(t)
			locks := []recipes.InterProcessLock{rw.ReadLock(), rw.WriteLock(), m}
			hold := locktest.Acquire(owner, t,
				recipes.NewInterProcessMultiLockOf(b.Lock, locks[c.anew]))
			kept := context.WithoutCancel(hold.Context(t.Context()))
			require.NoError(t, b.Lock.Acquire(kept))
			require.NoError(t, hold.Release(owner))
			anew := recipes.NewInterProcessMultiLockOf(locks[c.anew])
			hold = locktest.Acquire(owner, t, anew)
			if c.lost {
				b.Lose(t, hold)
			}
			ok, err := locks[c.fails].AcquireTimeout(kept, 0)
			require.False(t, ok)
			require.ErrorIs(t, err, c.as)
			require.NoError(t, b.Lock.Release(kept))
			require.Nil(t, anew.Hold(kept), "it names the owner again")
			require.ErrorIs(t, anew.Release(kept), recipes.ErrNotOwner)
		})
	}
}

// The owner of each Acquire, too, is told that it would wait for itself in its observer.
func TestAnObserverThatAcquiresTheLockAgain(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var lock *recipes.InterProcessMutex
		var within error
		lock = b.Mutex(t, b.Ours, "/lock", recipes.WithObserver(func(
			ctx context.Context, e recipes.Event,
		) {
			if e.Kind == recipes.EventQueued && within == nil {
				_, within = recipes.Acquire(ctx, lock, recipes.WaitAtMost(time.Minute))
			}
		}))
		hold := locktest.Acquire(t.Context(), t, lock)
		require.ErrorContains(t, within, "would wait for itself")
		require.NoError(t, hold.Release(t.Context()))
	})
}

// So is one that acquires the other side of a read/write lock: both waited forever.
func TestAnObserverThatAcquiresTheOtherSide(t *testing.T) {
	sides := func(rw *recipes.InterProcessReadWriteLock) []recipes.InterProcessLock {
		return []recipes.InterProcessLock{rw.ReadLock(), rw.WriteLock()}
	}
	for side, name := range []string{"read", "write"} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var rw *recipes.InterProcessReadWriteLock
			var within error
			rw = locktest.NewReadWriteLock(t, b.Ours, "/rw", recipes.WithObserver(func(
				ctx context.Context, e recipes.Event,
			) {
				if e.Kind == recipes.EventQueued && within == nil {
					within = recipes.Do(ctx, sides(rw)[1-side], locktest.Nothing,
						recipes.WaitAtMost(time.Minute))
				}
			}))
			hold := locktest.Acquire(t.Context(), t, sides(rw)[side])
			require.ErrorContains(t, within, "would wait for itself")
			require.NoError(t, hold.Release(t.Context()))
		})
	}
}

// An observer in a multi lock's Acquire may re-enter the members before, as in Do. It
// waited for the new owner, which waited for it.
func TestAnObserverInAMultiLockReentersItsMembers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		within := errors.New("not called")
		x := b.Mutex(t, b.Ours, "/x", recipes.WithObserver(func(
			ctx context.Context, e recipes.Event,
		) {
			if e.Kind == recipes.EventQueued {
				within = recipes.Do(
					ctx, b.Lock, locktest.Nothing, recipes.WaitAtMost(time.Minute))
			}
		}))
		hold := locktest.Acquire(
			t.Context(), t, recipes.NewInterProcessMultiLockOf(b.Lock, x))
		require.NoError(t, within)
		require.NoError(t, hold.Release(t.Context()))
	})
}

// What was acquired by a ctx can be released by it, whatever else its owner has released
// and acquired meanwhile.
func TestWhatWasAcquiredByACtxIsReleasedByIt(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		x, owner := b.Mutex(t, b.Ours, "/x"), locktest.Owner(t)
		hold := locktest.Acquire(owner, t, recipes.NewInterProcessMultiLockOf(b.Lock, x))
		kept := context.WithoutCancel(hold.Context(t.Context()))
		require.NoError(t, x.Acquire(owner))
		require.NoError(t, hold.Release(owner))
		require.NoError(t, b.Lock.Acquire(owner)) // while it holds the other on
		require.NoError(t, b.Lock.Acquire(kept))
		require.NoError(t, x.Release(owner))
		require.NoError(t, b.Lock.Release(kept))
		require.NoError(t, b.Lock.Release(owner))
		require.False(t, b.Lock.IsAcquiredInThisProcess())
	})
}

// A nosyCtx asks its hold.
type nosyCtx struct {
	context.Context
	hold *recipes.Hold
}

func (c nosyCtx) Value(key any) any {
	_, _ = c.hold.Multi()
	return c.Context.Value(key)
}

// A parent is asked when its child is cancelled, and may use the hold.
func TestAParentThatAsksItsHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		hold := locktest.Acquire(t.Context(), t, b.Lock)
		require.NoError(t, hold.Release(t.Context()))
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		require.Error(t, hold.Context(nosyCtx{parent, hold}).Err())
	})
}

// A parent that panics when it is asked at the release: the lock was held, by nobody, for
// as long as the session.
func TestAParentThatPanicsAtTheRelease(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock, broken := k.MustMake(t, b.Ours, "/lock"), false
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		multi := recipes.NewInterProcessMultiLockOf(b.Mutex(t, b.Ours, "/x"), lock)
		for _, l := range []recipes.InterProcessLock{lock, multi} {
			hold := locktest.Acquire(t.Context(), t, l)
			first := hold.Context(t.Context())
			_ = hold.Context(locktest.BrokenCtx{Context: parent, Broken: &broken})
			last := hold.Context(t.Context())
			broken = true
			require.Panics(t, func() { _ = hold.Release(t.Context()) })
			broken = false
			require.ErrorIs(t, context.Cause(first), recipes.ErrNotOwner)
			require.ErrorIs(t, context.Cause(last), recipes.ErrNotOwner)
			time.Sleep(time.Second)
			require.NoError(t, recipes.Do(t.Context(), multi, locktest.Nothing,
				recipes.WaitAtMost(0)))
		}
	})
}

// A slowCtx is one whose Value does not return before it may.
type slowCtx struct {
	context.Context
	may <-chan struct{} // nil: at once
}

func (c *slowCtx) Value(key any) any {
	if c.may != nil {
		<-c.may
	}
	return c.Context.Value(key)
}

// While a member was being released, which waited for a parent, the multi lock's release
// did not end the other ctxs: work under them went on beside the next owner's.
func TestAReleaseEndsTheCtxsThatAnotherIsEnding(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		x := b.Mutex(t, b.Ours, "/x")
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		slow := &slowCtx{Context: parent}
		hold := locktest.Acquire(
			t.Context(), t, recipes.NewInterProcessMultiLockOf(x, b.Lock))
		work := hold.Context(t.Context())
		member := x.Hold(work)
		_ = hold.Context(slow)
		may := make(chan struct{})
		slow.may = may
		released := locktest.Start(func() error { return member.Release(t.Context()) })
		synctest.Wait()
		require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrNotOwner)
		cause := context.Cause(work)
		close(may)
		require.NoError(t, <-released)
		require.ErrorIs(t, cause, recipes.ErrNotOwner)
	})
}

// Two acquisitions of one owner are released at once. While the first release waited for
// a parent, the second one deleted the znode: work under the first one's ctxs went on
// beside the next owner's.
func TestTheLastReleaseWaitsForTheCtxsOfTheOthers(t *testing.T) {
	for name, of := range map[string]func(
		lock recipes.InterProcessLock,
	) recipes.InterProcessLock{
		"a re-entry": func(lock recipes.InterProcessLock) recipes.InterProcessLock {
			return lock
		},
		"a member": func(lock recipes.InterProcessLock) recipes.InterProcessLock {
			return recipes.NewInterProcessMultiLockOf(lock)
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			parent, cancel := context.WithCancel(t.Context())
			defer cancel()
			slow, owner := &slowCtx{Context: parent}, locktest.Owner(t)
			last := locktest.Acquire(owner, t, b.Lock)
			hold := locktest.Acquire(owner, t, of(b.Lock))
			work := hold.Context(t.Context())
			_ = hold.Context(slow)
			may := make(chan struct{})
			slow.may = may
			first := b.Lock.Hold(owner) // the hold, or its member
			released := locktest.Start(func() error { return first.Release(t.Context()) })
			synctest.Wait()
			require.Same(t, last, b.Lock.Hold(owner))
			require.NoError(t, last.Release(t.Context()))
			next := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
			require.False(t, next.Holds() && work.Err() == nil, "both are inside")
			require.Nil(t, b.Lock.Hold(owner))
			require.ErrorIs(t, b.Lock.Release(owner), recipes.ErrNotOwner)
			close(may)
			require.NoError(t, <-released)
			require.ErrorIs(t, context.Cause(work), recipes.ErrNotOwner)
			next.Entered()
			next.Leave()
		})
	}
}

// Who sees that a read lock's ctx has ended may acquire the write lock, although the
// release goes on.
func TestAReleaseThatGoesOnIsNoUpgrade(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		rw := locktest.NewReadWriteLock(t, b.Ours, "/rw")
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		slow, owner := &slowCtx{Context: parent}, locktest.Owner(t)
		hold := locktest.Acquire(owner, t, rw.ReadLock())
		_ = hold.Context(slow)
		work := hold.Context(t.Context())
		may := make(chan struct{})
		slow.may = may
		released := locktest.Start(func() error { return hold.Release(t.Context()) })
		<-work.Done()
		acquired := locktest.Start(func() error { return rw.WriteLock().Acquire(owner) })
		time.Sleep(time.Second)
		require.Empty(t, acquired, "the reader's znode is there")
		close(may)
		require.NoError(t, <-released)
		require.NoError(t, <-acquired)
		require.NoError(t, rw.WriteLock().Release(owner))
	})
}

// A hold that is kept when it was released, for its token perhaps, keeps no ctx.
func TestHeapOfReleasedHolds(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		type key struct{}
		const times, size = 100, 100_000
		kept := make([]*recipes.Hold, 0, times)
		before := locktest.Heap()
		for range times {
			ctx := context.WithValue(t.Context(), key{}, make([]byte, size))
			require.NoError(t, recipes.Do(ctx, b.Lock, func(
				_ context.Context, hold *recipes.Hold,
			) error {
				kept = append(kept, hold)
				return nil
			}))
		}
		require.Less(t, (locktest.Heap()-before)/times, int64(size/2), "bytes")
		runtime.KeepAlive(kept)
	})
}

// An askedCtx panics at one question of those that it is asked.
type askedCtx struct {
	context.Context
	left *int // questions until then
}

func (c askedCtx) Value(key any) any {
	if *c.left--; *c.left == 0 {
		panic("the ctx is broken")
	}
	return c.Context.Value(key)
}

// A ctx that panics while a lock is acquired with it: its owner waited for itself from
// then on, or the only member of a multi lock stayed held.
func TestACtxThatPanicsWithinAcquire(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock",
			recipes.WithObserver(func(context.Context, recipes.Event) {}))
		for _, l := range []recipes.InterProcessLock{
			lock, recipes.NewInterProcessMultiLockOf(lock),
		} {
			for question := 1; question < 6; question++ {
				owner, left := locktest.Owner(t), question
				tried(t, func() {
					hold, err := recipes.Acquire(askedCtx{owner, &left}, l)
					require.NoError(t, err)
					require.NoError(t, hold.Release(t.Context()))
				})
				require.NoError(t, recipes.Do(owner, l, locktest.Nothing,
					recipes.WaitAtMost(time.Second)), question)
			}
		}
	})
}

// Two callers go on with a ctx whose owner has ended meanwhile, while the first of them
// waits. The second one's release freed the first one's lease.
func TestAWaiterForALeaseGoesOnAsItsOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		make2 := func(c *recipes.Client) recipes.InterProcessLock {
			s := locktest.NewSemaphore(t, c, "/s", 2)
			return s.AsLock(1)
		}
		ours, theirs := make2(b.Ours), make2(b.Other)
		one := locktest.Acquire(t.Context(), t, theirs)
		hold := locktest.Acquire(t.Context(), t, ours)
		kept := context.WithoutCancel(hold.Context(t.Context()))
		two := make(chan *recipes.Hold, 1)
		go func() { two <- locktest.Acquire(t.Context(), t, theirs) }()
		time.Sleep(time.Second)
		first := make(chan *recipes.Hold, 1)
		go func() { first <- locktest.Acquire(kept, t, ours) }()
		time.Sleep(time.Second)
		require.NoError(t, hold.Release(t.Context()))
		second := make(chan error, 2)
		released := make(chan struct{})
		go func() {
			second <- ours.Acquire(kept)
			<-released
			second <- ours.Release(kept)
		}()
		time.Sleep(time.Second)
		require.NoError(t, one.Release(t.Context()))
		mine := <-first
		require.NoError(t, (<-two).Release(t.Context()))
		require.NoError(t, <-second)
		close(released)
		require.NoError(t, <-second)
		require.NoError(t, mine.Release(t.Context()), "it was freed by the other")
	})
}

// The ctx of a released hold names its owner nowhere but at the lock that the owner still
// waits for: by that call the owner gets it, and can release it. Goroutines that acquire
// another member with the ctx exclude each other, also once the call has returned.
func TestAKeptCtxOfAnOwnerThatOnlyWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		make2 := func(c *recipes.Client) recipes.InterProcessLock {
			m, err := recipes.NewInterProcessSemaphoreMutex(c, "/m")
			require.NoError(t, err)
			return m
		}
		ours, theirs, x := make2(b.Ours), make2(b.Other), b.Mutex(t, b.Ours, "/x")
		hold := locktest.Acquire(t.Context(), t,
			recipes.NewInterProcessMultiLockOf(ours, x))
		kept := context.WithoutCancel(hold.Context(t.Context()))
		rival := make(chan *recipes.Hold, 1)
		go func() { rival <- locktest.Acquire(t.Context(), t, theirs) }()
		time.Sleep(time.Second)
		waiting := locktest.Start(func() error { return ours.Acquire(kept) })
		time.Sleep(time.Second)
		require.NoError(t, hold.Release(t.Context()))
		time.Sleep(time.Second)
		require.Empty(t, waiting, "it does not wait for its rival")

		var inside atomic.Int32
		all := make(chan error)
		for range 5 {
			go func() {
				err := x.Acquire(kept)
				if inside.Add(1) > 1 {
					err = errors.New("two holders")
				}
				time.Sleep(time.Second)
				inside.Add(-1)
				all <- errors.Join(err, x.Release(kept))
			}()
		}
		errs := []error{<-all}
		require.NoError(t, (<-rival).Release(t.Context()))
		require.NoError(t, <-waiting)
		for range 4 {
			errs = append(errs, <-all)
		}
		require.NoError(t, errors.Join(errs...))
		require.NoError(t, ours.Release(kept))
	})
}

// A call with a ctx that waits behind another one of its owner's stays that owner's, even
// if the hold is released meanwhile, and the other call fails.
func TestAWaiterBehindItsOwnOwnerStaysThatOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		x, y := b.Mutex(t, b.Ours, "/x"), b.Mutex(t, b.Ours, "/y")
		hold := locktest.Acquire(t.Context(), t, recipes.NewInterProcessMultiLockOf(x, y))
		kept := context.WithoutCancel(hold.Context(t.Context()))
		require.NoError(t, y.Release(kept))
		theirs := locktest.Acquire(t.Context(), t, b.Mutex(t, b.Other, "/y"))
		first := locktest.Start(func() error {
			_, err := y.AcquireTimeout(kept, 10*time.Second)
			return err
		})
		time.Sleep(time.Second)
		second := locktest.Start(func() error { return y.Acquire(kept) })
		time.Sleep(time.Second)
		require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrNotOwner, "of y")
		require.NoError(t, <-first)
		require.NoError(t, theirs.Release(t.Context()))
		require.NoError(t, <-second)
		require.NoError(t, y.Release(kept), "it was acquired by this ctx")
	})
}

// What the call got is released before its observer returns, and its owner comes back:
// the ctx of the call names that no more.
func TestAKeptCtxIsNotRevivedByACallThatEndsLate(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var slow atomic.Bool
		goOn := make(chan struct{})
		s := locktest.NewSemaphore(t, b.Ours, "/s", 3, recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired && slow.Swap(false) {
					<-goOn
				}
			}))
		lock, owner := s.AsLock(1), locktest.Owner(t)
		hold := locktest.Acquire(owner, t, lock)
		kept := context.WithoutCancel(hold.Context(t.Context()))
		slow.Store(true)
		late := locktest.Start(func() error { return lock.Acquire(kept) })
		time.Sleep(time.Second)
		require.NoError(t, hold.Release(owner))
		require.NoError(t, lock.Release(owner), "what the call has got")
		again := locktest.Acquire(owner, t, lock)
		others := locktest.Acquire(t.Context(), t, lock)
		close(goOn)
		require.NoError(t, <-late)
		require.Same(t, again, lock.Hold(owner))
		require.Same(t, others, lock.Hold(kept))
	})
}
