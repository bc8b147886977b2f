package locktest

import (
	"encoding/binary"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A Counter is to be guarded by a lock. It lies in ZooKeeper and is not safe by itself:
// it is read, and written without a version.
type Counter struct{ Path string }

// NewCounter creates a counter, which is 0.
func NewCounter(t *testing.T, p *Peer) Counter {
	t.Helper()
	c := Counter{zkserver.Path(t) + "-counter"}
	_, err := p.Conn.Create(c.Path, make([]byte, 8), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return c
}

// Value reads the counter.
func (c Counter) Value(conn *zk.Conn) (uint64, error) {
	data, _, err := conn.Get(c.Path)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(data), nil
}

// Increment reads the counter and writes one more.
func (c Counter) Increment(conn *zk.Conn) error {
	n, err := c.Value(conn)
	if err != nil {
		return err
	}
	_, err = conn.Set(c.Path, binary.BigEndian.AppendUint64(nil, n+1), -1)
	return err
}
