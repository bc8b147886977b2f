package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// Who says that the chroot exists does not want one that a typing mistake has made.
func TestAChrootThatHasToExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link := cluster.Link("ours")
		connect := func(chroot string, opts ...recipes.ClientOption) (
			*recipes.Client, error,
		) {
			c, err := recipes.Connect(t.Context(), cluster.Names()[0]+chroot,
				10*time.Second, append(opts, recipes.WithDialer(link.Dial))...)
			if err == nil {
				t.Cleanup(c.Close)
			}
			return c, err
		}
		began := time.Now()
		for _, chroot := range []string{"/app", "/app/deep"} {
			_, err := connect(chroot, recipes.WithExistingChroot())
			require.ErrorIs(t, err, zk.ErrNoNode)
			require.ErrorContains(t, err, `look for chroot "`+chroot+`"`)
			require.ErrorContains(t, err, "WithExistingChroot")
		}
		require.Less(t, time.Since(began), time.Second)
		require.Empty(t, cluster.Znodes())
		root, err := connect("", recipes.WithExistingChroot())
		require.NoError(t, err)
		_, err = root.Create("/app", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		c, err := connect("/app", recipes.WithExistingChroot(),
			recipes.WithChrootACL(zk.WorldACL(zk.PermRead))) // which it has no use for
		require.NoError(t, err)
		lock := locktest.NewMutex(t, c, "/lock")
		require.NoError(t, recipes.Do(t.Context(), lock, locktest.Nothing))
		require.NoError(t, root.Delete("/app/lock", -1))
		require.NoError(t, root.Delete("/app", -1))
		_, err = c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
		require.ErrorIs(t, err, zk.ErrNoNode)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = recipes.Do(ctx, lock, locktest.Nothing)
		require.ErrorIs(t, err, zk.ErrNoNode, "no retry mends it")
		require.Empty(t, cluster.Znodes())
	})
}

// A server that lags behind does not miss a chroot that another process has just made.
func TestAChrootThatHasJustBeenMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithServers(3))
		names := cluster.Names()
		first, err := recipes.Connect(t.Context(), names[0], 10*time.Second,
			recipes.WithDialer(cluster.Link("first").Dial))
		require.NoError(t, err)
		defer first.Close()
		for _, server := range cluster.Servers() {
			if server != cluster.Leader() {
				server.Lag(time.Second)
			}
		}
		_, err = first.Create("/app", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		for _, name := range names {
			c, err := recipes.Connect(t.Context(), name+"/app", 10*time.Second,
				recipes.WithDialer(cluster.Link(name).Dial), recipes.WithExistingChroot())
			require.NoError(t, err, name)
			c.Close()
		}
	})
}
