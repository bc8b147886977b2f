package seqnode

import (
	"errors"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Member is one Node of ours and what its queue knows of it. It implements znode.Hooks,
// and tells the cohort what becomes of the Node.
type Member struct {
	// Set by newWaiter; under by EnterUnder.
	queue    *Queue
	conn     *zkconn.Conn
	listener Listener // may be nil
	under    *Member  // the writer whose number it takes; nil of one that waits its turn

	// Written by Sending and Created, on the goroutine of the create. The waiter reads
	// them, and uses firstList up, once znode.Create has returned.
	cohort    *cohort
	node      *znode.Node
	epoch     order.Epoch            // from before the create was sent
	firstList *calls.Pending[answer] // the list behind the create; nil once it is used

	// Guarded by cohort.mu. Created sets self. The Node may end before that; then early
	// says so, and Created makes up for it.
	self  *order.Member
	early earlyEnd
}

// An earlyEnd is what happened to a Node before the order had its Member.
type earlyEnd struct{ ended, removed, gone bool }

// Sending implements Hooks: the create follows. It begins the list, on a goroutine of its
// own, so that the list goes out right behind the create, without waiting for its answer:
// an uncontended lock takes one round trip. The list may overtake the create. It counts
// only if it shows the znode.
func (m *Member) Sending() {
	c := m.queue.enlist(m.conn) // c.mu is held from here on
	plan := order.WithList
	// Read before the create is sent: its answer proves nothing of a later connection.
	epoch := c.epoch()
	m.cohort, m.firstList, m.epoch = c, nil, epoch
	if m.under == nil {
		plan = c.order.Creating(m.queue.Kind, m.conn.SessionID())
	}
	stamp := c.order.Asking(epoch, false)
	c.mu.Unlock()
	// The next number proves that nobody is ahead, if the parent znode is still the same.
	// A watch tells that, which is set once and serves all later creates.
	byNumber := false
	if plan == order.WithDirectory && m.conn.TellsCreates() {
		byNumber = m.conn.WatchIncarnation(m.queue.Dir)
	}
	if plan != order.NoList && !byNumber {
		m.firstList = calls.Start(m.conn, func() (answer, error) {
			return m.queue.children(m.conn, stamp, epoch), nil
		})
	}
}

// Created implements Hooks.
func (m *Member) Created(n *znode.Node) error {
	c := m.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == nil {
		m.notCreatedLocked()
		return nil
	}
	m.node = n
	name, err := seqname.Numbered(n.Path, m.queue.Kind)
	if err != nil {
		m.notCreatedLocked()
		return err
	}
	creation := order.Creation{
		Name: name, Session: n.Session(), Czxid: n.Token(), Epoch: m.epoch,
		Orphans: n.MayHaveOrphans(),
	}
	if m.under != nil {
		creation.Under = m.under.self
	}
	m.self = c.order.Created(creation)
	m.self.Driver = m
	// The session can have ended before the answer came here: then the Node ended first.
	if m.early.ended {
		m.endLocked(n.Cause())
	}
	if m.early.removed {
		m.removeLocked(m.early.gone)
	}
	return nil
}

func (m *Member) notCreatedLocked() {
	if m.under == nil {
		m.cohort.order.NotCreated(m.queue.Kind)
	}
	m.cohort.leaveLocked()
}

// End implements Hooks. Those behind m learn from it how far the queue has come, before
// they wake. With cohort.mu held nobody decides anything between the two steps: the one
// that has lost the lock and tries again at once does not find itself in the way, and
// nobody is granted the lock whose former holder was not notified.
func (m *Member) End(cause error, end func() bool) bool {
	m.cohort.mu.Lock()
	defer m.cohort.mu.Unlock()
	if !end() {
		return false
	}
	if m.early.ended = true; m.self != nil {
		m.endLocked(cause)
	}
	return true
}

func (m *Member) endLocked(cause error) {
	if errors.Is(cause, znode.ErrLeft) {
		m.cohort.order.Left(m.self, m.node.InUse())
	} else {
		m.cohort.order.Lost(m.self)
	}
}

// Removed implements Hooks.
func (m *Member) Removed(gone bool) {
	m.cohort.mu.Lock()
	defer m.cohort.mu.Unlock()
	if m.early.removed, m.early.gone = true, gone; m.self != nil {
		// Once more: what was in use when the Node left may not be so any more.
		m.endLocked(m.node.Cause())
		m.removeLocked(gone)
	}
}

func (m *Member) removeLocked(gone bool) {
	m.cohort.order.Removed(m.self, gone)
	m.cohort.leaveLocked()
}

// Data implements Hooks.
func (m *Member) Data(data []byte) {
	if m.listener != nil {
		m.listener.DataChanged(data)
	}
}

// waitsFor tells whether a participant must go before m may proceed.
func (m *Member) waitsFor(n seqname.Name) bool {
	self := m.self.Name()
	return n.Before(self) && m.queue.Excludes(n, self)
}

// isOneWith reports whether both came through one lock value.
func (m *Member) isOneWith(other *Member) bool {
	a, b := m.queue, other.queue
	return a == b || a.Value != nil && a.Value == b.Value
}
