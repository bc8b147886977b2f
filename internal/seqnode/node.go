package seqnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/session"
)

// A Node is a znode of this process in a queue: queued at first, then held. It ends once:
// it leaves, or it is lost. It is safe for concurrent use.
type Node struct {
	// Set by newNode.
	Path    string
	q       *Queue
	s       *session.Session
	name    Name
	id      string // part of the name: the creation's
	strays  bool   // there may be others with it
	session int64  // the ZooKeeper session that the znode lives in
	onData  func(data []byte)
	crowd   *crowd // whom it stands in the queue with; nil of one that does not

	// The fencing token, 0 as long as it is not known; set once.
	token atomic.Int64

	// Done by end, once. removal is set before ended is done, and read after that.
	ended   context.Context
	endNow  context.CancelFunc
	removal *session.Pending[struct{}]

	// Done, with the cause, when somebody is to be told that the Node can no longer be
	// relied on: by end, Lose, and by what deletes the znode.
	lost    context.Context
	loseNow context.CancelCauseFunc

	self selfWatch

	// mu guards what follows, and nothing else is locked or waited for by those who have
	// it but session's own mutexes. A place's comes before it.
	mu      sync.Mutex
	state   state
	wasHeld bool  // somebody relies on it, or did when it ended
	first   bool  // nobody at all was ahead when it became held
	met     bool  // until then it had waited for one of another process
	guarded int   // transactions that the znode guards and whose outcome is open
	cause   error // why it ended
	endedAt time.Time
	// the loss margin of who relies on it, unless those are Shares, which have their own;
	// and until when its znode has to stay for one of them, who is to stop before others
	// go on
	margin       time.Duration
	staysUntil   time.Time
	cancelExpiry func() // takes back what expireLater has planned; nil: nothing

	// who else is told of a loss: those who rely on a place that is kept
	shares map[*Share]struct{}
}

// The state of a Node only moves forward, by hold and by end; unhold alone goes back. See
// the package's page.
type state int

const (
	stateQueued state = iota // in the queue, nobody relies on it
	stateHeld                // somebody relies on it
	stateEnded               // it left or was lost; its znode is about to go, or has gone
)

// errLeft ends a Node that left the queue by itself.
var errLeft = errors.New("left the queue")

// leaveWithin is what a call that gives up waits for its delete, so that it usually
// leaves nothing behind.
const leaveWithin = 80 * time.Millisecond

// newNode takes a znode that surely lives in the given session. czxid is 0 where it is
// not known.
func (c *creation) newNode(path string, name Name, zkSession, czxid int64) *Node {
	n := &Node{
		Path: path, q: c.q, s: c.s, name: name, id: c.id, strays: c.sent > 1,
		session: zkSession, onData: c.onData, crowd: c.crowd,
		margin: c.q.LossMargin,
		self:   selfWatch{firstRead: make(chan struct{})},
	}
	n.token.Store(czxid)
	n.ended, n.endNow = context.WithCancel(context.Background())
	n.lost, n.loseNow = context.WithCancelCause(context.Background())
	c.s.Retain() // until it is removed
	c.s.Track(path, zkSession, n)
	if n.crowd != nil {
		n.crowd.add(n)
	}
	return n
}

// Session is the id of the ZooKeeper session that the znode lives in.
func (n *Node) Session() int64 { return n.session }

// Token is the znode's fencing token. That of a held Node is known; of another one it may
// be 0.
func (n *Node) Token() int64 { return n.token.Load() }

// learnToken takes note of the token, unless it is known.
func (n *Node) learnToken(token int64) { n.token.CompareAndSwap(0, token) }

// Lost is done, with the cause, as soon as a held Node can no longer be relied on. It
// stays open when the Node leaves, unless the session is lost before ZooKeeper has
// confirmed that.
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

// hold makes a queued Node, whose token is known, a held one; first: with nobody at all
// ahead; met: it has waited for one of another process. It fails with
// errRejoin where the Node has ended. With any other error it stays queued: with
// session.ErrSuspended, to be held after word from the server; the others are final.
func (n *Node) hold(first, met bool) error {
	n.mu.Lock()
	if n.state == stateEnded {
		n.mu.Unlock()
		return errRejoin
	}
	// Before Session.Hold: a loss right behind that must be told.
	n.state, n.wasHeld, n.first, n.met = stateHeld, true, first, met
	n.mu.Unlock()
	err := n.s.Hold(n.Path, n.q.LossMargin)
	switch {
	case err == nil && n.ended.Err() != nil:
		return errRejoin
	case err == nil:
		n.watchSelfLater()
		return nil
	case errors.Is(err, session.ErrSessionEnded):
		n.Lose(err)
		return errRejoin
	default:
		n.unhold()
		return err
	}
}

// unhold undoes a hold that the session has refused, and of which nobody was told.
func (n *Node) unhold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wasHeld, n.first = false, false
	if n.state == stateHeld {
		n.state = stateQueued
	}
}

// Guard begins a transaction that checks n's znode; false where n has ended. settled ends
// it, once its outcome is known. While that is open the next in the queue waits until the
// znode is gone, also where n has left: the transaction may still be done.
func (n *Node) Guard() (settled func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == stateEnded {
		return nil, false
	}
	n.guarded++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.guarded--
	}, true
}

// yields tells whether n has ended, and nothing can be done under its znode any more,
// although that may still be there: those behind need not wait for it. Under the znode of
// a hold that was lost something can: its owner may not have heard of that yet, and a
// transaction that checks the znode passes.
func (n *Node) yields() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	lost := n.wasHeld && !errors.Is(n.cause, errLeft)
	return n.state == stateEnded && !n.inUseLocked() && !lost
}

// inUseLocked tells whether something may still be done under the znode although nobody
// relies on it.
func (n *Node) inUseLocked() bool {
	return n.guarded > 0 || time.Now().Before(n.staysUntil)
}

// linger keeps the znode for d from now on, whenever n ends by itself.
func (n *Node) linger(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lingerLocked(d)
}

func (n *Node) lingerLocked(d time.Duration) {
	if until := time.Now().Add(d); until.After(n.staysUntil) {
		n.staysUntil = until
	}
}

// expireLater ends a held Node after the longest time that its queue allows.
func (n *Node) expireLater() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.q.MaxHold > 0 && n.state == stateHeld {
		n.cancelExpiry = n.s.After(n.q.MaxHold, func() { n.end(ErrExpired) })
	}
}

// hasEnded tells it as soon as anything is done about it.
func (n *Node) hasEnded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state == stateEnded
}

// endedBefore tells whether n, which has ended, had done so at that time.
func (n *Node) endedBefore(at time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.endedAt.Before(at)
}

// leave ends the Node by its own wish; false: it had ended before.
func (n *Node) leave() bool { return n.end(errLeft) }

// gone ends the Node since its znode is, or is about to be: cause is ErrGone, errUnlisted
// or session.ErrSessionEnded.
func (n *Node) gone(cause error) { n.end(cause) }

// Lose takes note, by whomever it was found out, that the znode can no longer be relied
// on. That is told, too, of a Node that has left and whose delete nobody has confirmed.
func (n *Node) Lose(cause error) {
	if n.end(cause) {
		return
	}
	select {
	case <-n.removal.Done():
	default:
		n.tellLoss(cause)
	}
}

// SessionEnded implements session.Ephemeral.
func (n *Node) SessionEnded(cause error) { n.Lose(cause) }

// tellLoss tells whoever relies on n, or did when it ended.
func (n *Node) tellLoss(cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wasHeld {
		n.loseLocked(cause)
	}
}

// loseLocked tells the Shares first: who waits for the Node's delete is woken by the
// Node, and looks at its Share.
func (n *Node) loseLocked(cause error) {
	for sh := range n.shares {
		sh.cancelExpiry()
		sh.forgo()
		if leavesMargin(cause) {
			n.lingerLocked(sh.margin)
		}
		sh.loseNow(cause)
	}
	n.loseNow(cause)
}

// attach lets sh rely on n, and be told of a loss from now on. It fails with ErrGone
// where n is lost; with any other error n is held as before, and sh may be let in later.
func (n *Node) attach(sh *Share) error {
	if n.rely() != nil {
		return ErrGone
	}
	if sh.margin > 0 {
		if err := n.s.Rely(n.Path, sh, sh.margin); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state != stateHeld {
		sh.forgo()
		return ErrGone
	}
	if n.shares == nil {
		n.shares = map[*Share]struct{}{}
	}
	n.shares[sh] = struct{}{}
	return nil
}

// waive leaves it to the Shares of a held Node what margin they have.
func (n *Node) waive() {
	n.s.Waive(n.Path)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.margin = 0
}

// detach undoes attach; false where n is not held any more, and sh was told.
func (n *Node) detach(sh *Share) bool {
	sh.forgo()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state != stateHeld {
		return false
	}
	delete(n.shares, sh)
	return true
}

// sharers returns who is attached.
func (n *Node) sharers() []*Share {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.shares))
}

// rely asks the clock whether n, which is held, can be relied on at this moment. Where it
// cannot, although nobody may have been told yet, n is lost.
func (n *Node) rely() error {
	err := n.s.Hold(n.Path, 0)
	if errors.Is(err, session.ErrTooShort) { // by what is known of the servers since
		err = fmt.Errorf("%w: %w", session.ErrSuspended, err)
	}
	if err != nil {
		n.Lose(err)
	}
	return err
}

// end ends the Node, once; there is no other way out. Whatever the cause: the holder is
// told first, then the followers, and no znode stays. It is deleted at once, unless the
// one who is told has a margin to stop what he does.
func (n *Node) end(cause error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == stateEnded {
		return false
	}
	if n.state == stateHeld && !errors.Is(cause, errLeft) {
		n.loseLocked(cause)
	}
	n.state, n.cause, n.endedAt = stateEnded, cause, time.Now()
	if errors.Is(cause, errLeft) {
		n.passFront()
	}
	if isDeleted(cause) {
		n.s.HoldBack() // before anybody who hears of it asks for anything
	}
	if n.wasHeld && leavesMargin(cause) {
		n.lingerLocked(n.margin)
	}
	stays := n.staysUntil.Sub(n.endedAt)
	if n.cancelExpiry != nil {
		n.cancelExpiry()
	}
	n.self.stopLocked()
	n.removal = session.Start(n.s, func() (struct{}, error) {
		defer n.s.Release()
		defer n.s.Untrack(n.Path)
		defer n.leaveCrowd()
		_ = n.s.Pause(context.Background(), stays) // it ends with the connection
		return struct{}{}, n.remove(cause)
	})
	n.endNow()
	return true
}

// StartLeaving deletes the znode, in the background for as long as the session lasts.
// left waits for that until its ctx is done. Its error says why the Node had been lost
// before, ErrGone or session.ErrSessionEnded among others, or why the outcome is not
// known yet.
func (n *Node) StartLeaving() (left func(ctx context.Context) error) {
	if !n.leave() {
		return func(context.Context) error { return n.Cause() }
	}
	return func(ctx context.Context) error {
		select {
		case <-n.removal.Done(): // an answer that is in wins over a ctx that is done
			return n.removal.Err()
		default:
		}
		select {
		case <-n.removal.Done():
			return n.removal.Err()
		case <-ctx.Done():
			return session.Cancelled(ctx)
		case <-n.lost.Done():
			return context.Cause(n.lost)
		}
	}
}

// Withdraw is StartLeaving without waiting for any result.
func (n *Node) Withdraw() { n.leave() }

// giveUp leaves without a result, in a time that a caller who has run out of time can
// spare. It goes on in the background. Nodes of a later group leave once those of the
// former have, or that time is over.
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

// remove deletes the znode of a Node that ended by cause, trying for as long as the
// session lasts.
func (n *Node) remove(cause error) error {
	if isDeleted(cause) {
		return cause
	}
	err := n.q.remove(n.s, n.Path, n.session)
	switch {
	case isLoss(err):
		n.tellLoss(err)
	case session.Final(err):
		n.q.Log.Error("zookeeper lock: a znode stays until its session ends",
			"node", n.Path, "error", err)
	}
	return err
}

// leavesMargin tells of a loss whether the lock need not pass on yet: the others come by
// the doing of ZooKeeper or of somebody else.
func leavesMargin(cause error) bool {
	return errors.Is(cause, session.ErrSuspended) || errors.Is(cause, ErrExpired)
}

// isDeleted tells of the cause of an end whether the znode has gone, for certain.
func isDeleted(cause error) bool {
	return errors.Is(cause, ErrGone) && !errors.Is(cause, errUnlisted)
}

// isLoss tells whether err says that a znode was lost, and not that a call failed.
func isLoss(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, session.ErrSessionEnded) ||
		errors.Is(err, session.ErrSuspended) || errors.Is(err, session.ErrClosed)
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
			// The delete before was ours, or the session has ended between the two, and
			// this one ran in the next session.
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
