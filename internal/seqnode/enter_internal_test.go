package seqnode

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/stubconn"
)

// An endingConn has another session once the first read of a znode is answered. Its lists
// tell no token, so that each grant takes such a read.
type endingConn struct {
	stubconn.Conn
	mu      sync.Mutex
	read    bool
	deleted []string
}

func (c *endingConn) SessionID() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read {
		return 2
	}
	return 1
}

func (c *endingConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Create(path, data, flags, acl)
}

func (c *endingConn) Children(string) ([]string, *zk.Stat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []string{c.Name}, &zk.Stat{}, nil
}

func (c *endingConn) GetW(string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = true
	return nil, &zk.Stat{Czxid: 1}, make(chan zk.Event), nil
}

func (c *endingConn) Delete(path string, _ int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted = append(c.deleted, path)
	return nil
}

func (c *endingConn) seenDeleted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deleted)
}

// The znode of a session that ends as it is about to be held is nobody's. ClickHouse
// Keeper keeps it, and its own process would wait for it.
func TestAZnodeThatIsLostBeforeAnybodyHoldsItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no tick looks meanwhile
		q, _ := stubQueue(t)
		conn := &endingConn{}
		s := stubconn.Use(t, conn)
		var joined []string
		n, err := q.Enter(t.Context(), s, Request{Listener: queued(func(node string) {
			joined = append(joined, node)
		})})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, joined, 2)
		require.Equal(t, n.Path, joined[1])
		require.Equal(t, joined[:1], conn.seenDeleted())
		n.Withdraw()
	})
}

// queued is a Listener that is told of the queue.
type queued func(node string)

func (f queued) Queued(node string, _ int) { f(node) }

func (queued) DataChanged([]byte) {}

// A slowConn answers no delete before it is told to.
type slowConn struct {
	stubconn.Conn
	answer chan struct{}
}

func (c *slowConn) Delete(string, int32) error {
	<-c.answer
	return nil
}

// A Node that has left is untracked a moment before its delete is known to be done. Who
// asks in that moment whether it can be relied on has not found a loss.
func TestACheckOfANodeThatHasLeftIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := stubQueue(t)
		conn := &slowConn{answer: make(chan struct{})}
		s := stubconn.Use(t, conn)
		n, err := q.Enter(t.Context(), s, Request{})
		require.NoError(t, err)
		left := n.StartLeaving()
		s.Untrack(n.Path, s.Ephemeral(n.Path))
		require.Error(t, n.Check())
		require.NoError(t, n.Lost().Err())
		close(conn.answer)
		require.NoError(t, left(t.Context()))
	})
}
