package seqnode_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/zktest"
)

// A muteConn does not answer what the queue's directory is, until it may.
type muteConn struct {
	*zk.Conn
	answers chan struct{}
}

func (c *muteConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if path == queuetest.Dir {
		<-c.answers
	}
	return c.Conn.GetW(path)
}

// Which directory it is tells nothing if no number has been left in it.
func TestADirectoryIsNotWaitedForInVain(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		conn := &muteConn{us.Conn, make(chan struct{})}
		us.S = zkconn.Use(conn, zkconn.Config{
			Timeout: func() time.Duration { return timeout }, ServerTick: tick,
			InOrder: true,
		})
		defer us.S.Release()
		defer close(conn.answers)
		first := enter(bounded(t), us, seqnode.Request{}).held(patience)
		second := enter(bounded(t), us, seqnode.Request{})
		second.waits(time.Second)
		other.Remove(first.Path)
		require.NotEqual(t, first.Path, second.held(time.Second).Path)
	})
}
