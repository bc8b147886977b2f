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
		other, err := recipes.NewInterProcessReadWriteLock(b.Other, "/locks/config")
		require.NoError(t, err)
		ran := 0
		require.NoError(t, config(t.Context(), b.Ours, func(ctx context.Context) error {
			ran++
			reads, err := other.ReadLock().AcquireTimeout(ctx, 0)
			require.NoError(t, err)
			require.True(t, reads, "two do not read at the same time")
			require.NoError(t, other.ReadLock().Release(ctx))
			writes, err := other.WriteLock().AcquireTimeout(ctx, 0)
			require.False(t, writes, "one writes while another reads")
			return err
		}))
		require.Equal(t, 1, ran)
		require.NoError(t, other.WriteLock().Acquire(t.Context()))
		require.NoError(t, other.WriteLock().Release(t.Context()))
	})
}

func config(
	ctx context.Context, client *recipes.Client, read func(ctx context.Context) error,
) error {
	//pages:block
	return err
}
