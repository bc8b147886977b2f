package seqnode

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
)

// mindAfter is how long a znode must last to be worth the read that minds it.
const mindAfter = 20 * time.Millisecond

// errLeft ends a Node that left the queue by itself.
var errLeft = errors.New("left the queue")

// A Node is a znode of this process in a queue, waiting at first, then held. It ends once: it leaves, or it is lost.
type Node struct {
	Path string

	q       *Queue
	s       *session.Session
	name    Name
	id      string
	session int64 // the ZooKeeper session that the znode lives in
	changed func(data []byte)

	first       *session.Pending[listing] // the list behind the create, until it is used; of the goroutine in Enter
	reconnected <-chan struct{}           // likewise
	token       int64                     // likewise, until held; 0 is unknown
	turn        turn                      // likewise, by the last list; none where it may be n's
	asked       time.Time                 // likewise: when, what has no answer yet

	over     context.Context // done when the Node has ended: followers in this process and what minds it stop waiting
	overNow  context.CancelFunc
	lost     context.Context // done when the Node was lost while it was held, with the cause
	loseNow  context.CancelCauseFunc
	removal  *session.Pending[struct{}] // set before over is done
	mindOnce sync.Once
	known    chan struct{} // closed when czxid or readErr is set, by the first read of what minds it
	czxid    int64
	readErr  error

	mu      sync.Mutex // guards what follows
	soon    *time.Timer
	held    bool
	head    bool            // held, with nobody at all ahead
	guarded int             // transactions that the znode guards and whose outcome is open
	cause   error           // why it ended
	own     <-chan zk.Event // the present watch on the own znode
}

// newNode takes a znode that surely lives in the given session.
func (c *creation) newNode(path string, name Name, zkSession int64) *Node {
	n := &Node{
		Path: path, q: c.q, s: c.s, name: name, id: c.id, session: zkSession, changed: c.changed, known: make(chan struct{}),
	}
	n.over, n.overNow = context.WithCancel(context.Background())
	n.lost, n.loseNow = context.WithCancelCause(context.Background())
	c.s.Retain() // until it is removed
	c.s.Track(path, zkSession, n)
	return n
}

// Session is the id of the ZooKeeper session that the znode lives in.
func (n *Node) Session() int64 { return n.session }

// Token is the znode's fencing token; of a held Node only.
func (n *Node) Token() int64 { return n.token }

// Lost is done, with the cause, as soon as a held Node can no longer be relied on. It stays open when the Node leaves, unless
// the session is lost before ZooKeeper has confirmed that.
func (n *Node) Lost() context.Context { return n.lost }

// Cause tells why the Node ended, nil if it has not.
func (n *Node) Cause() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cause
}

// neighbour returns the Node at path if it is one of this process, in the same session.
func (n *Node) neighbour(path string) *Node {
	if m, ok := n.s.Ephemeral(path).(*Node); ok && m.session == n.session {
		return m
	}
	return nil
}

// take marks n as held. It fails with session.ErrSuspended where that has to be tried again after word from the server.
func (n *Node) take(ctx context.Context, head bool) error {
	if n.token == 0 {
		n.Mind()
		select {
		case <-n.known:
			if n.readErr != nil {
				return n.readErr
			}
			n.token = n.czxid
		case <-n.over.Done():
			return errRejoin
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.s.Closed():
			return n.s.Pause(ctx, 0)
		}
	}
	n.mu.Lock()
	if n.cause != nil {
		n.mu.Unlock()
		return errRejoin
	}
	n.held, n.head = true, head // before Hold: a loss right behind it must be told
	n.mu.Unlock()
	switch err := n.s.Hold(n.Path); {
	case err == nil && n.over.Err() != nil:
		return errRejoin
	case err == nil:
		n.mindSoon()
		return nil
	case errors.Is(err, session.ErrSessionEnded):
		n.SessionEnded(err)
		return errRejoin
	default:
		n.mu.Lock()
		defer n.mu.Unlock()
		n.held, n.head = false, false
		return err
	}
}

// handedOver tells whether n had its turn with nobody ahead and left by itself: the next in the queue has its turn, although
// the delete may still be under way, since nobody can have come between two neighbours.
func (n *Node) handedOver() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.head && errors.Is(n.cause, errLeft) && n.guarded == 0
}

// gone tells whether n has ended, and nothing can be done under its znode any more,
// although that may still be there. Under the znode of a hold that was lost there can: its
// owner may not have heard of that yet, and a transaction that checks the znode passes.
func (n *Node) gone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	lost := n.held && !errors.Is(n.cause, errLeft)
	return n.cause != nil && n.guarded == 0 && !lost
}

// Guard begins a transaction that checks n's znode; false where n has ended. settled ends
// it, once its outcome is known. While that is open the next in the queue waits until the
// znode is gone, also where n has left: the transaction may still be done.
func (n *Node) Guard() (settled func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cause != nil {
		return nil, false
	}
	n.guarded++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.guarded--
	}, true
}

// StartLeaving deletes the znode, in the background for as long as the session lasts. left
// waits for that until its ctx is done. Its error says why the Node had been lost before,
// ErrGone or session.ErrSessionEnded among others, or why the outcome is not known yet.
func (n *Node) StartLeaving() (left func(ctx context.Context) error) {
	if !n.end(errLeft) {
		return func(context.Context) error { return n.Cause() }
	}
	return func(ctx context.Context) error {
		select {
		case <-n.removal.Done():
			return n.removal.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.lost.Done():
			return context.Cause(n.lost)
		}
	}
}

// Withdraw is StartLeaving without waiting for any result.
func (n *Node) Withdraw() { n.end(errLeft) }

// giveUp leaves without a result, in a time that a caller who has run out of time can spare. It goes on in the background. Nodes of a
// later group leave once those of the former have.
func giveUp(ctx context.Context, groups ...[]*Node) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	for _, nodes := range groups {
		for _, n := range nodes {
			n.Withdraw()
		}
		for _, n := range nodes {
			_, _ = n.removal.Wait(ctx)
		}
	}
}

// SessionEnded implements session.Ephemeral.
func (n *Node) SessionEnded(cause error) { n.Lose(cause) }

// Lose takes note, by whomever it was found out, that the znode can no longer be relied on.
func (n *Node) Lose(cause error) {
	if n.end(cause) {
		return
	}
	select {
	case <-n.removal.Done():
	default:
		if n.wasHeld() {
			n.loseNow(cause)
		}
	}
}

func (n *Node) wasHeld() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held
}

// end ends the Node, once. Whatever the cause: the holder is told first, then the followers, and no znode stays.
func (n *Node) end(cause error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cause != nil {
		return false
	}
	n.cause = cause
	if n.soon != nil {
		n.soon.Stop()
	}
	if n.held && !errors.Is(cause, errLeft) {
		n.loseNow(cause)
	}
	n.removal = session.Start(n.s, func() (struct{}, error) {
		defer n.s.Release()
		defer n.s.Untrack(n.Path)
		return struct{}{}, n.remove(cause)
	})
	n.overNow()
	return true
}

// remove deletes the znode of a Node that ended by cause, trying for as long as the session lasts.
func (n *Node) remove(cause error) error {
	if errors.Is(cause, ErrGone) && !errors.Is(cause, errUnlisted) {
		return cause
	}
	err := n.q.remove(n.s, n.Path, n.session)
	switch {
	case isLoss(err):
		if n.wasHeld() {
			n.loseNow(err)
		}
	case session.Final(err):
		n.q.Log.Error("zookeeper lock: a znode stays until its session ends", "node", n.Path, "error", err)
	}
	return err
}

// isLoss tells whether err says that a znode was lost, and not that a call failed.
func isLoss(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, session.ErrSessionEnded) || errors.Is(err, session.ErrSuspended) ||
		errors.Is(err, session.ErrClosed)
}

// remove deletes a znode of the given session. ErrGone says that it was gone before.
func (q *Queue) remove(s *session.Session, path string, zkSession int64) error {
	unknown := false
	return s.Retry(context.Background(), func() error {
		if s.SessionID() != zkSession {
			return session.Permanent(session.ErrSessionEnded)
		}
		err := s.Delete(path, -1)
		switch {
		case err == nil:
			return nil
		case unknown && errors.Is(err, zk.ErrNoNode):
			// The delete before was ours, or the session has ended between the two, and this one ran in the next session.
			if s.SessionID() != zkSession {
				return session.Permanent(session.ErrSessionEnded)
			}
			return nil
		case errors.Is(err, zk.ErrNoNode):
			return session.Permanent(ErrGone)
		}
		unknown = unknown || !session.NotDone(err)
		return err
	})
}

// Mind keeps a watch on the own znode from now on: its deletion is noticed at once, and its data's changes are told.
func (n *Node) Mind() {
	n.mindOnce.Do(func() {
		session.Start(n.s, func() (struct{}, error) {
			n.mind()
			return struct{}{}, nil
		})
	})
}

// mindSoon minds n if it lasts.
func (n *Node) mindSoon() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.soon == nil && n.cause == nil {
		n.soon = time.AfterFunc(mindAfter, n.Mind)
	}
}

func (n *Node) mind() {
	var told int32 // the version of the data that was told; a new znode has 0
	for {
		var own reading
		err := n.s.Retry(n.over, func() (err error) {
			own, err = session.Call(n.over, n.s, n.read)
			return err
		})
		switch {
		case n.over.Err() != nil:
			return
		case errors.Is(err, zk.ErrNoNode) && n.s.SessionID() == n.session:
			n.end(ErrGone)
			return
		case errors.Is(err, zk.ErrNoNode):
			n.end(session.ErrSessionEnded)
			return
		case err != nil:
			n.learn(0, err)
			n.q.Log.Warn("zookeeper lock: cannot watch the own znode", "node", n.Path, "error", err)
			return
		}
		n.watched(own.events)
		n.learn(own.stat.Czxid, nil)
		if own.stat.Version > told {
			told = own.stat.Version
			n.changed(own.data)
		}
		if !n.nextEvent(own.events) {
			return
		}
	}
}

type reading struct {
	data   []byte
	stat   *zk.Stat
	events <-chan zk.Event
}

// read reads the own znode and sets a watch on it. The watch is not shared: it fires at the latest when the Node leaves.
func (n *Node) read() (r reading, err error) {
	r.data, r.stat, r.events, err = n.s.GetW(n.Path)
	return r, err
}

func (n *Node) watched(events <-chan zk.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.own = events
}

// stands tells, of a Node that is minded, whether its znode was there when the last event
// came: a server sends events in order, so the watch on it would have fired before. What
// happened while the connection was away the client tells in any order, after it is back;
// then only a list can tell.
func (n *Node) stands(ctx context.Context) bool {
	select {
	case <-n.known:
	case <-n.over.Done():
		return false
	case <-ctx.Done():
		return false
	}
	if n.s.AwaySince(n.reconnected) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.own: // closed behind its only event, which what minds n can do without
		return false
	default:
		return n.own != nil
	}
}

// learn publishes what the first read found.
func (n *Node) learn(czxid int64, err error) {
	select {
	case <-n.known:
	default:
		n.czxid, n.readErr = czxid, err
		close(n.known)
	}
}

// nextEvent waits for the watch on the own znode; false ends the minding.
func (n *Node) nextEvent(events <-chan zk.Event) bool {
	select {
	case <-n.over.Done():
		return false
	case ev := <-events:
		switch {
		case ev.Type == zk.EventNodeDeleted:
			n.end(ErrGone)
		case errors.Is(ev.Err, zk.ErrSessionExpired):
			n.end(session.ErrSessionEnded)
		case errors.Is(ev.Err, zk.ErrClosing):
			n.s.ConnClosed()
		default:
			return true
		}
		return false
	}
}
