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
	locktest.HookedConn
	armed atomic.Bool
}

func (c *failingConn) Unwrap() recipes.Conn { return c.Conn }

func newFailingConn(
	client *recipes.Client, method, when string, fail func(),
) *failingConn {
	c := &failingConn{HookedConn: locktest.HookedConn{Conn: client}}
	in := func(now, moment string) {
		if now == method && moment == when && c.armed.Swap(false) {
			fail()
		}
	}
	c.Before = func(method, _ string) error {
		in(method, "before")
		return nil
	}
	c.After = func(method string) { in(method, "after") }
	return c
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
						conn := newFailingConn(b.Ours, method, when, fail)
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
