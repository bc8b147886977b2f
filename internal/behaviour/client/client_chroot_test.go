package client_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// Whoever deletes a chroot, or has the server delete it as an empty container, must not
// keep those who use it from their locks for good.
func TestADeletedChrootIsMadeAnew(t *testing.T) {
	for _, path := range []string{"/", "/lock", "/locks/report/daily"} {
		locktest.RunVirtual(t, path, func(t *testing.T) {
			s := locktest.NewChrootScene(t)
			mutex := locktest.NewMutex(t, s.Client, path)
			semaphore := locktest.NewSemaphore(t, s.Client, path, 1)
			for range 2 {
				s.DeleteAll(t)
				ctx := locktest.Owner(t)
				require.NoError(t, mutex.Acquire(ctx))
				require.NoError(t, mutex.Release(ctx))
				s.DeleteAll(t)
				lease, err := semaphore.Acquire(ctx)
				require.NoError(t, err)
				require.NoError(t, lease.Release(ctx))
				s.DeleteAll(t)
				err = recipes.SetSharedCount(ctx, s.Client, "/count", 3)
				require.NoError(t, err)
			}
		})
	}
}

// Another client may have made the chroot, as a container for a lock of its own.
func TestAReapedChrootIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.NewChrootScene(t)
		s.DeleteAll(t)
		use := func(c *recipes.Client, path string) {
			t.Helper()
			lock := locktest.NewMutex(t, c, path)
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
		}
		use(s.Beside, locktest.Chroot+"/lock")
		use(s.Client, "/lock")
		time.Sleep(5 * time.Minute)
		require.Empty(t, s.Cluster.Znodes(), "the server deletes empty containers")
		use(s.Client, "/lock")
	})
}

// A server that throttles a request of Connect may answer the next.
func TestConnectToAServerThatThrottles(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpExists, zktest.OpCreate} {
		synctest.Test(t, func(t *testing.T) {
			cluster := zktest.Start(t)
			cluster.Link("ours").Throttle(op)
			servers := strings.Join(cluster.Names(), ",") + "/app"
			locktest.Connect(t, cluster.Link("ours"), servers, 10*time.Second)
			require.Equal(t, []string{"/app"}, cluster.Znodes())
		})
	}
}

// What is made anew is the chroot, and nothing else that is missing.
func TestOnlyTheChrootIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.NewChrootScene(t)
		s.DeleteAll(t)
		acl := zk.WorldACL(zk.PermAll)
		_, err := s.Client.Create("/a/b", nil, 0, acl)
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.Empty(t, s.Cluster.Znodes())
		_, _, err = s.Client.Get("/")
		require.ErrorIs(t, err, zk.ErrNoNode)

		created, err := s.Client.CreateContainer("/a", nil, zk.FlagContainer, acl)
		require.NoError(t, err)
		require.Equal(t, "/a", created)
		require.Equal(t, []string{
			"/apps", locktest.Chroot, locktest.Chroot + "/a",
		}, s.Cluster.Znodes())

		s.DeleteAll(t)
		_, err = s.Beside.Unwrap().SetACL("/", zk.WorldACL(zk.PermRead), -1)
		require.NoError(t, err)
		_, err = s.Client.Create("/a", nil, 0, acl)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err,
			"recreate chroot "+locktest.Chroot+": zk: not authenticated "+
				"(the session lacks CREATE on /)")
	})
}

// Its parents may go while it is made anew: each request takes 20 ms, and is judged after
// ten.
func TestAChrootIsMadeAnewWhoseParentsGo(t *testing.T) {
	const step = 5 * time.Millisecond
	for after := time.Duration(0); after < 30*step; after += step {
		synctest.Test(t, func(t *testing.T) {
			s := locktest.NewChrootScene(t)
			require.NoError(t, s.Beside.Delete(locktest.Chroot, -1))
			s.Cluster.Link("ours").Delay(10*time.Millisecond, 10*time.Millisecond)
			lock := locktest.NewMutex(t, s.Client, "/lock")
			ctx := locktest.Owner(t)
			acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
			time.Sleep(after)
			_ = s.Beside.Delete("/apps", -1) // if it is empty
			require.NoError(t, <-acquired, "deleted after %v", after)
		})
	}
}

func TestADeletedChrootIsMadeAnewByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.NewChrootScene(t)
		s.DeleteAll(t)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				flags := int32(zk.FlagSequence | zk.FlagEphemeral)
				_, err := s.Client.Create("/n-", nil, flags, zk.WorldACL(zk.PermAll))
				assert.NoError(t, err)
			})
		}
		all.Wait()
		children, _, err := s.Client.Children("/")
		require.NoError(t, err)
		require.Len(t, children, 16)
	})
}

// A chroot was open to anyone, whatever ACLs the locks below it had; and the permission
// to delete a znode is one on its parent.
func TestTheACLOfAChroot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		servers := strings.Join(cluster.Names(), ",")
		connect := func(opts ...recipes.ClientOption) (*recipes.Client, error) {
			return recipes.Connect(t.Context(), servers+"/org/app", 10*time.Second,
				append(opts, recipes.WithDialer(cluster.Link("ours").Dial),
					recipes.WithAuth("digest", []byte("anna:secret")))...)
		}
		owner, err := connect(recipes.WithChrootACL(zk.AuthACL(zk.PermAll)))
		require.NoError(t, err)
		defer owner.Close()
		stranger := locktest.ConnectThrough(t, cluster, "stranger")
		for _, path := range []string{"/org", "/org/app"} {
			_, err := stranger.Create(path+"/x", nil, 0, zk.WorldACL(zk.PermAll))
			require.ErrorIs(t, err, zk.ErrNoAuth, path)
		}
		_, err = owner.Create("/x", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.ErrorIs(t, stranger.Delete("/org/app/x", -1), zk.ErrNoAuth)

		_, err = connect(recipes.WithChrootACL(nil))
		require.ErrorContains(t, err, "WithChrootACL: acl is empty")
	})
}
