package page

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := t.Context()
		lock := b.Mutex(t, b.Ours, "/locks/report")
		other := b.Mutex(t, b.Other, "/locks/report")
		ran := 0
		work := func() { ran++ }
		require.NoError(t, acquire(ctx, lock, work))
		require.NoError(t, other.Acquire(ctx), "the lock was not released")
		require.NoError(t, acquire(ctx, lock, work))
		require.Equal(t, 1, ran)
		require.NoError(t, other.Release(ctx))
	})
}

func acquire(ctx context.Context, lock recipes.InterProcessLock, work func()) error {
	//pages:block
	return nil
}
