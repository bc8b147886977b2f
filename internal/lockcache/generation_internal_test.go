package lockcache

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A stubConn has a queue of one.
type stubConn struct {
	zkconn.Client
	name string
}

func (c *stubConn) Create(path string, _ []byte, _ int32, _ []zk.ACL) (string, error) {
	c.name = path[len("/lock/"):] + "0000000000"
	return path + "0000000000", nil
}

func (c *stubConn) Children(string) ([]string, *zk.Stat, error) {
	return []string{c.name}, &zk.Stat{Pzxid: 1}, nil
}

func (c *stubConn) ChildrenW(string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return []string{c.name}, &zk.Stat{Pzxid: 1}, make(chan zk.Event), nil
}

func (c *stubConn) GetW(string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return nil, &zk.Stat{}, make(chan zk.Event), nil
}

func (c *stubConn) Delete(string, int32) error  { return nil }
func (c *stubConn) Sync(string) (string, error) { return "", nil }
func (c *stubConn) SessionID() int64            { return 1 }
func (c *stubConn) State() zk.State             { return zk.StateHasSession }

func stubQueue(t *testing.T) (*seqnode.Queue, *zkconn.Conn) {
	t.Helper()
	s := zkconn.Use(&stubConn{}, zkconn.Config{
		Timeout: func() time.Duration { return time.Minute }, ServerTick: time.Second,
		InOrder: true,
	})
	t.Cleanup(s.Release)
	return &seqnode.Queue{
		Spec: znode.Spec{
			Dir: "/lock", Kind: "lock-", Log: slog.New(slog.DiscardHandler),
		},
		Kinds:    []string{"lock-"},
		Excludes: func(_, _ order.Name) bool { return true },
	}, s
}

// A timer would keep it, and all that it knows, for as long as it might have been idle.
func TestAnEntryThatIsLostKeepsNoTimer(t *testing.T) {
	q, s := stubQueue(t)
	share, err := Enter(
		t.Context(), s, q, Policy{Idle: 24 * time.Hour, MaxHandovers: 1},
		seqnode.Request{},
	)
	require.NoError(t, err)
	share.Withdraw()
	g := share.generation
	g.entry.mu.Lock()
	require.NotNil(t, g.idle)
	g.entry.mu.Unlock()
	g.node.SessionEnded(errors.New("over"))
	<-g.run.Done()
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	require.Nil(t, g.entry.current)
	require.Nil(t, g.idle)
}
