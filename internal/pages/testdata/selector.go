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
		watcher, err := recipes.NewLeaderSelector(b.Other, "/election")
		require.NoError(t, err)
		failed := errors.New("the work failed")
		var tokens []int64
		err = campaign(t.Context(), b.Ours, func(ctx context.Context, token int64) error {
			tokens = append(tokens, token)
			leader, leads, err := watcher.Leader(ctx)
			require.NoError(t, err)
			require.True(t, leads)
			require.Equal(t, "host-7", string(leader.Data))
			switch len(tokens) {
			case 1:
				return nil // it queues anew
			case 2:
				b.Cluster.ExpireSession(b.Ours.SessionID())
				<-ctx.Done()
				return failed // likewise: the loss counts for more
			}
			return failed
		})
		require.ErrorIs(t, err, failed)
		require.Len(t, tokens, 3)
		require.IsIncreasing(t, tokens)

		ctx, cancel := context.WithCancel(t.Context())
		err = campaign(ctx, b.Ours, func(context.Context, int64) error {
			cancel()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func campaign(
	ctx context.Context, client *recipes.Client,
	work func(ctx context.Context, token int64) error,
) error {
	//pages:block
	return err
}
