package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A loss while the release waits for its answer is told from one that was there before: the
// work was done by then.
func TestALossWithinTheRelease(t *testing.T) {
	const within = "while it was being released"
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		link := s.Server.Link("ours")
		err := recipes.Do(t.Context(), s.Lock, func(_ context.Context, hold *recipes.Hold) error {
			link.Freeze()
			return hold.Err()
		})
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorContains(t, err, "recipes: release /lock: "+within+": the lock was lost: ")
		link.Thaw()

		semaphore, err := recipes.NewInterProcessSemaphoreV2(s.Ours, "/semaphore", 1)
		require.NoError(t, err)
		lease, err := semaphore.Acquire(t.Context())
		require.NoError(t, err)
		link.Freeze()
		require.ErrorContains(t, lease.Release(t.Context()), within)
		link.Thaw()
		time.Sleep(time.Minute)

		for name, lose := range map[string]func(*recipes.Hold){
			"known before":          func(hold *recipes.Hold) { s.Lose(t, hold) },
			"deleted, and not seen": func(hold *recipes.Hold) { require.NoError(t, s.Other.Delete(hold.Path(), -1)) },
		} {
			err := recipes.Do(t.Context(), s.Lock, func(_ context.Context, hold *recipes.Hold) error {
				lose(hold)
				return nil
			})
			require.ErrorIs(t, err, recipes.ErrLockLost, name)
			require.NotContains(t, err.Error(), within, name)
		}
	})
}
