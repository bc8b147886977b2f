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
		ran, tokens := 0, map[int64]bool{}
		err := reports(t.Context(), b.Ours, func(_ context.Context, token int64) error {
			ran++
			tokens[token] = true
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 1000, ran)
		require.Len(t, tokens, 1, "it took more than one create")
		require.Len(t, locktest.Children(t, b.Other, "/locks/report"), 1)
		time.Sleep(11 * time.Second)
		require.Empty(t, locktest.Children(t, b.Other, "/locks/report"))
	})
}

func reports(
	ctx context.Context, client *recipes.Client,
	work func(ctx context.Context, token int64) error,
) error {
	//pages:block
	return nil
}
