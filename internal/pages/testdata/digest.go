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
	servers := zktest.Start(t).Addrs()[0] + "/app"
	require.ErrorIs(t, use(t.Context(), servers, "hunter2", nil), zk.ErrNoNode)
	first, err := recipes.Connect(t.Context(), servers, 10*time.Second)
	require.NoError(t, err)
	defer first.Close()
	ran := false
	require.NoError(t, use(t.Context(), servers, "hunter2", func() {
		ran = true
		_, _, err := first.Children("/locks/report")
		require.ErrorIs(t, err, zk.ErrNoAuth)
	}))
	require.True(t, ran)
	require.ErrorIs(t, use(t.Context(), servers, "guess", nil), zk.ErrNoAuth)
}

func use(ctx context.Context, servers, password string, during func()) error {
	//pages:block
	if err != nil {
		return err
	}
	return recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error {
		during()
		return nil
	})
}
