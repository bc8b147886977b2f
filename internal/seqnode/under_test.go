package seqnode_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
	"github.com/zkrecipes/recipes/zktest"
)

// A slowConn hands out one list late, as if the goroutine that waits for it were not
// scheduled, and can lose a create.
type slowConn struct {
	*zk.Conn
	loses atomic.Bool  // the next create
	lists atomic.Int32 // how many more, until the late one
	late  chan struct{}
	goOn  chan struct{}
}

func (c *slowConn) Create(p string, d []byte, f int32, a []zk.ACL) (string, error) {
	if c.loses.CompareAndSwap(true, false) {
		return "", zk.ErrConnectionClosed
	}
	return c.Conn.Create(p, d, f, a)
}

func (c *slowConn) Children(path string) ([]string, *zk.Stat, error) {
	children, stat, err := c.Conn.Children(path)
	if c.lists.Add(-1) == 0 {
		close(c.late)
		<-c.goOn
	}
	return children, stat, err
}

// side is one side of a read/write lock.
func side(kind string) *seqnode.Queue {
	q := queue()
	q.Kind, q.Kinds = kind, []string{"R-", "W-"}
	q.Nested = func(self seqname.Name) bool { return self.Kind == "W-" }
	q.Excludes = func(ahead, self seqname.Name) bool {
		return ahead.Seq != self.Seq && (self.Kind != "R-" || ahead.Kind != "R-")
	}
	return q
}

// A list that was asked for before a downgrade does not show the reader that is beside
// the writer. Who judges it when the writer has left must not go past that one.
func TestAWriterJudgesNoListFromBeforeADowngrade(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		conn := &slowConn{
			Conn: us.Conn, late: make(chan struct{}), goOn: make(chan struct{}),
		}
		s := zkconn.Use(conn, zkconn.Config{
			Timeout: func() time.Duration { return timeout }, ServerTick: tick,
			InOrder: true,
		})
		defer s.Release()
		first, err := side("W-").Enter(bounded(t), s, seqnode.Request{})
		require.NoError(t, err)
		conn.loses.Store(true) // so that the second lists by itself
		conn.lists.Store(2)    // behind the look-up
		held := make(chan *znode.Node, 1)
		go func() {
			second, err := side("W-").Enter(bounded(t), s, seqnode.Request{})
			if err != nil {
				t.Error(err)
			}
			held <- second
		}()
		queuetest.Within(t, patience, conn.late, "it does not list")

		reader, err := side("R-").EnterUnder(bounded(t), s, first, seqnode.Request{})
		require.NoError(t, err)
		us.Link.Stall(zktest.ToServer)
		first.Withdraw()
		close(conn.goOn)
		select {
		case <-held:
			require.Fail(t, "a writer and a reader hold it")
		case <-time.After(2 * time.Second):
		}
		us.Link.Heal()
		time.Sleep(time.Minute)
		require.Empty(t, held)
		require.NoError(t, reader.Lost().Err())
		reader.Withdraw()
		queuetest.Within(t, patience, held, "it is not held").Withdraw()
	})
}
