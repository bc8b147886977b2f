package page

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		over := errors.New("enough")
		serve := func(context.Context) error {
			data, stat, err := b.Other.Get("/services/api")
			require.NoError(t, err)
			require.Equal(t, "10.0.0.1:80", string(data))
			require.Equal(t, b.Ours.SessionID(), stat.EphemeralOwner)
			return over
		}
		require.ErrorIs(t, register(t.Context(), b.Ours, serve), over)
		_, _, err := b.Other.Get("/services/api")
		require.ErrorIs(t, err, zk.ErrNoNode, "it was not closed")
	})
}

func register(
	ctx context.Context, client *recipes.Client, serve func(ctx context.Context) error,
) error {
	//pages:block
}
