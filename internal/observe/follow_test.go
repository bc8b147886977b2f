package observe_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/zktest"
)

// A noting conn notes the requests for a queue, in order.
type notingConn struct {
	*zk.Conn
	asked  []string
	listed func() // called once the list is in; nil: by nobody
}

func (c *notingConn) Sync(path string) (string, error) {
	if path == queuetest.Dir {
		c.asked = append(c.asked, "sync")
	}
	return c.Conn.Sync(path)
}

func (c *notingConn) ChildrenW(
	path string,
) ([]string, *zk.Stat, <-chan zk.Event, error) {
	c.asked = append(c.asked, "list")
	children, stat, events, err := c.Conn.ChildrenW(path)
	if c.listed != nil {
		c.listed()
	}
	return children, stat, events, err
}

func (c *notingConn) Children(path string) ([]string, *zk.Stat, error) {
	c.asked = append(c.asked, "list") // behind a watch that is set
	return c.Conn.Children(path)
}

// follow notes what a follower asks for and is told, for as long as it lasts.
func (c *notingConn) follow(t *testing.T, lasts time.Duration) {
	t.Helper()
	s := zkconn.Use(c, zkconn.Config{
		Timeout:    func() time.Duration { return queuetest.Timeout },
		ServerTick: queuetest.Tick, InOrder: true,
	})
	defer s.Release()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	q := observe.Queue{Dir: queuetest.Dir, Kinds: []string{"lock-"}}
	require.EqualError(t, q.Follow(ctx, s, func(
		_ context.Context, members []seqname.Name, _ bool,
	) (more bool, err error) {
		require.Len(t, members, 1)
		c.asked = append(c.asked, "told")
		return true, nil
	}), context.DeadlineExceeded.Error())
}

// A poll guards against a lost watch: it looks at what the leader knows.
func TestAPollComesBehindASync(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		peer := queuetest.NewPeer(t, cluster, "us")
		peer.Occupy()
		conn := &notingConn{Conn: peer.Conn}
		conn.follow(t, time.Minute)
		require.Equal(
			t, []string{"sync", "list", "told", "sync", "list", "told"}, conn.asked,
		)
	})
}

// What was listed before an outage is not told after it.
func TestAListFromBeforeAnOutageIsNotTold(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		peer := queuetest.NewPeer(t, cluster, "us")
		peer.Occupy()
		conn := &notingConn{Conn: peer.Conn}
		conn.listed = func() {
			conn.listed = nil
			peer.Link.Cut()
			time.Sleep(time.Second)
			peer.Link.Heal()
			for peer.State() != zk.StateHasSession {
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second)
		}
		conn.follow(t, queuetest.Patience)
		require.Equal(t, []string{"sync", "list", "sync", "list", "told"}, conn.asked)
	})
}
