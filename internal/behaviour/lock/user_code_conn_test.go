package lock_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A failingConn is a wrapper one of whose methods fails once, before it has made its
// request or after that.
type failingConn struct {
	*recipes.Client
	method, when string
	fail         func()
	armed        atomic.Bool
}

func (c *failingConn) Unwrap() recipes.Conn { return c.Client }

// in is called in each method, and what it returns at its end.
func (c *failingConn) in(method string) (after func()) {
	fail := func(when string) {
		if method == c.method && when == c.when && c.armed.Swap(false) {
			c.fail()
		}
	}
	fail("before")
	return func() { fail("after") }
}

func (c *failingConn) Children(path string) ([]string, *zk.Stat, error) {
	after := c.in("Children")
	names, stat, err := c.Client.Children(path)
	after()
	return names, stat, err
}

func (c *failingConn) ChildrenW(path string) (
	[]string, *zk.Stat, <-chan zk.Event, error,
) {
	after := c.in("ChildrenW")
	names, stat, events, err := c.Client.ChildrenW(path)
	after()
	return names, stat, events, err
}

func (c *failingConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	after := c.in("Create")
	created, err := c.Client.Create(path, data, flags, acl)
	after()
	return created, err
}

func (c *failingConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	after := c.in("CreateContainer")
	created, err := c.Client.CreateContainer(path, data, flags, acl)
	after()
	return created, err
}

func (c *failingConn) Delete(path string, version int32) error {
	after := c.in("Delete")
	err := c.Client.Delete(path, version)
	after()
	return err
}

func (c *failingConn) Get(path string) ([]byte, *zk.Stat, error) {
	after := c.in("Get")
	data, stat, err := c.Client.Get(path)
	after()
	return data, stat, err
}

func (c *failingConn) GetACL(path string) ([]zk.ACL, *zk.Stat, error) {
	after := c.in("GetACL")
	acl, stat, err := c.Client.GetACL(path)
	after()
	return acl, stat, err
}

func (c *failingConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	after := c.in("GetW")
	data, stat, events, err := c.Client.GetW(path)
	after()
	return data, stat, events, err
}

func (c *failingConn) Sync(path string) (string, error) {
	after := c.in("Sync")
	synced, err := c.Client.Sync(path)
	after()
	return synced, err
}

// A wrapper may fail in any request, also in one that is nobody's any more, such as the
// delete of a released lock: as in a test whose wrapper calls require. What it may have
// done is found out, and what must go goes.
func TestAConnThatFails(t *testing.T) {
	for _, method := range []string{
		"Children", "ChildrenW", "Create", "CreateContainer", "Delete", "Get", "GetACL",
		"GetW", "Sync",
	} {
		for _, when := range []string{"before", "after"} {
			for how, fail := range failures {
				t.Run(method+", "+how+" "+when, func(t *testing.T) {
					locktest.ForAllInBubbles(t, func(
						t *testing.T, b *locktest.Bubble, k locktest.Kind,
					) {
						conn := &failingConn{
							Client: b.Ours, method: method, when: when, fail: fail,
						}
						testFailingConn(t, b, k, conn)
					})
				})
			}
		}
	}
}

func testFailingConn(
	t *testing.T, b *locktest.Bubble, k locktest.Kind, conn *failingConn,
) {
	lock := k.MustMake(t, conn, "/lock", recipes.WithACL(zk.WorldACL(zk.PermAll)))
	rival := k.MustMakeRival(t, b.Other, "/lock")
	conn.armed.Store(true) // the path is missing
	for _, step := range []string{"acquire", "wait", "release"} {
		ctx, others := locktest.Owner(t), locktest.Owner(t)
		if step == "wait" {
			require.NoError(t, rival.Acquire(others))
		}
		acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
		if time.Sleep(time.Second); step == "wait" {
			require.NoError(t, rival.Release(others))
		}
		err := locktest.Within(t, acquired, step)
		if time.Sleep(time.Second); step == "release" {
			conn.armed.Store(true)
		}
		if err == nil {
			_ = lock.Release(ctx) // it tells of the failure
		} else {
			require.ErrorContains(t, err, "failingConn")
		}
		conn.armed.Store(step == "acquire")
		time.Sleep(time.Minute) // enough for an idle entry, and for what was refused
		require.Empty(t, locktest.Znodes(b), step)
	}
	locktest.UseTimes(t, rival, 1)
	locktest.UseTimes(t, lock, 1)
}
