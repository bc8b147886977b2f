package znode_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A muteConn leaves the deletes of its first session unanswered, until they are lost.
type muteConn struct {
	lossyConn
	lost chan struct{}
}

func (c *muteConn) Delete(path string, version int32) error {
	if c.SessionID() == 1 {
		<-c.lost
	}
	return c.lossyConn.Delete(path, version)
}

// A znode can outlive its session: see life. A list of the next session can show it
// before the delete of the former one has ended, which deletes nothing any more.
func TestADiscardIsOfOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &muteConn{lost: make(chan struct{})}
		conn.session = 1
		use, log := stubconn.Use(t, conn), stubconn.Spec().Log
		defer close(conn.lost)
		znode.Discard(use, log, "/lock/a0", 1)
		synctest.Wait()
		conn.move()
		for range 2 { // a list shows it again
			znode.Discard(use, log, "/lock/a0", 2)
		}
		synctest.Wait()
		require.Equal(t, []string{"0"}, conn.deleted)
	})
}
