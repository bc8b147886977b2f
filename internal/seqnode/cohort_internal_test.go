package seqnode

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/outcome"
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

func stubQueue(t *testing.T) (*Queue, *zkconn.Conn) {
	t.Helper()
	s := zkconn.Use(&stubConn{}, zkconn.Config{
		Timeout: func() time.Duration { return time.Minute }, ServerTick: time.Second,
		InOrder: true,
	})
	t.Cleanup(s.Release)
	return &Queue{
		Spec: znode.Spec{
			Dir: "/lock", Kind: "lock-", Log: slog.New(slog.DiscardHandler),
		},
		Kinds:    []string{"lock-"},
		Excludes: func(_, _ order.Name) bool { return true },
	}, s
}

// A session can end before the answer to a create has reached the Member.
func TestACohortKeepsNobodyWhoHasEnded(t *testing.T) {
	q, s := stubQueue(t)
	m := q.newMember(s, &Request{})
	require.NoError(t, m.join(t.Context(), ""))
	require.False(t, m.cohort.order.Idle())
	m.node.SessionEnded(outcome.ErrSessionEnded)
	_ = m.node.StartLeaving()(t.Context())
	require.Eventually(t, func() bool {
		m.cohort.mu.Lock()
		defer m.cohort.mu.Unlock()
		return m.cohort.unused && m.cohort.order.Idle()
	}, time.Minute, time.Millisecond)
	late := q.newMember(s, &Request{})
	late.Sending()
	require.NotSame(t, m.cohort, late.cohort)
	late.Ended(outcome.ErrSessionEnded)
	late.Removed(false)
	require.False(t, late.cohort.unused, "its create is under way")
	require.NoError(t, late.Created(m.node))
	require.True(t, late.cohort.order.Idle())
	require.True(t, late.cohort.unused)
}

// A movingConn has another session from its second look on, once it moves.
type movingConn struct {
	stubConn
	moves atomic.Bool
	looks atomic.Int64
}

func (c *movingConn) SessionID() int64 {
	if c.moves.Load() {
		return min(c.looks.Add(1), 2)
	}
	return 1
}

// The connection can be away as a list begins. What that shows is of neither epoch.
func TestAListThatBeginsBetweenTwoEpochsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no tick looks meanwhile
		q, _ := stubQueue(t)
		conn := &movingConn{stubConn: stubConn{name: "lock-0000000000"}}
		s := zkconn.Use(conn, zkconn.Config{
			Timeout:    func() time.Duration { return time.Minute },
			ServerTick: time.Second, InOrder: true,
		})
		t.Cleanup(s.Release)
		c := q.enlist(s)
		conn.moves.Store(true)
		p := c.beginListLocked(q, false)
		c.mu.Unlock()
		l, err := p.Wait(t.Context())
		require.NoError(t, err)
		require.Empty(t, l.names)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leaveLocked()
	})
}
