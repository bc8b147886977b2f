package seqnode

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/stubconn"
)

// A watchedConn counts watches. Each has fired when it is answered.
type watchedConn struct {
	stubconn.Conn
	watches int
}

func (c *watchedConn) GetW(string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	c.watches++
	fired := make(chan zk.Event, 1)
	fired <- zk.Event{Type: zk.EventNodeDeleted}
	close(fired)
	return nil, &zk.Stat{}, fired, nil
}

// While a waiter lists the queue, the event that it waits for can come. A new watch would
// take a round trip.
func TestAWatchWhoseEventIsHereIsNotSetAgain(t *testing.T) {
	conn, q := &watchedConn{}, excluding("lock-")
	s := stubconn.Use(t, conn)
	w := q.newWaiter(s, Request{})
	require.NoError(t, join(t, w.Member))
	defer w.node.Withdraw()
	w.reconnected = s.Reconnected()
	w.decided.behind = seqname.Name{Text: "lock-1"}
	watch := func() {
		t.Helper()
		_, err := w.watchBlocker(t.Context())
		require.NoError(t, err)
	}
	for range 2 {
		watch()
		require.Equal(t, 1, conn.watches)
	}
	ev := <-w.watched.events
	require.Equal(t, zk.EventNodeDeleted, ev.Type)

	w.decided.behind = seqname.Name{Text: "lock-2"}
	watch()
	require.Equal(t, 2, conn.watches, "of another")
	w.reconnected = make(chan struct{})
	watch()
	require.Equal(t, 3, conn.watches, "the server may have refused to set it again")
}
