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
		other := b.Mutex(t, b.Other, "/locks/report")
		ran := 0
		err := report(t.Context(), b.Ours, func(ctx context.Context, _ int64) error {
			ran++
			held, err := other.AcquireTimeout(ctx, 0)
			require.False(t, held, "the lock is not held while the work is done")
			return err
		})
		require.NoError(t, err)
		require.Equal(t, 1, ran)

		err = report(t.Context(), b.Ours, func(ctx context.Context, _ int64) error {
			b.Cluster.ExpireSession(b.Ours.SessionID())
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, recipes.ErrLockLost)

		require.NoError(t, other.Acquire(t.Context()))
		began := time.Now()
		err = report(t.Context(), b.Ours, func(context.Context, int64) error {
			t.Error("the work overlapped with that of another process")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(began).Truncate(time.Second))
		require.NoError(t, other.Release(t.Context()))
	})
}

func report(
	ctx context.Context, client *recipes.Client,
	work func(ctx context.Context, token int64) error,
) error {
	//pages:block
	return err
}
