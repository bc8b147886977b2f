package seqnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A cohort is the Members of one connection in one queue, and what they know together:
// an [order.Queue], which every method here tells one fact or asks one question. What one
// of them has found out serves all.
type cohort struct {
	key cohortKey

	// mu guards what follows, and what Members say it guards. A Node's mutex, and those
	// of package zkconn, come after it. A caller that has it does not wait, sends no
	// request, and ends no Node (but see Member.End).
	mu     sync.Mutex
	order  *order.Queue
	users  int  // creates under way, and Members that are not removed
	unused bool // another has the key, or will: nobody may join

	// the last list that is shared, which may be under way, and when it was asked for
	listing *calls.Pending[listed]
	stamp   order.Stamp

	strays strays
}

// listed is what a list was good for besides the facts that were reported.
type listed struct {
	names   []seqname.Name // the participants, in order
	foreign string         // one of what should not be in the directory; "": nothing
}

// An answer is one to a list, and when that was asked for.
type answer struct {
	stamp    order.Stamp
	epoch    order.Epoch
	children []string
	stat     *zk.Stat
	err      error
}

type cohortKey struct {
	conn *zkconn.Conn
	Key
}

// A Key identifies a queue, whatever kind of znode stands in it.
type Key struct{ dir, kinds string }

// cohorts finds the cohort of a connection and a queue. It has those that are used.
var cohorts sync.Map // cohortKey to *cohort

// Key returns the queue's.
func (q *Queue) Key() Key { return Key{q.Dir, strings.Join(q.Kinds, "/")} }

// enlist returns the cohort of a connection in the queue, with one user more and locked.
func (q *Queue) enlist(conn *zkconn.Conn) *cohort {
	key := cohortKey{conn, q.Key()}
	for {
		found, ok := cohorts.Load(key)
		if !ok {
			found, _ = cohorts.LoadOrStore(key, newCohort(key, q))
		}
		c := found.(*cohort)
		c.mu.Lock()
		if !c.unused {
			c.users++
			return c
		}
		c.mu.Unlock()
	}
}

// newCohort knows of the queue what was noted when the last cohort went.
func newCohort(key cohortKey, q *Queue) *cohort {
	c := &cohort{key: key, order: order.New(order.Rules{
		Excludes: q.Excludes, Nested: q.Nested, Ordered: key.conn.InOrder(),
	})}
	if w, ok := key.conn.Noted(key.Key).(order.Watermark); ok {
		c.order.Remember(w)
	}
	return c
}

// leaveLocked takes a user away. The last one notes how far the queue has come.
func (c *cohort) leaveLocked() {
	if c.users--; c.users > 0 {
		return
	}
	c.unused = true
	if w, ok := c.order.Watermark(); ok {
		c.key.conn.Note(c.key.Key, w)
	}
	cohorts.Delete(c.key)
}

// epoch is how often the connection has been away.
func (c *cohort) epoch() order.Epoch { return order.Epoch(c.key.conn.Epoch()) }

// asking returns the Stamp of a request that follows: its answer is reported with that.
func (c *cohort) asking() order.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Asking(c.epoch(), false)
}

// gone tells that a participant was seen to be gone; there, that it was not.
func (c *cohort) gone(stamp order.Stamp, n seqname.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Gone(stamp, n)
}

func (c *cohort) there(stamp order.Stamp, n seqname.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.There(stamp, n)
}

// noParticipant tells that the znode of that name is none, although the name looks like
// one: it has, or had, children. For the order it has gone, and no list shows it from now
// on.
func (c *cohort) noParticipant(stamp order.Stamp, n seqname.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strays.add(n)
	c.order.Gone(stamp, n)
}

// strays are the names that noParticipant was called with, in one incarnation of the
// queue's directory: in another one the server may give them to participants.
type strays struct {
	of    int64 // the czxid of that incarnation, as the last list has shown it
	names map[string]bool
}

func (s *strays) add(n seqname.Name) {
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[n.Text] = true
}

// without returns the names of a list that may be participants'.
func (s *strays) without(names []seqname.Name, czxid int64) []seqname.Name {
	if s.of != czxid {
		s.of, s.names = czxid, nil
	}
	if s.names == nil {
		return names
	}
	return slices.DeleteFunc(names, func(n seqname.Name) bool { return s.names[n.Text] })
}

// countsNumbers reports whether the watermark may tell m's turn, so that it is worth
// waiting for an answer about the directory.
func (c *cohort) countsNumbers(m *Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.order.Watermark()
	return ok && (m.queue.Nested == nil || !m.queue.Nested(m.self.Name()))
}

// decide asks whose turn it is. It first tells what the watches say now: a watch that has
// not fired proves something only if it was looked at before the decision. The epoch is
// read before the watch on the directory, for what that says, and again for the decision:
// if the connection was away in between, what the watch said does not count.
func (c *cohort) decide(m *Member) order.Decision {
	c.mu.Lock()
	before := c.epoch()
	czxid, _ := c.key.conn.IncarnationNow(m.queue.Dir) // 0: not known
	c.order.LearnIncarnation(before, czxid)
	c.confirmLocked(m)
	d := c.order.Decide(m.self, c.epoch())
	token := m.self.Token()
	c.mu.Unlock()
	m.node.LearnToken(token)
	m.node.DrainEvent() // it may end the Node, for which c.mu must be free
	return d
}

// isFollowed reports whether somebody behind m is known to wait for it.
func (c *cohort) isFollowed(m *Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Followed(m.self)
}

// confirmLocked tells what the watch on m's own znode says, and the token, which may have
// become known.
func (c *cohort) confirmLocked(m *Member) {
	c.order.LearnToken(m.self, m.node.Token())
	if epoch, ok := m.node.Confirmation(); ok {
		c.order.Confirmed(m.self, order.Epoch(epoch))
	} else {
		c.order.Unconfirmed(m.self)
	}
}

// doubt has m look at a new list, whatever is known.
func (c *cohort) doubt(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Doubt(m.self)
}

// held tells that m, which was granted, is about to be relied on.
func (c *cohort) held(m *Member, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmLocked(m) // its token counts for those behind
	c.order.Held(m.self, first)
}

// notHeld takes held back: m is not relied on after all.
func (c *cohort) notHeld(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.NotHeld(m.self)
}

// list lists the directory for m, and reports what it shows. All whom one list serves
// share it.
func (c *cohort) list(
	ctx context.Context, m *Member, mayLag bool,
) (listed, error) {
	c.mu.Lock()
	p := c.listing
	// One under way will do, if nothing has happened since that it may not show.
	if p == nil || p.Ended() || !c.order.Serves(c.stamp, m.self, c.epoch()) {
		p = c.beginListLocked(m.queue, mayLag)
	}
	c.mu.Unlock()
	return p.Wait(ctx)
}

// beginListLocked sends a list, behind a sync if the server may lag: it knows then what
// anybody has seen before.
func (c *cohort) beginListLocked(q *Queue, mayLag bool) *calls.Pending[listed] {
	conn, epoch := c.key.conn, c.epoch()
	stamp := c.order.Asking(epoch, false)
	var list *calls.Pending[listed]
	list = calls.Start(conn, func() (listed, error) {
		if mayLag {
			if err := conn.Sync(q.Dir); err != nil {
				return listed{}, err
			}
			c.mu.Lock()
			stamp = c.order.Asking(epoch, true)
			if c.listing == list { // no later one was sent meanwhile
				c.stamp = stamp
			}
			c.mu.Unlock()
		}
		return c.report(q, q.children(conn, stamp, epoch))
	})
	c.listing, c.stamp = list, stamp
	return list
}

// report tells what a list has shown, and ends the Members that the list should have
// shown and did not. An answer that came in a later epoch is dropped: the client may have
// sent the request in that one.
func (c *cohort) report(q *Queue, a answer) (listed, error) {
	var l order.Listing // of a directory that does not exist
	switch {
	case errors.Is(a.err, zk.ErrNoNode):
	case a.err != nil:
		return listed{}, a.err
	default:
		names := seqname.Participants(a.children, q.Kinds)
		l = order.Listing{Names: names, Czxid: a.stat.Czxid, Pzxid: a.stat.Pzxid}
	}
	if c.epoch() != a.epoch { // sent by one connection, answered by another
		return listed{}, nil
	}
	c.mu.Lock()
	l.Names = c.strays.without(l.Names, l.Czxid)
	missing, err := c.order.Listed(a.stamp, l)
	c.mu.Unlock()
	if err != nil { // the order in it is not certain
		return listed{}, outcome.Permanent(fmt.Errorf("in %s: %w", q.Dir, err))
	}
	// Until these have ended, those of this process behind them wait for that.
	for _, m := range missing {
		m.Driver.(*Member).node.Gone(znode.ErrUnlisted)
	}
	return listed{l.Names, q.Lint.Foreign(a.children, q.Kinds, len(l.Names))}, nil
}

// read reads several participants at once, and tells which are there.
func (c *cohort) read(ctx context.Context, q *Queue, names []seqname.Name) error {
	conn, stamp := c.key.conn, c.asking()
	reads := make([]*calls.Pending[struct{}], len(names))
	for i, n := range names {
		reads[i] = calls.Start(conn, func() (none struct{}, err error) {
			_, stat, err := conn.Read(q.Path(n))
			if err == nil && zkconn.IsDirectory(stat) {
				c.noParticipant(stamp, n)
				err = zk.ErrNoNode
			}
			return none, err
		})
	}
	for i, read := range reads {
		switch _, err := read.Wait(ctx); {
		case err == nil:
			c.there(stamp, names[i])
		case errors.Is(err, zk.ErrNoNode):
			c.gone(stamp, names[i])
		default:
			return err
		}
	}
	return nil
}

// children lists the directory.
func (q *Queue) children(
	conn *zkconn.Conn, stamp order.Stamp, epoch order.Epoch,
) answer {
	a := answer{stamp: stamp, epoch: epoch}
	a.children, a.stat, a.err = conn.Children(q.Dir)
	return a
}
