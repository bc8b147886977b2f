package seqnode

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

func stubQueue(t *testing.T) (*Queue, *zkconn.Conn) {
	t.Helper()
	return &Queue{
		Spec: stubconn.Spec(), Kinds: []string{"lock-"},
		Excludes: func(_, _ seqname.Name) bool { return true },
	}, stubconn.Use(t, &stubconn.Conn{})
}

// join creates the znode of a Member.
func join(t *testing.T, m *Member) error {
	t.Helper()
	_, err := znode.Create(t.Context(), m.conn, &m.queue.Spec, "", m)
	return err
}

// isMember reports whether a queue has m, which has handed over: then nobody waits for
// its znode, even if a list shows it.
func isMember(q *order.Queue, m *Member) bool {
	name := m.self.Name()
	next := seqname.Name{Kind: name.Kind, Seq: name.Seq + 1, Text: "next"}
	self := q.Created(order.Creation{Name: next, Session: m.node.Session()})
	both := order.Listing{Names: []seqname.Name{name, next}}
	_, _ = q.Listed(q.Asking(0, true), both)
	return q.Decide(self, 0).Granted
}

// A session can end before the answer to a create has reached the Member.
func TestACohortKeepsNobodyWhoHasEnded(t *testing.T) {
	q, s := stubQueue(t)
	m := q.newWaiter(s, Request{}).Member
	require.NoError(t, join(t, m))
	require.False(t, m.cohort.unused)
	m.node.Lose(outcome.ErrSessionEnded)
	_ = m.node.StartLeaving()(t.Context())
	require.Eventually(t, func() bool {
		m.cohort.mu.Lock()
		defer m.cohort.mu.Unlock()
		return m.cohort.unused
	}, time.Minute, time.Millisecond)
	require.False(t, isMember(m.cohort.order, m))
	late := q.newWaiter(s, Request{}).Member
	late.Sending()
	require.NotSame(t, m.cohort, late.cohort)
	require.True(t, late.End(outcome.ErrSessionEnded, func() bool { return true }))
	late.Removed(false)
	require.False(t, late.cohort.unused, "its create is under way")
	require.NoError(t, late.Created(m.node))
	require.True(t, late.cohort.unused)
	require.False(t, isMember(late.cohort.order, late))
}

// The end of a Node is one step for its queue, its holder and whoever asks the Node: one
// that hears of its loss and tries again at once must not find itself in the way.
func TestACohortKnowsOfALossBeforeTheHolder(t *testing.T) {
	q, s := stubQueue(t)
	n, err := q.Enter(t.Context(), s, Request{})
	require.NoError(t, err)
	m := n.Hooks().(*Member)
	m.cohort.mu.Lock()
	go n.Gone(znode.ErrGone)
	select {
	case <-n.Lost().Done():
		require.Fail(t, "the holder hears of it first")
	case <-time.After(100 * time.Millisecond): // it waits for the cohort
	}
	require.False(t, n.HasEnded())
	m.cohort.mu.Unlock()
	<-n.Lost().Done()
	require.True(t, n.HasEnded())
	m.cohort.mu.Lock()
	defer m.cohort.mu.Unlock()
	require.True(t, m.cohort.order.Decide(m.self, m.cohort.epoch()).Over)
}

// A movingConn has another session from its second look on, once it moves.
type movingConn struct {
	stubconn.Conn
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
		conn := &movingConn{Conn: stubconn.Conn{Name: "lock-0000000000"}}
		s := stubconn.Use(t, conn)
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
