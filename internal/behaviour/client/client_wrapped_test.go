package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A wrapped Client must not lose its chroot, its session timeout or its close.
func TestAWrappedClientIsAClient(t *testing.T) {
	for name, wrap := range locktest.ClientWrappers {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			link := cluster.Link("ours")
			servers := strings.Join(cluster.Names(), ",") + "/app"
			c := locktest.Connect(t, link, servers, 10*time.Second)
			lock := locktest.NewMutex(t, wrap(c), "/lock")
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx))
			hold := lock.Hold(ctx)

			require.Equal(t, "/app"+hold.Path(), hold.CheckOp().Path)
			_, err := c.Unwrap().Multi(hold.CheckOp())
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
			lock := locktest.NewMutex(t, conn, "/app/lock")
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx), name)
			hold := lock.Hold(ctx)
			require.Equal(t, hold.Path(), hold.CheckOp().Path, name)
			require.NoError(t, lock.Release(ctx), name)
		}
	})
}

type fieldlessConn struct{ recipes.Conn }

func (*fieldlessConn) Unwrap() recipes.Conn { return nil }

func TestTheLastHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link, opened := cluster.Link("ours"), time.Now()
		c := locktest.Connect(t, link, strings.Join(cluster.Names(), ","), 10*time.Second)
		session, began := c.LastHandshake()
		require.Equal(t, c.SessionID(), session)
		require.Equal(t, opened, began)
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
