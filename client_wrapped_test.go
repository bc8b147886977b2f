package recipes_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A countingConn counts the znodes that are created through it. It embeds the Conn.
type countingConn struct {
	recipes.Conn
	created atomic.Int32
}

func (c *countingConn) Unwrap() recipes.Conn { return c.Conn }

func (c *countingConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	c.created.Add(1)
	return c.Conn.Create(path, data, flags, acl)
}

// A fieldConn keeps the Conn in a field, and hands each method on.
type fieldConn struct{ inner recipes.Conn }

func (c *fieldConn) Unwrap() recipes.Conn { return c.inner }

func (c *fieldConn) Children(path string) ([]string, *zk.Stat, error) {
	return c.inner.Children(path)
}

func (c *fieldConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	return c.inner.Create(path, data, flags, acl)
}

func (c *fieldConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	return c.inner.CreateContainer(path, data, flags, acl)
}

func (c *fieldConn) Delete(path string, version int32) error {
	return c.inner.Delete(path, version)
}

func (c *fieldConn) Get(path string) ([]byte, *zk.Stat, error) {
	return c.inner.Get(path)
}

func (c *fieldConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return c.inner.GetW(path)
}

func (c *fieldConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return c.inner.ChildrenW(path)
}

func (c *fieldConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	return c.inner.Set(path, data, version)
}

func (c *fieldConn) Sync(path string) (string, error) { return c.inner.Sync(path) }
func (c *fieldConn) SessionID() int64                 { return c.inner.SessionID() }
func (c *fieldConn) State() zk.State                  { return c.inner.State() }

// clientWrappers are all the ways to wrap a Client.
var clientWrappers = map[string]func(c *recipes.Client) recipes.Conn{
	"not wrapped": func(c *recipes.Client) recipes.Conn { return c },
	"embeds a Conn": func(c *recipes.Client) recipes.Conn {
		return &countingConn{Conn: c}
	},
	"has it in a field": func(c *recipes.Client) recipes.Conn { return &fieldConn{c} },
	"embeds a Client": func(c *recipes.Client) recipes.Conn {
		return struct{ *recipes.Client }{c}
	},
	"twice": func(c *recipes.Client) recipes.Conn {
		return &countingConn{Conn: &fieldConn{c}}
	},
}

// A wrapped Client must not lose its chroot, its session timeout or its close.
func TestAWrappedClientIsAClient(t *testing.T) {
	for name, wrap := range clientWrappers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := zktest.Start(t)
				link := cluster.Link("ours")
				servers := strings.Join(cluster.Names(), ",") + "/app"
				c := locktest.Connect(t, link, servers, 10*time.Second)
				lock, err := recipes.NewInterProcessMutex(wrap(c), "/lock")
				require.NoError(t, err)
				ctx := locktest.Owner(t)
				require.NoError(t, lock.Acquire(ctx))
				hold := lock.Hold(ctx)

				require.Equal(t, "/app"+hold.Path(), hold.Check().Path)
				_, err = c.Unwrap().Multi(hold.Check())
				require.NoError(t, err)

				link.Cut()
				time.Sleep(2 * time.Second)
				link.Heal()
				time.Sleep(5 * time.Second)
				require.NoError(t, hold.Err(), "no loss: the session lasts for longer")

				c.Close()
				require.ErrorIs(
					t, hold.Err(), recipes.ErrLockLost, "told before Close returns",
				)
			})
		})
	}
}

// What is known of a Conn that is no SessionConn, and wraps none, is nothing.
func TestABareConnTellsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		servers := strings.Join(cluster.Names(), ",") + "/app"
		c := locktest.Connect(t, cluster.Link("ours"), servers, 10*time.Second)
		for name, conn := range map[string]recipes.Conn{
			"hides":            struct{ recipes.Conn }{c},
			"unwraps to nil":   &fieldlessConn{c},
			"embeds a zk.Conn": struct{ *zk.Conn }{c.Unwrap()},
		} {
			lock, err := recipes.NewInterProcessMutex(conn, "/app/lock")
			require.NoError(t, err, name)
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx), name)
			hold := lock.Hold(ctx)
			require.Equal(t, hold.Path(), hold.Check().Path, name)
			require.NoError(t, lock.Release(ctx), name)
		}
	})
}

type fieldlessConn struct{ recipes.Conn }

func (*fieldlessConn) Unwrap() recipes.Conn { return nil }

func TestTheLastHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link := cluster.Link("ours")
		c := locktest.Connect(t, link, strings.Join(cluster.Names(), ","), 10*time.Second)
		session, began := c.LastHandshake()
		require.Equal(t, c.SessionID(), session)
		require.Equal(t, time.Now(), began)
		time.Sleep(time.Minute)
		link.Reset()
		time.Sleep(10 * time.Second)
		session, again := c.LastHandshake()
		require.Equal(t, c.SessionID(), session, "resumed")
		require.WithinDuration(t, began.Add(time.Minute), again, 2*time.Second)
		require.Equal(t, "/a", c.ServerPath("/a"))
	})
}

func TestOnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		servers := strings.Join(cluster.Names(), ",")
		c := locktest.Connect(t, cluster.Link("ours"), servers, 10*time.Second)
		var told []string
		tell := func(what string) func() { return func() { told = append(told, what) } }
		c.OnClose(func() {
			told = append(told, fmt.Sprint("sessions: ", len(cluster.Sessions())))
		})
		c.OnClose(tell("taken back"))()
		c.Close()
		c.Close()
		require.Equal(t, []string{"sessions: 1"}, told, "once, before the session ends")
		stop := c.OnClose(tell("late"))
		synctest.Wait()
		require.Equal(t, []string{"sessions: 1", "late"}, told)
		stop()
	})
}
