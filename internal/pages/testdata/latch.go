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
		failed := errors.New("the work failed")
		var tokens []int64
		work := func(ctx context.Context, token int64) error {
			tokens = append(tokens, token)
			if len(tokens) == 1 {
				b.Cluster.ExpireSession(b.Ours.SessionID())
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return failed
		}
		require.ErrorIs(t, campaign(t.Context(), b.Ours, work), failed)
		require.Len(t, tokens, 2, "it does not lead again after a loss")
		require.IsIncreasing(t, tokens)
		require.Empty(t, locktest.Children(t, b.Other, "/election"), "it was not closed")
	})
}

func campaign(
	ctx context.Context, client *recipes.Client,
	work func(ctx context.Context, token int64) error,
) error {
	//pages:block
}
