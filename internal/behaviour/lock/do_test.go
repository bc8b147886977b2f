package lock_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// inside lets five goroutines into lock by ctx, and tells how many are in it at once.
func inside(ctx context.Context, t *testing.T, lock recipes.InterProcessLock) (n int32) {
	t.Helper()
	var now, at atomic.Int32
	done := make(chan error, 5)
	for range cap(done) {
		go func() {
			done <- recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error {
				now.Add(1)
				time.Sleep(time.Second) // virtual: whoever can come in is in
				at.Store(now.Load())
				time.Sleep(time.Second)
				now.Add(-1)
				return nil
			})
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	return at.Load()
}

// Workers that a fn starts share its lock, and exclude each other in any other one.
func TestDoSharesItsOwnLockOnly(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		other := s.Mutex(t, s.Ours, "/other-lock")
		err := recipes.Do(t.Context(), s.Lock, func(
			ctx context.Context, hold *recipes.Hold,
		) error {
			require.Same(t, hold, s.Lock.Hold(ctx))
			require.EqualValues(t, 5, inside(ctx, t, s.Lock), "they re-enter")
			require.EqualValues(t, 1, inside(ctx, t, other), "they are who they are")

			return recipes.Do(ctx, other, func(
				ctx context.Context, hold *recipes.Hold,
			) error {
				require.Same(t, hold, other.Hold(ctx))
				require.EqualValues(t, 5, inside(ctx, t, s.Lock), "the outer one still")
				require.EqualValues(t, 5, inside(ctx, t, other))
				return nil
			})
		})
		require.NoError(t, err)
		require.False(t, s.Lock.IsAcquiredInThisProcess())
		require.False(t, other.IsAcquiredInThisProcess())
	})
}

// The two sides of a read/write lock have their owners together: workers of a writer read
// at once, and those of a reader are refused instead of waiting for it.
func TestDoSharesBothSidesOfAReadWriteLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		lock := locktest.NewReadWriteLock(t, s.Ours, "/rw")
		read, write := lock.ReadLock(), lock.WriteLock()
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := recipes.Do(soon, write, func(
			ctx context.Context, hold *recipes.Hold,
		) error {
			require.EqualValues(t, 5, inside(ctx, t, read))
			require.EqualValues(t, 5, inside(ctx, t, write))
			return <-locktest.Start(func() error { // a downgrade, as of one owner
				return recipes.Do(ctx, read, func(
					_ context.Context, below *recipes.Hold,
				) error {
					require.Equal(t, hold.FencingToken(), below.FencingToken())
					return nil
				})
			})
		})
		require.NoError(t, err)
		err = recipes.Do(soon, read, func(ctx context.Context, _ *recipes.Hold) error {
			require.EqualValues(t, 5, inside(ctx, t, read))
			require.True(t, read.IsOwned(ctx))
			require.False(t, write.IsOwned(ctx))
			return <-locktest.Start(func() error { return write.Acquire(ctx) })
		})
		require.ErrorIs(t, err, recipes.ErrUpgrade)
		require.False(t, read.IsAcquiredInThisProcess())
		require.False(t, write.IsAcquiredInThisProcess())
	})
}

// An owner that ctx carried before is the owner of every lock; a new one is of none.
func TestDoKeepsTheOwnerOfItsContext(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		other, ctx := s.Mutex(t, s.Ours, "/other-lock"), locktest.Owner(t)
		require.NoError(t, recipes.Do(ctx, s.Lock, func(
			ctx context.Context, _ *recipes.Hold,
		) error {
			require.EqualValues(t, 5, inside(ctx, t, other))
			require.True(t, s.Lock.IsOwned(ctx))
			require.False(t, s.Lock.IsOwned(recipes.WithOwner(ctx)))
			return nil
		}))
		err := recipes.Do(t.Context(), s.Lock, func(
			ctx context.Context, _ *recipes.Hold,
		) error {
			require.True(t, s.Lock.IsOwned(ctx))
			require.True(t, s.Lock.IsOwned(t.Context()), "Do's caller was its goroutine")
			require.False(t, s.Lock.IsOwned(recipes.WithOwner(ctx)))
			return nil
		})
		require.NoError(t, err)
	})
}

// A multi lock's members are this lock, too, also those of a multi lock in it.
func TestDoSharesTheMembersOfItsLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		member, other := s.Mutex(t, s.Ours, "/member"), s.Mutex(t, s.Ours, "/other")
		lock := recipes.NewInterProcessMultiLockOf(
			member, recipes.NewInterProcessMultiLockOf(s.Lock))
		require.NoError(t, recipes.Do(t.Context(), lock, func(
			ctx context.Context, _ *recipes.Hold,
		) error {
			for _, l := range []recipes.InterProcessLock{lock, member, s.Lock} {
				require.EqualValues(t, 5, inside(ctx, t, l))
			}
			require.EqualValues(t, 1, inside(ctx, t, other))
			return nil
		}))
		require.False(t, s.Lock.IsAcquiredInThisProcess())
	})
}

func TestDoWaitsAtMost(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		rival, ctx := s.Mutex(t, s.Other, "/lock"), locktest.Owner(t)
		require.NoError(t, rival.Acquire(ctx))
		never := func(context.Context, *recipes.Hold) error {
			t.Error("fn runs")
			return nil
		}
		multi := recipes.NewInterProcessMultiLockOf(s.Lock, s.Mutex(t, s.Ours, "/b"))
		for _, d := range []time.Duration{-1, 0, time.Second} {
			began := time.Now()
			err := recipes.Do(t.Context(), s.Lock, never, recipes.WaitAtMost(d))
			require.ErrorIs(t, err, recipes.ErrBusy)
			require.ErrorContains(t, err, "acquire /lock")
			require.Less(t, time.Since(began), max(d, 0)+250*time.Millisecond)
			err = recipes.Do(t.Context(), multi, never, recipes.WaitAtMost(d))
			require.ErrorIs(t, err, recipes.ErrBusy)
			require.ErrorContains(t, err, "1 ahead, behind /lock/_c_")
			require.NotContains(t, err.Error(), "of this process")
		}
		require.NoError(t, rival.Release(ctx))
		again := s.Mutex(t, s.Ours, "/lock")
		require.NoError(t, again.Acquire(ctx))
		err := recipes.Do(t.Context(), s.Lock, never, recipes.WaitAtMost(time.Second))
		require.ErrorContains(
			t, err, "1 ahead, behind "+again.LockPath(ctx)+", of this process "+
				"(it can be the waiter's own, through another value of this path)",
		)
		err = recipes.Do(t.Context(), again, never, recipes.WaitAtMost(time.Second))
		require.ErrorContains(t, err, ", of this process")
		require.NotContains(t, err.Error(), "own, through", "it is another owner's")
		require.NoError(t, again.Release(ctx))
		require.ErrorContains(
			t, recipes.Do(t.Context(), s.Lock, never, nil), "option 1 is nil",
		)
		require.ErrorContains(t, recipes.Do(t.Context(), nil, never), "lock is nil")
		var none *recipes.InterProcessMutex
		require.ErrorContains(t, recipes.Do(t.Context(), none, never), "lock is nil")
		require.ErrorContains(t, recipes.Do(t.Context(), wrapper{}, never),
			"recipes: Do: lock: the one in a lock_test.wrapper is nil")
		require.ErrorContains(t, recipes.Do(t.Context(), s.Lock, nil), "fn is nil")
		require.False(t, s.Lock.IsAcquiredInThisProcess())
		ran := false
		require.NoError(t, recipes.Do(t.Context(), s.Lock, func(
			context.Context, *recipes.Hold,
		) error {
			ran = true
			return nil
		}, recipes.WaitAtMost(0), recipes.WaitAtMost(time.Minute)))
		require.True(t, ran)
	})
}

func TestDoTellsALossOnce(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		fn   func(ctx context.Context) error
		also error
	}{
		"fn tells it": {fn: context.Cause},
		"fn tells it, and more": {fn: func(ctx context.Context) error {
			return errors.Join(failed, context.Cause(ctx))
		}, also: failed},
		"fn tells something else": {
			fn: func(context.Context) error { return failed }, also: failed,
		},
		"fn tells its ctx is done": {fn: context.Context.Err, also: context.Canceled},
		"fn tells nothing":         {fn: func(context.Context) error { return nil }},
	} {
		locktest.Run(t, name, func(t *testing.T, s *locktest.Bubble) {
			err := recipes.Do(t.Context(), s.Lock, func(
				ctx context.Context, hold *recipes.Hold,
			) error {
				return recipes.Do(ctx, s.Lock, func(
					ctx context.Context, again *recipes.Hold,
				) error {
					require.NotSame(t, hold, again)
					s.Lose(t, hold)
					<-ctx.Done()
					return c.fn(ctx)
				})
			})
			require.ErrorIs(t, err, recipes.ErrLockLost)
			require.Equal(t, 1, locktest.Losses(err), "%v", err)
			if c.also != nil {
				require.ErrorIs(t, err, c.also)
			}
		})
	}
}

// Two members that are lost are two losses, and what else went wrong is told as well.
func TestDoTellsEachMembersLossOnce(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		b, m := s.Mutex(t, s.Ours, "/b"), locktest.Owner(t)
		taken := locktest.NewSemaphoreMutex(t, s.Ours, "/taken")
		multi := recipes.NewInterProcessMultiLockOf(s.Lock, taken, b)
		err := recipes.Do(t.Context(), multi, func(
			ctx context.Context, hold *recipes.Hold,
		) error {
			holds := multi.Holds(ctx)
			s.Lose(t, holds[0])
			s.Lose(t, holds[2])
			require.NoError(t, taken.Release(m), "as any caller may")
			<-ctx.Done()
			require.Equal(t, context.Cause(ctx), hold.Err())
			return context.Cause(ctx)
		})
		require.Equal(t, 2, locktest.Losses(err), "%v", err)
		require.ErrorIs(t, err, recipes.ErrNotOwner)
	})
}

func TestDoReleasesWhenFnEndsItsGoroutine(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = recipes.Do(t.Context(), s.Lock, func(
				context.Context, *recipes.Hold,
			) error {
				runtime.Goexit()
				return nil
			})
		}()
		<-ended
		require.False(t, s.Lock.IsAcquiredInThisProcess())
		time.Sleep(time.Second)
		require.Equal(t, []string{"/lock"}, s.Cluster.Znodes())
	})
}

// What fn has left behind is told to stop before the lock is released.
func TestTheContextOfDoEndsBeforeTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var within context.Context
		var atDelete error
		cluster := zktest.Start(t, zktest.WithLog(func(zktest.Transaction) {
			if within != nil && atDelete == nil {
				atDelete = context.Cause(within)
			}
		}))
		lock := locktest.NewMutex(t, locktest.ConnectThrough(t, cluster, "ours"), "/lock")
		require.NoError(t, recipes.Do(t.Context(), lock, func(
			ctx context.Context, _ *recipes.Hold,
		) error {
			within = ctx
			return nil
		}))
		require.ErrorIs(t, atDelete, recipes.ErrNotOwner)
	})
}

// The observer of a release gets the ctx of Do's caller, and not fn's.
func TestDoReleasesWithItsCallersContext(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		type key struct{}
		released := false
		lock := b.Mutex(t, b.Ours, "/observed", recipes.WithObserver(func(
			ctx context.Context, e recipes.Event,
		) {
			if e.Kind == recipes.EventReleased {
				released = true
				require.Equal(t, "value", ctx.Value(key{}))
				require.NoError(t, ctx.Err())
			}
		}))
		ctx := context.WithValue(t.Context(), key{}, "value")
		require.NoError(t, recipes.Do(ctx, lock, locktest.Nothing))
		require.True(t, released)
	})
}

// A release has all the time that Do's caller has.
func TestDoWaitsForItsRelease(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		err := recipes.Do(t.Context(), s.Lock, func(
			context.Context, *recipes.Hold,
		) error {
			link := s.Cluster.Link("ours")
			link.Freeze()
			time.AfterFunc(1500*time.Millisecond, link.Thaw)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []string{"/lock"}, s.Cluster.Znodes())
	})
}

// Any caller may release a semaphore mutex, so that another has it by the time that a Do
// ends, or even begins: that one's is not the Do's, neither to release nor to run under.
func TestDoLeavesAnothersLeaseAlone(t *testing.T) {
	locks := map[string]func(
		m *recipes.InterProcessSemaphoreMutex,
	) recipes.InterProcessLock{
		"alone": func(m *recipes.InterProcessSemaphoreMutex) recipes.InterProcessLock {
			return m
		},
		"in a multi lock": func(
			m *recipes.InterProcessSemaphoreMutex,
		) recipes.InterProcessLock {
			return recipes.NewInterProcessMultiLockOf(m)
		},
	}
	for name, wrap := range locks {
		for _, moment := range []string{"in fn", "before fn"} {
			locktest.Run(t, name+" "+moment, func(t *testing.T, s *locktest.Bubble) {
				var passed, ran atomic.Bool
				var m *recipes.InterProcessSemaphoreMutex
				next := locktest.Owner(t)
				passOn := func() {
					if passed.Swap(true) {
						return
					}
					assert.NoError(t, m.Release(locktest.Owner(t)))
					assert.NoError(
						t, <-locktest.Start(func() error { return m.Acquire(next) }),
					)
				}
				m = locktest.NewSemaphoreMutex(t, s.Ours, "/mutex",
					recipes.WithObserver(func(_ context.Context, e recipes.Event) {
						if e.Kind == recipes.EventAcquired && moment == "before fn" {
							passOn()
						}
					}))
				fn := func(context.Context, *recipes.Hold) error {
					ran.Store(true)
					passOn()
					return nil
				}
				require.ErrorIs(
					t, recipes.Do(t.Context(), wrap(m), fn), recipes.ErrNotOwner,
				)
				require.Equal(t, moment == "in fn", ran.Load())
				require.True(
					t, m.IsAcquiredInThisProcess(), "the next one's was released",
				)
				require.NoError(t, m.Release(next))
			})
		}
	}
}

// Two goroutines of one owner take turns at a semaphore mutex. That the first one's hold
// is lost is nothing to the second, which has a hold of its own.
func TestDoTellsTwoGoroutinesOfAnOwnerApart(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m := locktest.NewSemaphoreMutex(t, b.Ours, "/s")
		ctx, proceed := locktest.Owner(t), make(chan struct{})
		do := func(held chan<- *recipes.Hold) <-chan error {
			return locktest.Start(func() error {
				return recipes.Do(ctx, m, func(_ context.Context, h *recipes.Hold) error {
					held <- h
					<-proceed
					return h.Err()
				})
			})
		}
		held := make(chan *recipes.Hold)
		first := do(held)
		lost := <-held
		second := do(held)
		time.Sleep(time.Second)
		b.Lose(t, lost)
		kept := <-held
		require.NoError(t, kept.Err())
		require.Greater(t, kept.FencingToken(), lost.FencingToken())
		proceed <- struct{}{}
		proceed <- struct{}{}
		require.ErrorIs(t, <-first, recipes.ErrLockLost)
		require.NoError(t, <-second)
		require.False(t, m.IsAcquiredInThisProcess())
	})
}

// A worker that re-enters keeps the lock, as its caller, when Do has ended.
func TestDoEndsBeforeAWorkerThatReentered(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		in, leave := make(chan struct{}), make(chan struct{})
		var late <-chan error
		require.NoError(t, recipes.Do(t.Context(), s.Lock,
			func(ctx context.Context, _ *recipes.Hold) error {
				late = locktest.Start(func() error {
					if err := s.Lock.Acquire(ctx); err != nil {
						return err
					}
					close(in)
					<-leave
					return s.Lock.Release(ctx)
				})
				<-in
				return nil
			}))
		ok, err := s.Mutex(t, s.Other, "/lock").AcquireTimeout(
			locktest.Owner(t), time.Second,
		)
		require.NoError(t, err)
		require.False(t, ok)
		close(leave)
		require.NoError(t, <-late)
		require.False(t, s.Lock.IsAcquiredInThisProcess())
	})
}

// A doScene is a mutex, and the session that uses it.
type doScene struct {
	peer *locktest.Peer
	path string
	lock *recipes.InterProcessMutex
}

func TestDo(t *testing.T) {
	t.Parallel()
	with := func(name string, test func(t *testing.T, s *doScene)) {
		zkserver.Run(t, name, func(t *testing.T) {
			p, path := locktest.SharedPeer(t), zkserver.Path(t)
			test(t, &doScene{p, path, p.Mutex(path)})
		})
	}
	with("the goroutine is the owner", func(t *testing.T, s *doScene) {
		require.NoError(t, s.lock.Acquire(t.Context()))
		err := recipes.Do(t.Context(), s.lock, func(
			_ context.Context, hold *recipes.Hold,
		) error {
			require.Same(t, hold, s.lock.Hold(t.Context()))
			return s.lock.Release(t.Context()) // of the youngest, which is Do's
		})
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		require.True(t, s.lock.IsOwned(t.Context()))
		require.NoError(t, s.lock.Release(t.Context()))
		require.False(t, s.lock.IsAcquiredInThisProcess())
	})
	with("fn's error comes back as it is", func(t *testing.T, s *doScene) {
		failed := errors.New("failed")
		require.Equal(t, failed, recipes.Do(
			t.Context(), s.lock,
			func(context.Context, *recipes.Hold) error { return failed },
		))
		require.False(t, s.lock.IsAcquiredInThisProcess())
	})
	with("a panic releases", func(t *testing.T, s *doScene) {
		require.PanicsWithValue(t, "oh", func() {
			_ = recipes.Do(
				t.Context(), s.lock,
				func(context.Context, *recipes.Hold) error { panic("oh") },
			)
		})
		require.False(t, s.lock.IsAcquiredInThisProcess())
		require.Empty(t, s.peer.Children(s.path))
	})
	with("a ctx that ends in fn does not keep the lock", func(t *testing.T, s *doScene) {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, recipes.Do(
			ctx, s.lock,
			func(context.Context, *recipes.Hold) error { cancel(); return nil },
		))
		require.Empty(t, s.peer.Children(s.path))
	})
}

// A wrapper embeds a lock; the zero one none.
type wrapper struct{ recipes.InterProcessLock }

// A release that is not confirmed was hidden behind the loss of another lock, with which
// its ctx had ended.
func TestDoTellsOfAReleaseBesideALoss(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var inner error
		_ = recipes.Do(t.Context(), b.Mutex(t, b.Other, "/outer"), func(
			ctx context.Context, outer *recipes.Hold,
		) error {
			inner = recipes.Do(ctx, b.Lock, func(
				ctx context.Context, _ *recipes.Hold,
			) error {
				b.Cluster.Link("ours").Stall(zktest.Both)
				b.Lose(t, outer)
				<-ctx.Done()
				return context.Cause(ctx)
			})
			return nil
		})
		require.ErrorIs(t, inner, recipes.ErrLockLost)
		require.ErrorContains(t, inner, "release not confirmed")
	})
}

// The ctx of a hold ends with its release, whose error said that the caller is no owner.
func TestAReleaseByTheCtxOfItsHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		within := locktest.Acquire(t.Context(), t, b.Lock).Context(t.Context())
		b.Cluster.Link("ours").Stall(zktest.Both)
		err := b.Lock.Release(within)
		require.ErrorContains(t, err, "release not confirmed")
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, recipes.ErrNotOwner)
	})
}
