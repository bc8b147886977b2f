package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// TestSmoke is short enough to be run on every kind of server that there is.
func TestSmoke(t *testing.T) {
	t.Parallel()
	cluster, path := zkserver.Shared(t), zkserver.Path(t)
	t.Log("on", cluster.Kind())
	var clients []*recipes.Client
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), locktest.Patience)
		defer cancel()
		client, err := recipes.Connect(ctx, cluster.Connect()+path, 4*time.Second)
		require.NoError(t, err)
		defer client.Close()
		clients = append(clients, client)
	}
	one, err := recipes.NewInterProcessMutex(clients[0], "/lock")
	require.NoError(t, err)
	two, err := recipes.NewInterProcessMutex(clients[1], "/lock")
	require.NoError(t, err)

	ctx := locktest.Owner(t)
	require.NoError(t, one.Acquire(ctx))
	first := one.Hold(ctx)
	ok, err := two.AcquireTimeout(ctx, 200*time.Millisecond)
	require.NoError(t, err)
	require.False(t, ok)
	waiting := locktest.Start(func() error { return two.Acquire(ctx) })
	locktest.Eventually(t, func() bool {
		nodes, err := one.ParticipantNodes(ctx)
		require.NoError(t, err)
		return len(nodes) == 2
	}, "nobody waits")
	require.NoError(t, one.Release(ctx))
	require.NoError(t, locktest.Within(t, waiting, "the waiter's turn"))
	second := two.Hold(ctx)
	require.Greater(t, second.FencingToken(), first.FencingToken())
	require.NoError(t, first.Err())

	_, err = clients[1].Unwrap().Multi(second.Check())
	require.NoError(t, err, "the check has the path that the server sees, with the chroot")
	clients[1].Close()
	locktest.Within(t, second.Lost(), "a closed connection loses its holds")
	require.ErrorIs(t, two.Release(ctx), recipes.ErrLockLost)
	require.NoError(t, one.Acquire(ctx))
	require.NoError(t, one.Release(ctx))
}
