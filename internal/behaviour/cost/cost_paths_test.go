package cost_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// What docs/costs.md says of locks that are not used any more: a lock's path that was
// used twice keeps a watch, on at most 1,000 paths of a connection, until the servers
// delete the path.
func TestWatchesOfPathsThatWereUsed(t *testing.T) {
	const paths, most = 1100, 1000
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		use := func(i int) {
			lock := locktest.NewMutex(t, client, fmt.Sprint("/locks/", i))
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
		}
		use(0)
		require.Zero(t, cluster.Watches())
		for i := range paths {
			use(i)
			use(i)
		}
		time.Sleep(30 * time.Second) // what was learned is forgotten
		watches, heap := cluster.Watches(), locktest.Heap()
		require.LessOrEqual(t, watches, most)
		require.Greater(t, watches, most*9/10)
		time.Sleep(5 * time.Minute)
		require.Zero(t, cluster.Watches())
		use(0)
		t.Logf("%d watches, %d bytes for each, with the path in the server",
			watches, (heap-locktest.Heap())/most)
	})
}
