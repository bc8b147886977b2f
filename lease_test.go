package recipes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A Lease is a hold, with all that one can do.
func TestLeaseHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		semaphore, err := recipes.NewInterProcessSemaphoreV2(s.Ours, "/semaphore", 2)
		require.NoError(t, err)
		leases, err := semaphore.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		hold := leases[0].Hold()
		require.Same(t, hold, leases[0].Hold())
		require.NotSame(t, hold, leases[1].Hold())
		require.Equal(t, "/semaphore/leases/"+leases[0].NodeName(), hold.Path())
		ctx, cancel := hold.Context(t.Context())
		defer cancel()
		_, err = hold.Multi()
		require.NoError(t, err)
		s.Lose(t, hold)
		<-ctx.Done()
		require.Equal(t, leases[0].Err(), hold.Err())
		require.NoError(t, leases[1].Hold().Err())
		require.ErrorIs(t, leases[0].Release(t.Context()), recipes.ErrLockLost)
	})
}
