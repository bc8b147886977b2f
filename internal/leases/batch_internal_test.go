package leases

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/zktest"
)

// A refusingConn fails some syncs, and takes note of what it is asked for.
type refusingConn struct {
	*zk.Conn
	refuse int
	asked  []string
}

func (c *refusingConn) Sync(path string) (string, error) {
	if c.refuse > 0 {
		c.refuse--
		c.asked = append(c.asked, "refused")
		return "", zk.ErrConnectionClosed
	}
	c.asked = append(c.asked, "sync")
	return c.Conn.Sync(path)
}

func (c *refusingConn) Children(path string) ([]string, *zk.Stat, error) {
	c.asked = append(c.asked, "list")
	return c.Conn.Children(path)
}

func (c *refusingConn) ChildrenW(
	path string,
) ([]string, *zk.Stat, <-chan zk.Event, error) {
	c.asked = append(c.asked, "list")
	return c.Conn.ChildrenW(path)
}

// A server that may lag behind what was seen before is asked to catch up until it has: a
// sync that failed is not enough.
func TestAListComesBehindASyncThatHasSucceeded(t *testing.T) {
	for name, watch := range map[string]bool{"once": false, "with a watch": true} {
		t.Run(name, func(t *testing.T) {
			queuetest.Bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
				peer := queuetest.NewPeer(t, cluster, "us")
				peer.Occupy()
				conn := &refusingConn{Conn: peer.Conn, refuse: 2}
				s := zkconn.Use(conn, zkconn.Config{
					Timeout:    func() time.Duration { return queuetest.Timeout },
					ServerTick: queuetest.Tick, InOrder: true,
				})
				defer s.Release()
				spec := queuetest.Queue().Spec
				b := &batch{
					Request: Request{Spec: &spec}, conn: s, watch: watch, lagging: true,
				}
				list := func() error {
					_, _, err := b.list(queuetest.Bounded(t))
					return err
				}
				for range 2 {
					require.ErrorIs(t, list(), zk.ErrConnectionClosed)
				}
				require.NoError(t, list())
				require.NoError(t, list())
				require.Equal(
					t, []string{"refused", "refused", "sync", "list", "list"}, conn.asked,
				)
			})
		})
	}
}
