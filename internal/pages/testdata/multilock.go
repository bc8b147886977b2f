package page

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		members := []*recipes.InterProcessMutex{
			b.Mutex(t, b.Other, "/accounts/a"), b.Mutex(t, b.Other, "/accounts/b"),
		}
		ran := 0
		err := transfer(t.Context(), b.Ours, func(ctx context.Context, _ int64) error {
			ran++
			for _, member := range members {
				held, err := member.AcquireTimeout(ctx, 0)
				require.NoError(t, err)
				require.False(t, held, "a member is not held while the work is done")
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 1, ran)
		for _, member := range members {
			require.NoError(t, member.Acquire(t.Context()))
			require.NoError(t, member.Release(t.Context()))
		}
	})
}

func transfer(
	ctx context.Context, client *recipes.Client,
	work func(ctx context.Context, token int64) error,
) error {
	//pages:block
	return err
}
