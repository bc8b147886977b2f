package hold_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// Who hears of a loss may try again at once: the queue is empty, and whatever this
// process knows of it must say so. A single attempt does not wait for that to be found
// out.
func TestASingleAttemptRightAfterALoss(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]recipes.Option{
		"alone": nil, "cached": {recipes.WithCaching(time.Hour, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				lock := b.Mutex(t, b.Ours, "/lock", opts...)
				for range 300 {
					ctx := recipes.WithOwner(context.Background())
					require.NoError(t, lock.Acquire(ctx))
					hold := lock.Hold(ctx)
					b.Lose(t, hold)
					next := recipes.WithOwner(context.Background())
					free, err := lock.AcquireTimeout(next, 0)
					require.NoError(t, err)
					require.True(t, free, "nobody is in the queue")
					require.NoError(t, lock.Release(next))
					require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
				}
			})
		})
	}
}
