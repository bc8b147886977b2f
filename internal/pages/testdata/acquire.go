package page

import (
	"context"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := b.Mutex(t, b.Other, "/lock")
		done := make(chan error)
		require.NoError(t, begin(t.Context(), b.Lock, func(context.Context, int64) {
			held, err := other.AcquireTimeout(t.Context(), 0)
			require.False(t, held, "the lock is not held while the work is done")
			done <- err
		}))
		require.NoError(t, <-done)
		require.NoError(t, other.Acquire(t.Context()))
		began := time.Now()
		err := begin(t.Context(), b.Lock, func(context.Context, int64) {
			t.Error("the work overlapped with that of another process")
		})
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.Equal(t, time.Minute, time.Since(began).Truncate(time.Second))
		require.NoError(t, other.Release(t.Context()))

		require.NoError(t, begin(t.Context(), b.Lock, func(ctx context.Context, _ int64) {
			b.Cluster.ExpireSession(b.Ours.SessionID())
			<-ctx.Done()
			done <- context.Cause(ctx)
		}))
		require.ErrorIs(t, <-done, recipes.ErrLockLost)
		time.Sleep(time.Second)
	})
}

func begin(
	ctx context.Context, lock recipes.InterProcessLock,
	work func(ctx context.Context, token int64),
) error {
	//pages:block
	return nil
}
