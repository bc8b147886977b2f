package page

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := b.Mutex(t, b.Other, "/locks/report")
		var tokens []int64
		write := func(ctx context.Context, token int64) error {
			tokens = append(tokens, token)
			held, err := other.AcquireTimeout(ctx, 0)
			require.False(t, held, "the lock is not held")
			return err
		}
		require.NoError(t, do(t.Context(), b.Ours, write))
		require.NoError(t, do(t.Context(), b.Ours, write))
		require.Len(t, tokens, 2)
		require.Less(t, tokens[0], tokens[1])
	})
}

func do(
	ctx context.Context, client *recipes.Client,
	write func(ctx context.Context, token int64) error,
) error {
	//pages:block
	return err
}
