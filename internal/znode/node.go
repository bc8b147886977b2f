package znode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Node is an ephemeral znode of this process: waiting at first, then held. It ends
// once: it leaves, or it is lost. It is safe for concurrent use.
type Node struct {
	// Set by newNode.
	Path    string
	spec    *Spec
	s       *zkconn.Conn
	hooks   Hooks
	id      string // part of the name: the creation's
	orphans bool   // there may be others with it
	session int64  // the ZooKeeper session that the znode lives in

	// The fencing token, 0 as long as it is not known; set once.
	token atomic.Int64

	over ending
	loss loss
	self selfWatch

	// mu guards life, and nothing else is locked or waited for by those who have it but
	// session's own mutexes. Those of the packages above come before it.
	mu   sync.Mutex
	life life
}

// An ending is done by end, once.
type ending struct {
	ctx     context.Context
	now     context.CancelFunc
	removal *zkconn.Pending[struct{}] // set before ctx is done, and read after that
}

// A loss is done, with the cause, when somebody is to be told that the Node can no longer
// be relied on: by end, Lose, and by what deletes the znode.
type loss struct {
	ctx context.Context
	now context.CancelCauseFunc
}

// A life is what changes of a Node; guarded by Node.mu.
type life struct {
	state   state
	wasHeld bool  // somebody relies on it, or did when it ended
	guarded int32 // transactions that the znode guards and whose outcome is open
	cause   error // why it ended
	// the loss margin of who relies on it, unless those are Tenants, which have their
	// own; and until when its znode has to stay for one of them, who is to stop before
	// others go on
	margin       time.Duration
	staysUntil   time.Time
	cancelExpiry func() // takes back what ExpireLater has planned; nil: nothing
	// who else is told of a loss, with their margins
	tenants map[Tenant]time.Duration
}

// The state of a Node only moves forward, by Hold and by end; unhold alone goes back. See
// the package's page.
type state uint8

const (
	stateQueued state = iota // nobody relies on it
	stateHeld                // somebody relies on it
	stateEnded               // it left or was lost; its znode is about to go, or has gone
)

var (
	// ErrGone says that somebody deleted the znode.
	ErrGone = errors.New(
		"the znode was deleted (by somebody, or because the session ended)")
	// ErrExpired says that a hold has lasted for as long as its Terms allow.
	ErrExpired = errors.New("the hold reached the limit set by WithMaxHold")
	// ErrUnlisted is ErrGone as far as a list tells, which may be wrong: something
	// between us and the server can have made it up. A znode that is there after all
	// would block everybody.
	ErrUnlisted = fmt.Errorf("%w: its parent znode does not list it", ErrGone)
	// ErrEnded ends what somebody does with a Node that has ended. It is permanent.
	ErrEnded = zkconn.Permanent(errors.New("the queue entry was lost"))
	// ErrLeft is the cause of the end of a Node that left by itself.
	ErrLeft = errors.New("left the queue")
)

// LeaveWithin is how long a call that gives up waits for its delete, so that it usually
// leaves nothing behind.
const LeaveWithin = 80 * time.Millisecond

// newNode takes a znode that surely lives in the given session. czxid is 0 where it is
// not known.
func (c *creation) newNode(path string, session, czxid int64) *Node {
	n := &Node{
		Path: path, spec: c.spec, s: c.s, hooks: c.hooks, id: c.id, orphans: c.sent > 1,
		session: session,
		self:    selfWatch{firstRead: make(chan struct{})},
		life:    life{margin: c.spec.LossMargin},
	}
	n.token.Store(czxid)
	n.over.ctx, n.over.now = context.WithCancel(context.Background())
	n.loss.ctx, n.loss.now = context.WithCancelCause(context.Background())
	c.s.Retain() // until it is removed
	c.s.Track(path, session, n)
	return n
}

// Name is the name of the znode in its directory.
func (n *Node) Name() string {
	_, name := zkpath.Split(n.Path)
	return name
}

// Hooks is what the Node was created with.
func (n *Node) Hooks() Hooks { return n.hooks }

// Session is the id of the ZooKeeper session that the znode lives in.
func (n *Node) Session() int64 { return n.session }

// Token is the znode's fencing token. That of a held Node is known; of another one it may
// be 0.
func (n *Node) Token() int64 { return n.token.Load() }

// LearnToken takes note of the token, unless it is known.
func (n *Node) LearnToken(token int64) { n.token.CompareAndSwap(0, token) }

// SetToken gives the Node another token than the znode's own.
func (n *Node) SetToken(token int64) { n.token.Store(token) }

// Lost is done, with the cause, as soon as a held Node can no longer be relied on. It
// stays open when the Node leaves, unless the session is lost before ZooKeeper has
// confirmed that.
func (n *Node) Lost() context.Context { return n.loss.ctx }

// Ended is done once the Node has ended, and Hooks.Ended has returned. See HasEnded.
func (n *Node) Ended() context.Context { return n.over.ctx }

// Cause tells why the Node ended, nil if it has not.
func (n *Node) Cause() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.cause
}

// Hold makes a waiting Node, whose token is known, a held one. It fails with ErrEnded if
// the Node has ended. With any other error it goes on waiting: with zkconn.ErrSuspended,
// to be held after a confirmation by the server; the others are permanent.
func (n *Node) Hold() error {
	n.mu.Lock()
	if n.life.state == stateEnded {
		n.mu.Unlock()
		return ErrEnded
	}
	// Before Conn.Hold: a loss right behind that must be told.
	n.life.state, n.life.wasHeld = stateHeld, true
	n.mu.Unlock()
	err := n.s.Hold(n.Path, n.spec.LossMargin)
	switch {
	case err == nil && n.over.ctx.Err() != nil:
		return ErrEnded
	case err == nil:
		n.WatchSelfLater()
		return nil
	case errors.Is(err, zkconn.ErrSessionEnded):
		n.Lose(err)
		return ErrEnded
	default:
		n.unhold()
		return err
	}
}

// unhold undoes a hold that the session has refused, and of which nobody was told.
func (n *Node) unhold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life.wasHeld = false
	if n.life.state == stateHeld {
		n.life.state = stateQueued
	}
}

// Guard begins a transaction that checks n's znode; false where n has ended. settled ends
// it, once its outcome is known. While that is open the next in the queue waits until the
// znode is gone, also where n has left: the transaction may still be done.
func (n *Node) Guard() (settled func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.state == stateEnded {
		return nil, false
	}
	n.life.guarded++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.life.guarded--
	}, true
}

// InUse tells whether something may still be done under the znode although nobody relies
// on it.
func (n *Node) InUse() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.inUse()
}

func (l *life) inUse() bool {
	return l.guarded > 0 || time.Now().Before(l.staysUntil)
}

// Linger keeps the znode for d from now on, whenever n ends by itself.
func (n *Node) Linger(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life.linger(d)
}

func (l *life) linger(d time.Duration) {
	if until := time.Now().Add(d); until.After(l.staysUntil) {
		l.staysUntil = until
	}
}

// ExpireLater ends a held Node after the longest time that its Terms allow.
func (n *Node) ExpireLater() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.spec.MaxHold > 0 && n.life.state == stateHeld {
		n.life.cancelExpiry = n.s.After(n.spec.MaxHold, func() { n.end(ErrExpired) })
	}
}

// HasEnded turns true before anything is done about the end: before Ended is done, and
// before Hooks.Ended is called.
func (n *Node) HasEnded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.state == stateEnded
}
