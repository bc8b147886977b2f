package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// Any caller may release a semaphore mutex, also while a multi lock waits for its next
// member.
func TestAttackAMemberIsReleasedByAnotherWhileAcquiring(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m, err := recipes.NewInterProcessSemaphoreMutex(b.Ours, "/m")
		require.NoError(t, err)
		busy := b.Mutex(t, b.Other, "/lock")
		others := locktest.Owner(t)
		require.NoError(t, busy.Acquire(others))
		multi := recipes.NewInterProcessMultiLockOf(m, b.Lock)

		time.AfterFunc(time.Second, func() { _ = m.Release(locktest.Owner(t)) })
		held, err := multi.AcquireTimeout(locktest.Owner(t), 2*time.Second)
		require.NoError(t, err, "the time ran out while others were ahead")
		require.False(t, held)

		time.AfterFunc(time.Second, func() { _ = m.Release(locktest.Owner(t)) })
		time.AfterFunc(2*time.Second, func() { _ = busy.Release(others) })
		ctx := locktest.Owner(t)
		require.NoError(t, multi.Acquire(ctx), "it starts over")
		require.NoError(t, multi.Hold(ctx).Err())
		require.NoError(t, multi.Release(ctx))
	})
}

// Do's ctx of a semaphore mutex ends as another caller releases it. That of a multi lock
// of it did not: the work went on beside the next owner's.
func TestAttackAMemberIsReleasedByAnotherUnderDo(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m, err := recipes.NewInterProcessSemaphoreMutex(b.Ours, "/m")
		require.NoError(t, err)
		for name, lock := range map[string]recipes.InterProcessLock{
			"alone": m,
			"multi": recipes.NewInterProcessMultiLockOf(m, b.Lock),
			"nested": recipes.NewInterProcessMultiLockOf(
				recipes.NewInterProcessMultiLockOf(m), b.Lock),
		} {
			err = recipes.Do(t.Context(), lock, func(
				ctx context.Context, hold *recipes.Hold,
			) error {
				require.NoError(t, m.Release(locktest.Owner(t)))
				synctest.Wait()
				require.ErrorIs(t, context.Cause(ctx), recipes.ErrNotOwner, name)
				late := hold.Context(t.Context())
				require.ErrorIs(t, context.Cause(late), recipes.ErrNotOwner, name)
				return nil
			})
			require.ErrorIs(t, err, recipes.ErrNotOwner, name)
		}
	})
}

// A multi lock for each use leaves something at a member that is held on, if its own
// record of that was ended by the member's Release.
func TestAttackHeapOfMembersThatWereReleasedSingly(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		require.NoError(t, b.Lock.Acquire(ctx))
		before := locktest.Heap()
		const times = 10_000
		for range times {
			hold, err := recipes.Acquire(ctx, recipes.NewInterProcessMultiLockOf(b.Lock))
			require.NoError(t, err)
			require.NoError(t, b.Lock.Release(ctx))
			require.ErrorIs(t, hold.Release(ctx), recipes.ErrNotOwner)
		}
		require.Less(t, (locktest.Heap()-before)/times, int64(50), "bytes")
	})
}
