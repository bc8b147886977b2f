package hazards_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// reapingTakes is longer than a server takes to delete the containers that had children.
const reapingTakes = 5 * time.Minute

// A container that never had a child is not reaped: whoever makes one and gives up before
// it has a use for it deletes it, wherever the time runs out (97 of 462 were left). Each
// round trip takes ten steps, so that the requests are caught on the way, at the server,
// and on the way back.
func TestHazardA6_NoUnusedContainerStays(t *testing.T) {
	type attempt func(t *testing.T, conn recipes.Conn, path string, within time.Duration)
	for name, acquire := range map[string]attempt{
		"mutex": func(
			t *testing.T, conn recipes.Conn, path string, within time.Duration,
		) {
			lock := locktest.NewMutex(t, conn, path)
			ctx := locktest.Owner(t)
			if ok, _ := lock.AcquireTimeout(ctx, within); ok {
				require.NoError(t, lock.Release(ctx))
			}
		},
		"semaphore": func(
			t *testing.T, conn recipes.Conn, path string, within time.Duration,
		) {
			s := locktest.NewSemaphore(t, conn, path, 3)
			leases, _ := s.AcquireTimeout(t.Context(), 2, within)
			require.NoError(t, s.ReturnAll(t.Context(), leases))
		},
		"shared count": func(
			t *testing.T, conn recipes.Conn, path string, within time.Duration,
		) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_ = recipes.SetSharedCount(ctx, conn, path+"/count", 3)
			time.Sleep(time.Second) // until a create that it has left behind is done
			_ = conn.Delete(path+"/count", -1)
		},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			client := locktest.ConnectThrough(t, cluster, "far")
			const oneWay = 5 * time.Millisecond
			cluster.Link("far").Delay(oneWay, oneWay)
			for i := range 200 {
				path := fmt.Sprintf("/orders/%d/lock", i)
				acquire(t, client, path, time.Duration(i)*oneWay/5)
			}
			time.Sleep(reapingTakes)
			require.Empty(t, cluster.Znodes())
		})
	}
}

// Who gives up deletes only what it has made, and what nobody has come to use.
func TestHazardA6_OthersDirectoriesStay(t *testing.T) {
	for name, c := range map[string]struct{ before, meanwhile, stay []string }{
		"made before": {before: []string{"/a"}, stay: []string{"/a"}},
		"used meanwhile": {
			meanwhile: []string{"/a/b/child"}, stay: []string{"/a", "/a/b", "/a/b/child"},
		},
		"its parent": {meanwhile: []string{"/a/child"}, stay: []string{"/a", "/a/child"}},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			ours := locktest.ConnectThrough(t, cluster, "ours")
			other := locktest.ConnectThrough(t, cluster, "other")
			mkdir := func(paths []string) {
				for _, path := range paths {
					_, err := other.CreateContainer(path, nil, zk.FlagContainer,
						zk.WorldACL(zk.PermAll))
					require.NoError(t, err)
				}
			}
			mkdir(c.before)
			ctx, cancel := context.WithCancel(locktest.Owner(t))
			conn := &afterContainer{Client: ours, made: func(path string) {
				if path == "/a/b" {
					mkdir(c.meanwhile)
					cancel()
				}
			}}
			lock := locktest.NewMutex(t, conn, "/a/b")
			require.ErrorIs(t, lock.Acquire(ctx), context.Canceled)
			time.Sleep(time.Second)
			require.Equal(t, c.stay, cluster.Znodes())
		})
	}
}

// A path can be both, a lock and the znode that it guards.
func TestHazardA6_ADirectoryWithDataStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		ours, other := locktest.ConnectThrough(
			t, cluster, "ours",
		), locktest.ConnectThrough(t, cluster, "other")
		ctx, cancel := context.WithCancel(locktest.Owner(t))
		conn := &afterContainer{Client: ours, made: func(path string) {
			_, err := other.Set(path, []byte("theirs"), -1)
			require.NoError(t, err)
			cancel()
		}}
		lock := locktest.NewMutex(t, conn, "/config")
		require.ErrorIs(t, lock.Acquire(ctx), context.Canceled)
		time.Sleep(time.Second)
		data, _, err := other.Get("/config")
		require.NoError(t, err)
		require.Equal(t, "theirs", string(data))
	})
}

// afterContainer tells of each container that was made, before its maker is told.
type afterContainer struct {
	*recipes.Client
	made func(path string)
}

func (c *afterContainer) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	created, err := c.Client.CreateContainer(path, data, flags, acl)
	if err == nil {
		c.made(path)
	}
	return created, err
}
