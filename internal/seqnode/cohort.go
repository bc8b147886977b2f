package seqnode

import (
	"slices"
	"strings"
	"sync"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A cohort is the Members of one connection in one queue, and what they know together:
// an [order.Queue], which every method here tells one fact or asks one question. What one
// of them has found out serves all.
type cohort struct {
	key cohortKey

	// mu guards what follows, and what Members say it guards. A Node's mutex, and those
	// of package zkconn, come after it. Whoever has it waits for nothing else, sends no
	// request, and ends no Node.
	mu     sync.Mutex
	order  *order.Queue
	users  int  // creates under way, and Members that are not removed
	unused bool // another has the key, or will: nobody may join

	// the last list that is shared, which may be under way, and when it was asked for
	listing *calls.Pending[listed]
	asked   order.Question

	directories directories
}

type cohortKey struct {
	s *zkconn.Conn
	Key
}

// A Key identifies a queue, whatever kind of znode stands in it.
type Key struct{ dir, kinds string }

// cohorts finds the cohort of a connection and a queue. It has those that are used.
var cohorts sync.Map // cohortKey to *cohort

// Key returns the queue's.
func (q *Queue) Key() Key { return Key{q.Dir, strings.Join(q.Kinds, "/")} }

// enlist returns the cohort of a connection in the queue, with one user more and locked.
func (q *Queue) enlist(s *zkconn.Conn) *cohort {
	key := cohortKey{s, q.Key()}
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
		Excludes: q.Excludes, Nested: q.Nested, Ordered: key.s.InOrder(),
	})}
	if w, ok := key.s.Noted(key.Key).(order.Watermark); ok {
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
		c.key.s.Note(c.key.Key, w)
	}
	cohorts.Delete(c.key)
}

// epoch is how often the connection has been away.
func (c *cohort) epoch() order.Epoch { return order.Epoch(c.key.s.Epoch()) }

// asking is called before a request whose answer is told with the Question.
func (c *cohort) asking() order.Question {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Asking(c.epoch(), false)
}

// gone tells that a participant was seen to be gone; there, that it was not.
func (c *cohort) gone(a order.Question, n seqname.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Gone(a, n)
}

func (c *cohort) there(a order.Question, n seqname.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.There(a, n)
}

// isDirectory tells of a name that it is no participant's, although it looks like one.
// For the order it has gone, and no list shows it from now on.
func (c *cohort) isDirectory(a order.Question, n seqname.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.directories.add(n)
	c.order.Gone(a, n)
}

// directories are names that no participant has, in one incarnation of a queue's
// directory: in another one the server may give them to participants.
type directories struct {
	of    int64 // the czxid of that incarnation, as the last list has shown it
	names map[string]bool
}

func (d *directories) add(n seqname.Name) {
	if d.names == nil {
		d.names = map[string]bool{}
	}
	d.names[n.Text] = true
}

// without returns the names of a list that may be participants'.
func (d *directories) without(names []seqname.Name, czxid int64) []seqname.Name {
	if d.of != czxid {
		d.of, d.names = czxid, nil
	}
	if d.names == nil {
		return names
	}
	return slices.DeleteFunc(names, func(n seqname.Name) bool { return d.names[n.Text] })
}
