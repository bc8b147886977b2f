package lock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// owned returns a ctx that carries the owner of hold.
func owned(t *testing.T, hold *recipes.Hold) context.Context {
	t.Helper()
	return hold.Context(t.Context())
}

func TestEveryLockIsReleasedByItsHold(t *testing.T) {
	locktest.ForAllLocks(t, func(t *testing.T, k locktest.Kind) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		lock, rival := k.Lock(p, path), k.NewRival(other, path)
		ctx := t.Context()
		first := locktest.Acquire(ctx, t, lock)
		require.NotEmpty(t, first.Path())
		require.NoError(t, first.Err())
		require.Positive(t, first.FencingToken())
		require.True(t, lock.IsAcquiredInThisProcess())
		var before int
		locktest.Eventually(t, func() bool {
			nodes := k.Nodes(p, path)
			before = len(nodes)
			return !slices.ContainsFunc(nodes, locktest.AtTheGate)
		}, "the place at the gate stays")
		waiting := locktest.Start(func() error {
			hold, err := recipes.Acquire(ctx, rival)
			if err != nil {
				return err
			}
			return errors.Join(first.Err(), hold.Release(ctx))
		})
		locktest.Eventually(
			t, func() bool { return len(k.Nodes(p, path)) > before }, "no rival queues",
		)
		require.NoError(t, locktest.ReleaseElsewhere(t, first))
		require.NoError(t, locktest.Within(t, waiting, "the rival's turn"))
		require.False(t, lock.IsAcquiredInThisProcess())
		require.ErrorIs(t, locktest.ReleaseElsewhere(t, first), recipes.ErrNotOwner)

		second := locktest.Acquire(ctx, t, lock)
		if !k.Cached {
			require.Greater(t, second.FencingToken(), first.FencingToken())
		}
		require.ErrorIs(t, first.Release(ctx), recipes.ErrNotOwner)
		require.True(t, lock.IsAcquiredInThisProcess(), "a later hold was released")
		require.NoError(t, second.Release(ctx))
		require.NoError(t, first.Err(), "a release is no loss")
		k.AwaitNodes(other, path, 0)
	})
}

func TestEveryLockTellsALossByItsHold(t *testing.T) {
	locktest.ForAllLocks(t, func(t *testing.T, k locktest.Kind) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		lock := k.Lock(p, path)
		hold := locktest.Acquire(t.Context(), t, lock)
		ctx := owned(t, hold)
		var nodes []string
		locktest.Eventually(t, func() bool {
			nodes = k.Nodes(other, path)
			return len(nodes) > 0
		}, "there is no znode")
		require.NoError(t, other.Conn.Delete(nodes[len(nodes)-1], -1))
		locktest.Within(t, hold.Lost(), "Lost")
		locktest.Within(t, ctx.Done(), "the ctx of the hold")
		require.ErrorIs(t, context.Cause(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.ErrorIs(t, locktest.ReleaseElsewhere(t, hold), recipes.ErrLockLost)
		require.ErrorIs(t, locktest.ReleaseElsewhere(t, hold), recipes.ErrNotOwner)
		again := locktest.Acquire(t.Context(), t, lock)
		require.ErrorIs(t, locktest.ReleaseElsewhere(t, hold), recipes.ErrNotOwner)
		require.NoError(t, again.Err())
		require.NoError(t, again.Release(t.Context()))
		k.AwaitNodes(other, path, 0)
	})
}

// Each call is an owner of its own, whatever the goroutine is and has.
func TestEachAcquireIsAnOwnerOfItsOwn(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock")
		if k.Recipe == "read lock" {
			return // readers share
		}
		ctx := t.Context()
		hold := locktest.Acquire(ctx, t, lock)
		locktest.RequireBusy(ctx, t, lock)
		locktest.RequireBusy(locktest.Owner(t), t, lock)
		require.NoError(t, hold.Release(ctx))
		require.NoError(t, lock.Acquire(ctx))
		locktest.RequireBusy(ctx, t, lock)
		require.NoError(t, lock.Release(ctx))
	})
}

// What looks for its owner in a ctx finds it in that of Hold.Context only.
func TestAHoldsContextCarriesItsOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := b.Mutex(t, b.Ours, "/other")
		hold := locktest.Acquire(t.Context(), t, b.Lock)
		ctx := owned(t, hold)
		require.Nil(t, b.Lock.Hold(t.Context()))
		require.False(t, b.Lock.IsOwned(t.Context()))
		require.ErrorIs(t, b.Lock.Release(t.Context()), recipes.ErrNotOwner)
		require.Same(t, hold, b.Lock.Hold(ctx))
		require.False(t, b.Lock.IsOwned(recipes.WithOwner(ctx)))

		again := locktest.Acquire(ctx, t, b.Lock)
		require.NotSame(t, hold, again)
		require.Same(t, again, b.Lock.Hold(ctx))
		require.NoError(t, again.Release(t.Context()))
		require.EqualValues(t, 5, inside(ctx, t, b.Lock), "they re-enter")
		require.EqualValues(t, 1, inside(ctx, t, other), "they are who they are")

		both := locktest.Acquire(ctx, t, other).Context(ctx)
		require.True(t, other.IsOwned(both))
		require.True(t, b.Lock.IsOwned(both))
		require.False(t, other.IsOwned(ctx))
		require.NoError(t, other.Release(both))
		require.NoError(t, b.Lock.Release(both))
		require.ErrorIs(t, hold.Release(ctx), recipes.ErrNotOwner)

		// the owner holds nothing any more, and the ctx names nobody
		kept := context.WithoutCancel(ctx)
		require.EqualValues(t, 1, inside(kept, t, b.Lock))
	})
}

// The hold's owner counts, and not that of the parent.
func TestAHoldsContextOfAnotherOwnersContext(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		one, two := locktest.Owner(t), locktest.Owner(t)
		other := b.Mutex(t, b.Ours, "/other")
		hold := locktest.Acquire(one, t, b.Lock)
		ctx := hold.Context(two)
		require.True(t, b.Lock.IsOwned(one))
		require.True(t, b.Lock.IsOwned(ctx))
		require.NoError(t, other.Acquire(two))
		require.True(t, other.IsOwned(ctx))
		require.NoError(t, other.Release(ctx))
		require.NoError(t, hold.Release(two))

		// the goroutine as the owner
		require.NoError(t, b.Lock.Acquire(t.Context()))
		ctx = b.Lock.Hold(t.Context()).Context(two)
		require.NoError(t, <-locktest.Start(func() error { return b.Lock.Release(ctx) }))
		require.False(t, b.Lock.IsAcquiredInThisProcess())
	})
}

func TestAHoldsContextIsOfBothSidesOfAReadWriteLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := locktest.NewReadWriteLock(t, b.Ours, "/rw")
		written := locktest.Acquire(t.Context(), t, lock.WriteLock())
		ctx := owned(t, written)
		read := locktest.Acquire(ctx, t, lock.ReadLock())
		require.Equal(t, written.FencingToken(), read.FencingToken(), "a downgrade")
		require.NoError(t, locktest.ReleaseElsewhere(t, written))
		kept := context.WithoutCancel(ctx) // which has ended with that hold
		_, err := recipes.Acquire(kept, lock.WriteLock())
		require.ErrorIs(t, err, recipes.ErrUpgrade)
		locktest.RequireBusy(t.Context(), t, lock.WriteLock())
		require.NoError(t, locktest.ReleaseElsewhere(t, read))
		require.EqualValues(t, 1, inside(kept, t, lock.WriteLock()), "it names nobody")
	})
}

// An owner that ctx carried before re-enters: of WithOwner, and of Do.
func TestAcquireAsTheOwnerOfItsContext(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		require.NoError(t, b.Lock.Acquire(ctx))
		first := b.Lock.Hold(ctx)
		hold := locktest.Acquire(ctx, t, b.Lock)
		require.Same(t, b.Lock.Hold(ctx), hold)
		require.NoError(t, hold.Release(t.Context()))
		require.True(t, b.Lock.IsOwned(ctx))
		require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrNotOwner)
		require.Same(t, first, b.Lock.Hold(ctx))
		require.NoError(t, first.Release(t.Context()), "what the lock's Acquire acquired")
		require.False(t, b.Lock.IsOwned(ctx))
		require.ErrorIs(t, b.Lock.Release(ctx), recipes.ErrNotOwner)

		other := b.Mutex(t, b.Ours, "/other")
		require.NoError(t, recipes.Do(t.Context(), b.Lock, func(
			ctx context.Context, held *recipes.Hold,
		) error {
			hold := locktest.Acquire(ctx, t, b.Lock)
			require.Equal(t, held.Path(), hold.Path())
			first := locktest.Acquire(ctx, t, other)
			locktest.RequireBusy(ctx, t, other)
			return errors.Join(hold.Release(ctx), first.Release(ctx))
		}))
		require.False(t, b.Lock.IsAcquiredInThisProcess())
	})
}

// Each re-entry has a hold of its own, which is released once; all are lost together.
func TestReleaseOfAReenteredHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		rw := locktest.NewReadWriteLock(t, b.Ours, "/rw")
		multi := locktest.NewMultiLock(t, b.Ours, []string{"/a", "/b"})
		for name, lock := range map[string]recipes.InterProcessLock{
			"mutex": b.Lock, "write lock": rw.WriteLock(), "multi lock": multi,
			"read lock": rw.ReadLock(),
		} {
			for _, loss := range []bool{false, true} {
				hold := locktest.Acquire(t.Context(), t, lock)
				ctx, want := context.WithoutCancel(owned(t, hold)), error(nil)
				again := locktest.Acquire(ctx, t, lock)
				require.NotSame(t, hold, again, name)
				require.Equal(t, hold.Path(), again.Path(), name)
				require.Equal(t, hold.FencingToken(), again.FencingToken(), name)
				require.NoError(t, lock.Acquire(ctx))
				if loss {
					b.Lose(t, hold)
					want = recipes.ErrLockLost
					<-again.Lost()
					require.Equal(t, hold.Err(), again.Err())
					_, err := recipes.Acquire(ctx, lock)
					require.ErrorIs(t, err, want, name)
				}
				for _, release := range []func(context.Context) error{
					again.Release, lock.Release, hold.Release,
				} {
					require.Equal(t, !loss, lock.IsAcquiredInThisProcess(), name)
					require.ErrorIs(t, release(ctx), want, name)
					require.ErrorIs(t, again.Release(ctx), recipes.ErrNotOwner, name)
				}
				require.False(t, lock.IsAcquiredInThisProcess(), name)
				require.ErrorIs(t, hold.Release(ctx), recipes.ErrNotOwner, name)
				require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner, name)
			}
		}
	})
}

// A hold undoes nothing that its owner has acquired since.
func TestAReleasedHoldLeavesLaterOnesAlone(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock")
		ctx := locktest.Owner(t)
		former := locktest.Acquire(ctx, t, lock)
		require.NoError(t, lock.Release(ctx))
		for _, lockToo := range []bool{false, true} {
			hold := locktest.Acquire(ctx, t, lock)
			require.ErrorIs(t, former.Release(ctx), recipes.ErrNotOwner)
			require.NoError(t, hold.Err())
			require.True(t, lock.IsAcquiredInThisProcess())
			if lockToo {
				require.NoError(t, lock.Release(ctx))
			} else {
				require.NoError(t, hold.Release(ctx))
			}
			require.False(t, lock.IsAcquiredInThisProcess())
			former = hold
		}
	})
}

// Whoever releases at the same time, each acquisition ends once.
func TestHoldReleaseRacesWithTheLocksOwn(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock")
		for range 20 {
			ctx := locktest.Owner(t)
			hold := locktest.Acquire(ctx, t, lock)
			acquired := 1
			if k.IsReentrant() {
				locktest.Acquire(ctx, t, lock)
				acquired++
			}
			var done []<-chan error
			for i := range 6 {
				done = append(done, locktest.Start(func() error {
					if i%2 == 0 {
						return lock.Release(ctx)
					}
					return hold.Release(t.Context())
				}))
			}
			for _, d := range done {
				if err := <-d; err == nil {
					acquired--
				} else {
					require.ErrorIs(t, err, recipes.ErrNotOwner)
				}
			}
			require.Zero(t, acquired)
			require.False(t, lock.IsAcquiredInThisProcess())
		}
	})
}

// A release that meets the loss, the end of WithMaxHold or the client's Close is one
// release, and tells one of them.
func TestHoldReleaseRacesWithTheEndOfTheHold(t *testing.T) {
	ends := map[string]func(t *testing.T, b *locktest.Bubble, hold *recipes.Hold){
		"the znode goes": func(_ *testing.T, b *locktest.Bubble, h *recipes.Hold) {
			_ = b.Other.Delete(h.Path(), -1)
		},
		"the session ends": func(_ *testing.T, b *locktest.Bubble, _ *recipes.Hold) {
			b.Cluster.ExpireSession(b.Ours.SessionID())
		},
		"WithMaxHold": func(*testing.T, *locktest.Bubble, *recipes.Hold) {},
		"Close": func(_ *testing.T, b *locktest.Bubble, _ *recipes.Hold) {
			b.Ours.Close()
		},
	}
	const most = 10 * time.Second
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			locktest.ForAllInBubbles(t, func(
				t *testing.T, b *locktest.Bubble, k locktest.Kind,
			) {
				for i := range 9 {
					at := time.Duration(i-4) * 500 * time.Microsecond
					if name == "Close" && i > 0 {
						b.Ours = locktest.ConnectThrough(t, b.Cluster, "again")
					}
					lock := k.MustMake(t, b.Ours, "/lock", recipes.WithMaxHold(most))
					hold := locktest.Acquire(t.Context(), t, lock)
					time.Sleep(most - 5*time.Millisecond)
					ended := make(chan struct{})
					time.AfterFunc(5*time.Millisecond, func() {
						defer close(ended)
						end(t, b, hold)
					})
					time.Sleep(5*time.Millisecond + at)
					var outcomes []error
					done := []<-chan error{
						locktest.Start(func() error { return hold.Release(t.Context()) }),
						locktest.Start(func() error { return hold.Release(t.Context()) }),
					}
					for _, d := range done {
						if err := <-d; !errors.Is(err, recipes.ErrNotOwner) {
							outcomes = append(outcomes, err)
						}
					}
					require.Len(t, outcomes, 1, "at %v", at)
					for _, err := range outcomes {
						if err != nil {
							require.ErrorIs(t, err, recipes.ErrLockLost, "at %v", at)
						}
					}
					require.False(t, lock.IsAcquiredInThisProcess())
					require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrNotOwner)
					<-ended
				}
			})
		})
	}
}

// ctx bounds the wait for the answer to a release, and not the release.
func TestHoldReleaseIsBoundedByItsContext(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		hold := locktest.Acquire(t.Context(), t, b.Lock)
		b.Cluster.Link("ours").Freeze()
		soon, cancel := context.WithTimeoutCause(
			t.Context(), time.Second, locktest.ErrChangedMind,
		)
		defer cancel()
		began := time.Now()
		err := hold.Release(soon)
		require.ErrorIs(t, err, locktest.ErrChangedMind)
		require.ErrorContains(t, err, "recipes: release /lock: release not confirmed")
		require.Equal(t, time.Second, time.Since(began))
		require.False(t, b.Lock.IsAcquiredInThisProcess())
		require.ErrorIs(t, hold.Release(soon), recipes.ErrNotOwner)
		b.Cluster.Link("ours").Thaw()
		time.Sleep(time.Second)
		require.Equal(t, []string{"/lock"}, b.Cluster.Znodes())
	})
}

// nilCtx is what an error says of a nil ctx.
const nilCtx = "ctx is nil; context.Background() never ends"

func TestAcquireAndReleaseRefuse(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var none *recipes.InterProcessMutex
		var nobody context.Context
		for want, call := range map[string]func() (*recipes.Hold, error){
			"recipes: Acquire: " + nilCtx: func() (*recipes.Hold, error) {
				return recipes.Acquire(nobody, b.Lock)
			},
			"recipes: Acquire: lock is nil": func() (*recipes.Hold, error) {
				return recipes.Acquire(t.Context(), nil)
			},
			"recipes: Acquire: option 2 is nil": func() (*recipes.Hold, error) {
				return recipes.Acquire(t.Context(), b.Lock, recipes.WaitAtMost(0), nil)
			},
		} {
			hold, err := call()
			require.Nil(t, hold)
			require.EqualError(t, err, want)
		}
		_, err := recipes.Acquire(t.Context(), none)
		require.EqualError(t, err, "recipes: Acquire: lock is nil")
		require.EqualError(t, recipes.Do(nobody, b.Lock, func(
			context.Context, *recipes.Hold,
		) error {
			t.Error("fn runs")
			return nil
		}), "recipes: Do: "+nilCtx)
		require.False(t, b.Lock.IsAcquiredInThisProcess())

		for _, hold := range []*recipes.Hold{nil, {}} {
			err := hold.Release(t.Context())
			require.ErrorIs(t, err, recipes.ErrNotOwner)
			require.ErrorContains(t, err, "this is a zero value")
		}
		hold := locktest.Acquire(t.Context(), t, b.Lock)
		require.EqualError(t, hold.Release(nobody), "recipes: release a hold: "+nilCtx)
		require.True(t, b.Lock.IsAcquiredInThisProcess())
		require.NoError(t, hold.Release(t.Context()))
	})
}

// Any caller may release a semaphore mutex. The hold of the one who had acquired it says
// so, and leaves the next one's alone.
func TestAHoldThatAnotherCallerReleased(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m := locktest.NewSemaphoreMutex(t, b.Ours, "/mutex")
		other := b.Mutex(t, b.Ours, "/other")
		for _, lock := range []recipes.InterProcessLock{
			m, recipes.NewInterProcessMultiLockOf(m, other),
		} {
			hold := locktest.Acquire(t.Context(), t, lock)
			require.NoError(t, m.Release(t.Context()), "by the goroutine")
			next := locktest.Acquire(t.Context(), t, m)
			require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrNotOwner)
			require.True(t, m.IsAcquiredInThisProcess())
			require.False(t, other.IsAcquiredInThisProcess(), "the rest is released")
			_, err := hold.Multi()
			require.ErrorIs(t, err, recipes.ErrNotOwner)
			require.NoError(t, next.Release(t.Context()))
		}
	})
}

// The same at once: what Acquire has not got it does not return.
func TestAcquireOfWhatAnotherCallerReleasesAtOnce(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var m *recipes.InterProcessSemaphoreMutex
		m = locktest.NewSemaphoreMutex(t, b.Ours, "/mutex",
			recipes.WithObserver(func(ctx context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired {
					assert.NoError(t, m.Release(recipes.WithOwner(ctx)))
				}
			}))
		other := b.Mutex(t, b.Ours, "/other")
		for _, lock := range []recipes.InterProcessLock{
			m, recipes.NewInterProcessMultiLockOf(other, m),
		} {
			hold, err := recipes.Acquire(t.Context(), lock)
			require.Nil(t, hold)
			require.ErrorIs(t, err, recipes.ErrNotOwner)
			require.False(t, other.IsAcquiredInThisProcess())
		}
	})
}

// fn may release what Do has acquired. Do says so, and releases nothing else.
func TestFnReleasesTheHoldOfDo(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		var later *recipes.Hold
		err := recipes.Do(ctx, b.Lock, func(
			ctx context.Context, hold *recipes.Hold,
		) error {
			require.NoError(t, locktest.ReleaseElsewhere(t, hold))
			require.ErrorIs(t, context.Cause(ctx), recipes.ErrNotOwner)
			later = locktest.Acquire(context.WithoutCancel(ctx), t, b.Lock)
			return nil
		})
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		require.True(t, b.Lock.IsOwned(ctx), "what fn has acquired since")
		require.NoError(t, later.Release(ctx))
		require.ErrorIs(t, b.Lock.Release(ctx), recipes.ErrNotOwner)
	})
}

func TestALeasesHoldReturnsIt(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := locktest.NewSemaphore(t, b.Ours, "/s", 2)
		ctx := t.Context()
		leases, err := s.AcquireN(ctx, 2)
		require.NoError(t, err)
		require.NoError(t, leases[0].Hold().Release(ctx))
		require.NoError(t, leases[0].Release(ctx), "it is idempotent")
		err = leases[0].Hold().Release(ctx)
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		require.ErrorContains(t, err, "release /s")
		one, err := s.AcquireTimeout(ctx, 1, 0)
		require.NoError(t, err)
		require.Len(t, one, 1)
		b.Lose(t, leases[1].Hold())
		require.ErrorIs(t, leases[1].Hold().Release(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, leases[1].Hold().Release(ctx), recipes.ErrNotOwner)
		require.NoError(t, s.ReturnAll(ctx, append(leases, one...)))
	})
}

// A term is its election's: nobody else ends it.
func TestATermIsNotReleasedByItsHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		latch := locktest.NewLatch(t, b.Ours, "/latch")
		term, err := latch.Await(t.Context())
		require.NoError(t, err)
		err = term.Release(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		require.ErrorContains(t, err, "release /latch")
		require.True(t, latch.HasLeadership())
		require.NoError(t, latch.Close(t.Context()))

		selector, err := recipes.NewLeaderSelector(b.Ours, "/selector")
		require.NoError(t, err)
		err = selector.Run(t.Context(), func(
			ctx context.Context, term *recipes.Hold,
		) error {
			require.ErrorIs(t, term.Release(ctx), recipes.ErrNotOwner)
			_, err := term.Multi()
			require.NoError(t, err, "it leads still")
			return locktest.ErrChangedMind
		})
		require.Equal(t, locktest.ErrChangedMind, err)
	})
}

// The ctx that an observer is called with stands for whoever acquires.
func TestTheObserverOfAnAcquireHasItsOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var lock *recipes.InterProcessMutex
		told := 0
		lock = b.Mutex(t, b.Ours, "/observed", recipes.WithObserver(func(
			ctx context.Context, e recipes.Event,
		) {
			if e.Kind == recipes.EventAcquired {
				told++
				require.True(t, lock.IsOwned(ctx))
			}
		}))
		hold := locktest.Acquire(context.Background(), t, lock)
		require.Equal(t, 1, told)
		require.False(t, lock.IsOwned(context.Background()))
		require.NoError(t, hold.Release(t.Context()))
	})
}

// After EventAcquired an event has the time for which the lock was held.
func TestAnEventTellsHowLongALockWasHeld(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var steps locktest.Recorder
		lock := b.Mutex(t, b.Ours, "/observed", recipes.WithObserver(steps.Observe))
		for n, kind := range []recipes.EventKind{
			recipes.EventReleased, recipes.EventLost,
		} {
			hold := locktest.Acquire(t.Context(), t, lock)
			time.Sleep(3 * time.Second)
			if n == 0 {
				require.NoError(t, hold.Release(t.Context()))
			} else {
				b.Lose(t, hold)
			}
			require.Equal(t, 3*time.Second, steps.Await(t, kind).Elapsed)
		}
	})
}

// A multi lock's hold owns what that acquisition has of its members, and nothing that
// they hold by themselves.
func TestAMultiLocksHoldLeavesItsMembersOwnAlone(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		x, ctx := b.Mutex(t, b.Ours, "/x"), locktest.Owner(t)
		multi := recipes.NewInterProcessMultiLockOf(b.Lock, x)
		require.NoError(t, b.Lock.Acquire(ctx))
		require.NoError(t, x.Acquire(ctx))
		require.Nil(t, multi.Hold(ctx), "it was not acquired as such")
		require.ErrorIs(t, multi.Release(ctx), recipes.ErrNotOwner)
		hold, err := recipes.Acquire(ctx, multi)
		require.NoError(t, err)
		require.NoError(t, hold.Release(ctx))
		require.ErrorIs(t, hold.Release(ctx), recipes.ErrNotOwner)
		require.NoError(t, multi.Acquire(ctx))
		require.NotSame(t, hold, multi.Hold(ctx))
		require.ErrorIs(t, hold.Release(ctx), recipes.ErrNotOwner)
		require.NoError(t, multi.Hold(ctx).Release(ctx))
		require.NoError(t, x.Release(ctx))
		require.False(t, x.IsAcquiredInThisProcess())
		require.NoError(t, b.Lock.Release(ctx))
	})
}
