package page

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func Run(t *testing.T) {
	cluster := zktest.Start(t, zktest.WithServers(3))
	used := false
	require.NoError(t, connect(t.Context(), cluster.ConnectString(),
		func(client *recipes.Client) {
			used = client.State() == zk.StateHasSession
		}))
	require.True(t, used)
	require.Empty(t, cluster.Sessions(), "the client was not closed")
}

func connect(ctx context.Context, servers string, use func(*recipes.Client)) error {
	//pages:block
	use(client)
	return nil
}
