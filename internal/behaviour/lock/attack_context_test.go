package lock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// Who hears of the loss releases at once: the ctx tells of the loss, not of the release.
func TestAttackTheCauseOfALossIsNotTheRelease(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for range 300 {
			hold := locktest.Acquire(t.Context(), t, b.Lock)
			ctx := hold.Context(t.Context())
			b.Lose(t, hold)
			require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrLockLost)
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), recipes.ErrLockLost)
		}
	})
}

// An observer that panics: what it was told of is given back, and so is what others
// found of it.
func TestAttackTheCtxOfAHoldThatAnObserverGaveBack(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var m *recipes.InterProcessSemaphoreMutex
		var found context.Context
		m, err := recipes.NewInterProcessSemaphoreMutex(b.Ours, "/m",
			recipes.WithObserver(func(ctx context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired {
					found = m.Hold(t.Context()).Context(t.Context())
					panic("observer")
				}
			}))
		require.NoError(t, err)
		require.Panics(t, func() { _ = m.Acquire(t.Context()) })
		require.Nil(t, m.Hold(t.Context()))
		require.ErrorIs(t, context.Cause(found), recipes.ErrNotOwner)
	})
}
