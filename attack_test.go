package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// What fn starts can outlast Do, by context.WithoutCancel(ctx). It goes on to stand for the
// goroutine that called Do, which is let in beside it: two are inside. (Owners of a ctx should
// end with the hold that Do shared; see the report.)
func TestAttackAWorkerThatOutlastsDo(t *testing.T) {
	inDoScene(t, func(t *testing.T, s *doScene) {
		var late <-chan error
		in, leave := make(chan struct{}), make(chan struct{})
		pass := func(context.Context, *recipes.Hold) error { return nil }
		require.NoError(t, recipes.Do(t.Context(), s.lock,
			func(ctx context.Context, _ *recipes.Hold) error {
				late = start(func() error {
					time.Sleep(time.Second)
					return recipes.Do(context.WithoutCancel(ctx), s.lock, func(ctx context.Context, _ *recipes.Hold) error {
						close(in)
						<-leave
						return recipes.Do(ctx, s.lock, pass)
					})
				})
				return nil
			}))
		<-in
		err := recipes.Do(t.Context(), s.lock, pass, recipes.WaitAtMost(time.Second))
		close(leave)
		require.NoError(t, <-late)
		require.ErrorIs(t, err, recipes.ErrBusy, "two were inside")
		require.NoError(t, recipes.Do(t.Context(), s.lock, pass))
	})
}
