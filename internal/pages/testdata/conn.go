package page

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

var traced []string

func trace(what, path string) (end func()) {
	traced = append(traced, what+" "+path)
	return func() { traced = append(traced, "end") }
}

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock, err := recipes.NewInterProcessMutex(&tracing{b.Ours}, "/traced")
		require.NoError(t, err)
		var path string
		err = recipes.Do(t.Context(), lock,
			func(_ context.Context, hold *recipes.Hold) error {
				path = hold.Path()
				_, err := hold.Multi() // which the Client has, and Unwrap leads to
				return err
			})
		require.NoError(t, err)
		require.Equal(t, []string{"delete " + path, "end"}, traced)
	})
}

//pages:block
