// Package stubconn is what the tests inside lockcache and seqnode share: a connection
// without a server, whose queue has one znode.
package stubconn

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Conn has a queue of one. A call of what it does not have panics.
type Conn struct {
	zkconn.Client

	mu   sync.Mutex
	Name string // of its znode; set by Create
}

// Spec is of the znodes of its queue.
func Spec() znode.Spec {
	return znode.Spec{Dir: "/lock", Kind: "lock-", Log: slog.New(slog.DiscardHandler)}
}

// Use returns the connection of a client to a user who is done when the test ends.
func Use(t *testing.T, client zkconn.Client) *zkconn.Conn {
	t.Helper()
	conn := zkconn.Use(client, zkconn.Config{
		Timeout: func() time.Duration { return time.Minute }, ServerTick: time.Second,
		InOrder: true,
	})
	t.Cleanup(conn.Release)
	return conn
}

// Create is of a zkconn.Client, like all that follow.
func (c *Conn) Create(path string, _ []byte, _ int32, _ []zk.ACL) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Name = path[len("/lock/"):] + "0000000000"
	return path + "0000000000", nil
}

// Children lists the znode. It may be asked while Create is.
func (c *Conn) Children(string) ([]string, *zk.Stat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []string{c.Name}, &zk.Stat{Pzxid: 1}, nil
}

// ChildrenW lists the znode. Its watch never fires.
func (c *Conn) ChildrenW(string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []string{c.Name}, &zk.Stat{Pzxid: 1}, make(chan zk.Event), nil
}

// GetW finds any znode. Its watch never fires.
func (*Conn) GetW(string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return nil, &zk.Stat{}, make(chan zk.Event), nil
}

// Delete succeeds, and changes nothing.
func (*Conn) Delete(string, int32) error { return nil }

// Sync succeeds.
func (*Conn) Sync(string) (string, error) { return "", nil }

// SessionID is 1.
func (*Conn) SessionID() int64 { return 1 }

// State is that of a session.
func (*Conn) State() zk.State { return zk.StateHasSession }
