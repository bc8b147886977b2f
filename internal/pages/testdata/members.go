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
		ctx, cancel := context.WithCancel(t.Context())
		routes := make(chan []recipes.Member)
		done := locktest.Start(func() error {
			return follow(ctx, b.Ours, func(m []recipes.Member) { routes <- m })
		})
		require.Empty(t, locktest.Within(t, routes, "nobody is there"))
		member, err := recipes.NewGroupMember(b.Other, "/groups/api", "host-7", nil)
		require.NoError(t, err)
		require.NoError(t, member.Await(ctx))
		seen := locktest.Within(t, routes, "one is there")
		require.Len(t, seen, 1)
		require.Equal(t, "host-7", seen[0].ID)
		require.NoError(t, member.Close(ctx))
		require.Empty(t, locktest.Within(t, routes, "nobody is there again"))
		cancel()
		require.NoError(t, locktest.Within(t, done, "the loop ends with ctx"))
	})
}

func follow(
	ctx context.Context, client *recipes.Client, route func(members []recipes.Member),
) error {
	//pages:block
	return nil
}
