package semaphore_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// semaphoreOf returns a semaphore of ours with a fixed maximum.
func semaphoreOf(
	t *testing.T, b *locktest.Bubble, most int,
) *recipes.InterProcessSemaphoreV2 {
	t.Helper()
	return locktest.NewSemaphore(t, b.Ours, "/s", most)
}

// An n that cannot work is refused by each way to acquire, before anything is sent.
func TestAsLockRefusesItsN(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := semaphoreOf(t, b, 3)
		for n, want := range map[int]string{
			0: "n: 0 ", -1: "n: -1 ", math.MinInt: "n: -", 4: "n: 4 ",
			math.MaxInt: "n: " + strconv.Itoa(math.MaxInt),
		} {
			lock := s.AsLock(n)
			_, tryErr := lock.AcquireTimeout(t.Context(), 0)
			_, holdErr := recipes.Acquire(t.Context(), lock)
			for _, err := range []error{
				lock.Acquire(t.Context()), tryErr, holdErr,
				recipes.NewInterProcessMultiLockOf(lock).Acquire(t.Context()),
				recipes.Do(t.Context(), lock, func(context.Context, *recipes.Hold) error {
					t.Error("fn runs")
					return nil
				}),
			} {
				require.ErrorContains(t, err, "recipes: acquire /s: "+want)
				require.NotErrorIs(t, err, recipes.ErrBusy)
			}
			require.False(t, lock.IsAcquiredInThisProcess())
			require.Nil(t, lock.Hold(t.Context()))
			require.ErrorIs(t, lock.Release(t.Context()), recipes.ErrNotOwner)
		}
		require.Empty(t, b.Cluster.Znodes())
	})
}

// With a shared maximum below n it waits until there are so many.
func TestAsLockWaitsForASharedMaximum(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := t.Context()
		require.NoError(t, recipes.SetSharedCount(ctx, b.Ours, "/most", 1))
		s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/most")
		lock := s.AsLock(2)
		locktest.RequireBusy(ctx, t, lock)
		acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
		time.Sleep(time.Second)
		require.NoError(t, recipes.SetSharedCount(ctx, b.Ours, "/most", 2))
		require.NoError(t, <-acquired)
		require.NoError(t, lock.Release(ctx))
	})
}

// A single lease waits in the queue, where others see it, also while the maximum is 0.
func TestOneLeaseQueuesWhileTheSharedMaximumIsZero(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		require.NoError(t, recipes.SetSharedCount(t.Context(), b.Ours, "/most", 1))
		_, err := b.Ours.Set("/most", make([]byte, 4), -1)
		require.NoError(t, err)
		s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/most")
		lock := s.AsLock(1)
		acquired := locktest.Start(func() error { return lock.Acquire(t.Context()) })
		time.Sleep(time.Second)
		nodes, err := s.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 1)
		require.NoError(t, recipes.SetSharedCount(t.Context(), b.Ours, "/most", 1))
		require.NoError(t, <-acquired)
	})
}

// There is room for two holders at a time through one value. Each releases its own; any
// other caller the one that was granted last of those that are held.
func TestAsLockHasSeveralHolders(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := semaphoreOf(t, b, 5)
		lock, again := s.AsLock(2), s.AsLock(2)
		one, two, stranger := locktest.Owner(t), locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, lock.Acquire(one))
		require.NoError(t, lock.Acquire(two))
		require.False(t, locktest.Gets(stranger, t, lock), "a fifth lease is not two")
		require.False(t, locktest.Gets(one, t, lock), "it is not reentrant")
		require.ErrorIs(t, again.Release(one), recipes.ErrNotOwner, "another lock")
		first, second := lock.Hold(one), lock.Hold(two)
		require.NotSame(t, first, second)
		require.Same(t, second, lock.Hold(stranger))
		require.Greater(t, second.FencingToken(), first.FencingToken())

		require.NoError(t, lock.Release(one))
		require.NoError(t, second.Err())
		require.True(t, locktest.Gets(one, t, lock))
		require.Same(t, lock.Hold(one), lock.Hold(stranger))
		require.NoError(t, lock.Release(stranger), "the latest")
		require.NoError(t, second.Err())
		require.Same(t, second, lock.Hold(one), "which has none of its own")
		require.NoError(t, lock.Release(stranger), "the one that is left")
		for _, ctx := range []context.Context{one, two, stranger} {
			require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
		}
		require.False(t, lock.IsAcquiredInThisProcess())
		four, err := s.AcquireTimeout(one, 5, 0)
		require.NoError(t, err)
		require.Len(t, four, 5, "all are back")
		require.NoError(t, s.ReturnAll(one, four))
	})
}

// How much room a shared maximum leaves is not known: what was granted first is held as
// well, and anybody's once the latest is gone.
func TestAsLockOfASharedMaximumHasSeveralHolders(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		require.NoError(t, recipes.SetSharedCount(t.Context(), b.Ours, "/most", 2))
		s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/most")
		lock, one, two := s.AsLock(1), locktest.Owner(t), locktest.Owner(t)
		first := locktest.Acquire(one, t, lock)
		require.NoError(t, lock.Acquire(two))
		require.NoError(t, lock.Release(two))
		require.Same(t, first, lock.Hold(two))
		require.NoError(t, lock.Release(two))
		require.ErrorIs(t, lock.Release(one), recipes.ErrNotOwner)
	})
}

// One owner acquires it twice: what it acquired last it releases first.
func TestAsLockTwiceByOneOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock, ctx := semaphoreOf(t, b, 2).AsLock(1), locktest.Owner(t)
		first, second := locktest.Acquire(ctx, t, lock), locktest.Acquire(ctx, t, lock)
		require.NotSame(t, first, second)
		require.Same(t, second, lock.Hold(ctx))
		require.NoError(t, lock.Release(ctx))
		require.ErrorIs(t, second.Release(ctx), recipes.ErrNotOwner)
		require.Same(t, first, lock.Hold(ctx))
		require.NoError(t, first.Release(ctx))
	})
}

// A lost hold is its owner's to release, while others hold the lock: a stranger's release
// takes what is held.
func TestAsLockLeavesALostHoldToItsOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := semaphoreOf(t, b, 2).AsLock(1)
		one, two, stranger := locktest.Owner(t), locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, lock.Acquire(one))
		require.NoError(t, lock.Acquire(two))
		held, lost := lock.Hold(one), lock.Hold(two)
		b.Lose(t, lost)
		require.True(t, lock.IsAcquiredInThisProcess())
		require.Same(t, lost, lock.Hold(two))
		require.Same(t, held, lock.Hold(stranger))
		require.NoError(t, lock.Release(stranger))
		require.ErrorIs(t, lock.Release(one), recipes.ErrLockLost, "the value's last")
		require.ErrorIs(t, lock.Release(two), recipes.ErrNotOwner)
	})
}

// The hold stands for all leases.
func TestAsLocksHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := semaphoreOf(t, b, 3)
		lock := s.AsLock(3)
		for lose := range 3 {
			hold := locktest.Acquire(t.Context(), t, lock)
			nodes, err := s.ParticipantNodes(t.Context())
			require.NoError(t, err)
			require.Len(t, nodes, 3)
			require.Contains(t, nodes, hold.Path())
			for _, node := range nodes {
				_, stat, err := b.Other.Get(node)
				require.NoError(t, err)
				require.LessOrEqual(t, stat.Czxid, hold.FencingToken())
			}
			_, err = hold.Multi()
			require.NoError(t, err)
			require.NoError(t, b.Other.Delete(nodes[lose], -1))
			<-hold.Lost()
			require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
			require.ErrorContains(t, hold.Err(), nodes[lose])
			require.False(t, lock.IsAcquiredInThisProcess())
			_, err = hold.Multi()
			require.ErrorIs(t, err, recipes.ErrLockLost)
			require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrLockLost)
			require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrNotOwner)
		}
		time.Sleep(time.Second)
		require.Equal(t, []string{"/s", "/s/leases", "/s/locks"}, b.Cluster.Znodes())
	})
}

// Leases and mutexes are acquired together, or not at all, and a lost lease that was not
// released keeps its owner out.
func TestAMultiLockOfLeases(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := semaphoreOf(t, b, 2)
		leases, ctx := s.AsLock(2), locktest.Owner(t)
		both := recipes.NewInterProcessMultiLockOf(b.Lock, leases)
		taken, err := s.Acquire(ctx)
		require.NoError(t, err)
		locktest.RequireBusy(ctx, t, both)
		require.False(t, b.Lock.IsAcquiredInThisProcess())
		require.NoError(t, taken.Release(ctx))

		require.NoError(t, recipes.Do(ctx, both, func(
			ctx context.Context, hold *recipes.Hold,
		) error {
			require.Same(t, leases.Hold(ctx), both.Holds(ctx)[1])
			require.Equal(t, leases.Hold(ctx).Path(), hold.Path())
			more, err := s.AcquireTimeout(ctx, 1, 0)
			require.NoError(t, err)
			require.Nil(t, more)
			_, err = hold.Multi()
			return err
		}))
		hold := locktest.Acquire(ctx, t, both)
		b.Lose(t, hold)
		require.ErrorIs(t, both.Acquire(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, locktest.ReleaseElsewhere(t, hold), recipes.ErrLockLost)
		require.NoError(t, locktest.Acquire(ctx, t, both).Release(ctx))
	})
}
