package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A worker that locks once for each job, and a job's ctx that outlives its Do: both were
// inside at once, as the goroutine of the worker is an owner again.
func TestAttackAKeptCtxIsRevivedByItsGoroutine(t *testing.T) {
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

func TestAttackAKeptCtxIsRevivedByWithOwner(t *testing.T) {
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
