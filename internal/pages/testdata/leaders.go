package page

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other, err := recipes.NewLeaderLatch(
			b.Other, "/election", recipes.WithData([]byte("host-7")),
		)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		routes := make(chan string)
		done := locktest.Start(func() error {
			return follow(ctx, b.Ours, func(leader string) { routes <- leader })
		})
		require.Empty(t, locktest.Within(t, routes, "nobody leads"))
		_, err = other.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, "host-7", locktest.Within(t, routes, "one leads"))
		require.NoError(t, other.Close(ctx))
		require.Empty(t, locktest.Within(t, routes, "nobody leads again"))
		cancel()
		require.NoError(t, locktest.Within(t, done, "the loop ends with ctx"))
	})
}

func follow(
	ctx context.Context, client *recipes.Client, route func(leader string),
) error {
	//pages:block
	return nil
}
