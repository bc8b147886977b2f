package page

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := t.Context()
		other, err := recipes.NewInterProcessSemaphoreV2(b.Other, "/limits/exports", 5)
		require.NoError(t, err)
		ran := 0
		require.NoError(t, export(ctx, b.Ours, func() {
			ran++
			four, err := other.AcquireTimeout(ctx, 4, 0)
			require.NoError(t, err)
			require.Len(t, four, 4)
			fifth, err := other.AcquireTimeout(ctx, 1, 0)
			require.NoError(t, err)
			require.Nil(t, fifth, "the lease is not out while the work is done")
			require.NoError(t, other.ReturnAll(ctx, four))
		}))
		require.Equal(t, 1, ran)

		all, err := other.AcquireTimeout(ctx, 5, 0)
		require.NoError(t, err)
		require.Len(t, all, 5, "the lease was not returned")
		began := time.Now()
		err = export(ctx, b.Ours, func() { t.Error("a sixth lease was out") })
		require.EqualError(t, err, "all five are in use")
		require.Equal(t, time.Minute, time.Since(began).Truncate(time.Second))
		require.NoError(t, other.ReturnAll(ctx, all))
	})
}

func export(ctx context.Context, client *recipes.Client, work func()) error {
	//pages:block
	work()
	return nil
}
