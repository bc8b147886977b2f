package locktest_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A test that asks for nothing gets children in no order, as from ZooKeeper.
func TestServersOfTestsShuffle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := locktest.ConnectThrough(t, zktest.Start(t), "ours")
		for i := range 20 {
			path := "/" + strconv.Itoa(10+i)
			_, err := client.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		names, _, err := client.Children("/")
		require.NoError(t, err)
		require.Greater(t, len(names), 20)
		require.False(t, slices.IsSorted(names), "%q", names)
	})
}
