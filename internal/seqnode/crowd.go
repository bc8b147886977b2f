package seqnode

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/zkrecipes/recipes/internal/session"
)

// A crowd is the Nodes of one connection in one queue, and what they know together. The
// number of a znode is one more than that of the one created before it, so neighbours
// know each other without a list; and a list that one of them has got tells all whom it
// shows. See the package's page.
type crowd struct {
	key crowdKey

	// mu guards what follows, and whether the crowd is among crowds. A Node's comes after
	// it, and the session's; nobody who has it waits for anything else.
	mu      sync.Mutex
	nodes   []*Node        // in order, those whose znodes may be there
	coming  map[string]int // how many creates are under way, by kind
	view    *view          // the last list; nil: there was none
	listing *session.Pending[*view]
	others  int  // how many were ahead of the first, at its last look
	unused  bool // another has the key, or will: nobody may join
}

type crowdKey struct {
	s *session.Session
	queueKey
}

type queueKey struct{ dir, kinds string }

// crowds finds the crowd of a connection and a queue. It has those that have Nodes.
var crowds sync.Map // crowdKey to *crowd

func (q *Queue) key() queueKey { return queueKey{q.Dir, strings.Join(q.Kinds, "/")} }

// joinCrowd takes note of a create in the queue that is about to be sent, until came is
// called. led tells whether one of this process most likely has to go before its znode.
func (q *Queue) joinCrowd(s *session.Session) (c *crowd, led bool) {
	key := crowdKey{s, q.key()}
	for {
		found, ok := crowds.Load(key)
		if !ok {
			found, _ = crowds.LoadOrStore(key, &crowd{key: key, coming: map[string]int{}})
		}
		c = found.(*crowd)
		if led, ok := c.expect(q, s.SessionID()); ok {
			return c, led
		}
	}
}

func (c *crowd) expect(q *Queue, zkSession int64) (led, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unused {
		return false, false
	}
	for kind, n := range c.coming {
		led = led || n > 0 && q.excludes(Name{Kind: kind}, Name{Kind: q.Kind, Seq: 1})
	}
	if last := len(c.nodes) - 1; last >= 0 && !led {
		next := Name{Kind: q.Kind, Seq: c.nodes[last].name.Seq + 1}
		led = q.nearest(c.nodes, zkSession, next) != nil
	}
	c.coming[q.Kind]++
	return led, true
}

// nearest returns the last of nodes that has to go before another of the same session,
// which is behind them; nil where there is none.
func (q *Queue) nearest(nodes []*Node, zkSession int64, other Name) *Node {
	for _, m := range slices.Backward(nodes) {
		if m.session == zkSession && m.ended.Err() == nil && q.excludes(m.name, other) {
			return m
		}
	}
	return nil
}

// came ends what joinCrowd has begun.
func (c *crowd) came(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.coming[kind]--; c.coming[kind] == 0 {
		delete(c.coming, kind)
	}
	c.forget()
}

// forget is called with mu held.
func (c *crowd) forget() {
	if len(c.nodes) == 0 && len(c.coming) == 0 && !c.unused {
		c.unused = true
		crowds.Delete(c.key)
	}
}

// add takes note that n's znode is there, unless n has ended already.
func (c *crowd) add(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.hasEnded() {
		return
	}
	at, _ := c.find(n.name)
	c.nodes = slices.Insert(c.nodes, at, n)
}

// leaveCrowd takes note that n's znode has gone.
func (n *Node) leaveCrowd() {
	c := n.crowd
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.find(n.name); ok {
		c.nodes = slices.Delete(c.nodes, at, at+1)
	}
	c.forget()
}

// find is called with mu held.
func (c *crowd) find(name Name) (at int, ok bool) {
	return slices.BinarySearchFunc(c.nodes, name, func(n *Node, name Name) int {
		return compare(n.name, name)
	})
}

// ahead returns the nearest of this process that has to go before n, nil where there is
// none, and how many are ahead of n, but for others who have come in between.
func (c *crowd) ahead(n *Node) (blocker *Node, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, _ := c.find(n.name)
	return n.q.nearest(c.nodes[:at], n.session, n.name), c.others + at
}

// tell takes note of how many are ahead of the first.
func (c *crowd) tell(n *Node, p position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.alone && len(c.nodes) > 0 && c.nodes[0] == n {
		c.others = p.ahead
	}
}

// between returns how many Nodes there are between a number and n; false where there are
// others, one of them may have to go before n, or is of a former directory.
func (c *crowd) between(seq int32, n *Node, born int64) (count int, ok bool) {
	c.mu.Lock()
	at, _ := c.find(n.name)
	from, _ := c.find(Name{Seq: seq + 1})
	between := slices.Clone(c.nodes[min(from, at):at])
	c.mu.Unlock()
	if n.name.Seq-seq != int32(len(between))+1 { //nolint:gosec // few
		return 0, false
	}
	for _, b := range between {
		if n.q.excludes(b.name, n.name) && !b.yields() || b.Token() < born {
			return 0, false
		}
	}
	return len(between), true
}

// list lists the queue for all who want that at once. asked is false where that was
// begun before: it may not show who has come since.
func (c *crowd) list(ctx context.Context, q *Queue) (v *view, asked bool, err error) {
	c.mu.Lock()
	p := c.listing
	if asked = p == nil || isDone(p.Done()); asked {
		p = session.Start(c.key.s, func() (*view, error) {
			l, err := q.list(c.key.s)
			if err != nil {
				return nil, err
			}
			return newView(q, l)
		})
		c.listing = p
	}
	c.mu.Unlock()
	v, err = p.Wait(ctx)
	return v, asked, err
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// learn keeps what a list tells for all whom it shows.
func (c *crowd) learn(v *view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.newer(c.view) {
		c.view = v
	}
}

// known returns the last list and the index at which it shows n; nil if it does not.
func (c *crowd) known(n *Node) (v *view, self int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == nil {
		return nil, 0
	}
	self, ok := c.view.find(n.name)
	if !ok {
		return nil, 0
	}
	return c.view, self
}

// left returns those ahead of the one at self who are not known to have gone.
func (c *crowd) left(v *view, self int) []Name {
	c.mu.Lock()
	defer c.mu.Unlock()
	return v.queue[min(v.gone, self):self]
}

// clear takes note that nobody is ahead of n any more.
func (c *crowd) clear(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = 0
	if c.view == nil {
		return
	}
	if at, ok := c.view.find(n.name); ok {
		c.view.gone = max(c.view.gone, at)
	}
}
