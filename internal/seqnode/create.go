package seqnode

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// errNotCreated says that a create of unknown outcome has left no znode.
var errNotCreated = errors.New("the create did not reach the server")

// errNoDir says that the directory was missing, and is there now.
var errNoDir = errors.New("the directory was missing")

// A creation is one znode on its way into a queue.
type creation struct {
	// Set before join.
	q        *Queue
	s        *session.Session
	id       string
	onData   func(data []byte)
	number   string // the sequence number to take; "": the server is to number it
	skipList bool   // nobody wants the list behind the create
	next     func() // told just before a create is sent; may be nil

	dir *Dir // of the goroutine in join
	// creates in a row that broke the connection, and left no znode; of the goroutine in
	// create, and of that in join while there is none
	cut int

	sent  int    // creates so far; of the same goroutines
	crowd *crowd // of one that stands in a queue with others; likewise
}

// A server closes the connection on a request that is longer than its jute.maxbuffer, and
// says nothing. So a create with data of some length that breaks the connection this
// often in a row, while the requests that look for its znode get through, is not tried
// again: it would cost all who use the connection theirs, for ever.
const (
	cutsAtMost = 5
	someLength = 4096 // no server takes less
)

func (q *Queue) newCreation(s *session.Session, onData func([]byte)) *creation {
	return &creation{
		q: q, s: s, id: newID(), onData: onData, dir: NewDir(s, q.Dir, q.ACL),
	}
}

// join creates the znode, in the directory that it makes where it is missing. Where it
// fails, no directory stays that it made: a server does not reap one that never had a
// child.
func (c *creation) join(ctx context.Context) (w *waiter, err error) {
	defer func() {
		if err != nil {
			c.dir.Unmake(ctx)
		}
	}()
	err = c.s.Retry(ctx, func() (err error) {
		w, err = c.createAndList(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return session.Cancelled(ctx)
		case errors.Is(err, session.ErrClosed): // create may be under way
			return err
		case c.cut >= cutsAtMost && len(c.q.Data) >= someLength:
			return session.Permanent(c.cutOff())
		case errors.Is(err, zk.ErrNoNode):
			if err := c.dir.Make(ctx); err != nil {
				return err
			}
			return errNoDir
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if seq := w.node.name.Seq; nearLimit(seq) {
		giveUp(ctx, []*Node{w.node})
		return nil, counterAtItsEnd(c.q.Dir, seq)
	}
	return w, nil
}

func (c *creation) cutOff() error {
	return fmt.Errorf("create a znode in %s: %d tries with %d bytes of data broke the "+
		"connection, while other requests got through; is the servers' jute.maxbuffer "+
		"lower than that? %w", c.q.Dir, c.cut, len(c.q.Data), zk.ErrConnectionClosed)
}

func counterAtItsEnd(dir string, seq int32) error {
	return fmt.Errorf("the sequence counter of %s is at %d, near its end at 2147483647, "+
		"where ZooKeeper hands out equal numbers (ZOOKEEPER-4706): delete %s while "+
		"nobody uses it, or lock another path", dir, seq, dir)
}

// createAndList sends the list right behind the create, without waiting for its answer: a
// free lock takes one round trip. The list proves by showing the znode that it came
// second.
func (c *creation) createAndList(ctx context.Context) (*waiter, error) {
	s := c.s
	if err := s.BeginCreate(ctx); err != nil {
		return nil, err
	}
	reconnected := s.Reconnected()
	skip := c.skipList
	if c.q.Rule != nil && c.number == "" {
		c.crowd, skip = c.q.joinCrowd(s)
	}
	var first *session.Pending[listing] // set before created is done
	created := session.Start(s, func() (*waiter, error) {
		defer s.EndCreate()
		if c.crowd != nil {
			defer c.crowd.came(c.q.Kind)
		}
		return c.create(func() {
			if c.next != nil {
				c.next()
			}
			if !skip && (c.crowd == nil || !c.q.expectsTurn(s)) {
				first = session.Start(s, func() (listing, error) { return c.q.list(s) })
			}
		})
	})
	w, err := created.Wait(ctx)
	if w == nil && (ctx.Err() != nil || errors.Is(err, session.ErrClosed)) {
		created.Then(func(w *waiter, _ error) {
			if w != nil {
				w.node.Withdraw()
			}
		})
	}
	if err != nil {
		return nil, err
	}
	w.firstList, w.reconnected = first, reconnected
	return w, nil
}

// create makes the znode and finds out what became of it: a waiter that has it, or an
// error that says that there is none. It calls beforeSend just before the request goes to
// the client.
func (c *creation) create(beforeSend func()) (*waiter, error) {
	flags := int32(zk.FlagEphemeral)
	if c.number == "" {
		flags |= zk.FlagSequence
	}
	name := protectedPrefix + c.id + "-" + c.q.Kind + c.number
	zkSession := c.s.SessionID()
	// What it starts needs longer to start than this one to put the create in the
	// client's queue.
	beforeSend()
	c.sent++
	asked := zkpath.Join(c.q.Dir, name)
	path, err := c.s.Create(asked, c.q.Data, flags, c.q.ACL)
	if session.Answered(err) {
		c.cut = 0
	}
	// One that exists is ours: from another session, if not from this one.
	if session.NotDone(err) && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	// The client runs a call that it had queued in the next session, too. Session ids do
	// not come back: the same one before and after is the znode's.
	if err == nil && zkSession != 0 && c.s.SessionID() == zkSession {
		return c.adopt(path, zkSession, c.s.CreatedAt(asked))
	}
	w, err := c.find()
	if errors.Is(err, errNotCreated) {
		c.cut++
	}
	return w, err
}

// adopt makes a Node of a znode that is surely ours. czxid is 0 where it is not known.
func (c *creation) adopt(path string, zkSession, czxid int64) (*waiter, error) {
	_, text := zkpath.Split(path)
	name, ok := parse(text, []string{c.q.Kind})
	if !ok {
		return nil, fmt.Errorf("%w: created %s, which has no sequence number",
			zk.ErrAPIError, path)
	}
	return &waiter{node: c.newNode(path, name, zkSession, czxid)}, nil
}

// find looks for the znode of a create of unknown outcome, until it knows. A znode of
// another session is not taken over: its server is about to remove it (CURATOR-498,
// CURATOR-604).
func (c *creation) find() (*waiter, error) {
	var w *waiter
	err := c.s.Retry(context.Background(), func() (err error) {
		w, err = c.findOnce()
		return err
	})
	if w == nil && (err == nil || errors.Is(err, zk.ErrNoNode)) {
		return nil, errNotCreated
	}
	return w, err
}

func (c *creation) findOnce() (*waiter, error) {
	zkSession := c.s.SessionID()
	// the server we came back to may lag behind the create
	if err := c.q.sync(c.s); err != nil {
		return nil, err
	}
	l, err := c.q.list(c.s)
	if err != nil {
		return nil, err
	}
	var own string
	var czxid int64
	var refusal error
	for _, child := range l.children {
		if !hasID(child, c.id) {
			continue
		}
		path := zkpath.Join(c.q.Dir, child)
		_, stat, err := c.s.Get(path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil && !session.Final(err):
			return nil, err // nothing is discarded that the next search may take over
		case err == nil && own == "" && c.livesIn(zkSession, stat):
			own, czxid = path, stat.Czxid
		default:
			c.q.discard(c.s, path, zkSession)
			refusal = err
		}
	}
	if own == "" {
		return nil, refusal
	}
	return c.adopt(own, zkSession, czxid)
}

// livesIn tells whether a znode that was read just now is the given session's, and that
// still the connection's.
func (c *creation) livesIn(zkSession int64, stat *zk.Stat) bool {
	return stat.EphemeralOwner == zkSession && c.s.SessionID() == zkSession
}

// discard deletes a znode of ours that is none we hold.
func (q *Queue) discard(s *session.Session, path string, zkSession int64) {
	session.Start(s, func() (struct{}, error) {
		return struct{}{}, q.remove(s, path, zkSession)
	})
}

// discardStrays deletes what else turned up with n's id.
func (n *Node) discardStrays(queue []Name) {
	for _, m := range queue {
		if m.Text != n.name.Text && hasID(m.Text, n.id) {
			n.q.discard(n.s, n.q.Path(m), n.session)
		}
	}
}
