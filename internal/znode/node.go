package znode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
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
	named   *named // of a znode with a given name; else nil

	// The fencing token, 0 while it is not known. Whoever learns it first sets it; only
	// SetToken replaces it.
	token atomic.Int64

	over ending
	loss loss
	self selfWatch

	// mu guards life and the second half of self. Whoever has it waits for nothing, and
	// takes no other mutex than those of package zkconn. The mutexes of the packages
	// above come before it.
	mu   sync.Mutex
	life life
}

// A named is what is particular to a znode whose name was given.
type named struct {
	naming
	version atomic.Int32 // of its data, as far as is known
}

// A naming knows which znode under its name is the one that is meant: a [Claim].
type naming interface {
	delete(isMeant func(stat *zk.Stat, data []byte) bool) error
	forget(n *Node)
}

// An ending is done by end, once.
type ending struct {
	ctx     context.Context
	now     context.CancelFunc
	removal *calls.Pending[struct{}] // set before ctx is done, and read after that
}

// A loss is done, with its cause, when the holder is notified that the Node can no longer
// be relied on. loseLocked does that, and nothing else.
type loss struct {
	ctx context.Context
	now context.CancelCauseFunc
}

// A life is what changes of a Node; guarded by Node.mu.
type life struct {
	state   state
	wasHeld bool // somebody relies on it, or did when it ended
	// See outliving.go: the session has ended, and the znode may be there; nobody relies
	// on the Node any more, or it was never held.
	sessionOver, abandoned bool

	guarded int32 // transactions that the znode guards and whose outcome is open
	cause   error // why it ended
	// the loss margin of the holder; zero if Tenants hold it, which have their own
	margin time.Duration
	// The znode stays until then, however the Node ends: a holder may take that long to
	// stop, and others go on once the znode is gone.
	stays        deadline
	cancelExpiry func() // takes back what ExpireLater has planned; nil: nothing
	// who else is told of a loss, with their margins
	tenants map[Tenant]time.Duration
	// until when the longest margin lasts of those who were told of a loss, of any kind
	margins deadline
}

// A deadline is a time that most Nodes do not have. The zero one is over.
type deadline struct{ at *time.Time }

// extend moves it, if it is over before that time has passed.
func (d *deadline) extend(by time.Duration) {
	if by > max(0, d.left()) {
		until := time.Now().Add(by)
		d.at = &until
	}
}

// left is the time until the deadline, 0 or less if it is over.
func (d *deadline) left() time.Duration {
	if d.at == nil {
		return 0
	}
	return time.Until(*d.at)
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
	ErrEnded = outcome.Permanent(errors.New("the queue entry was lost"))
	// ErrLeft is the cause of the end of a Node that left by itself.
	ErrLeft = errors.New("left the queue")
)

// LeaveWithin is how long a call that gives up waits for its delete, so that it usually
// leaves nothing behind.
const LeaveWithin = 80 * time.Millisecond

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

// isOwn tells whether a znode that was read at n's path is n's.
func (n *Node) isOwn(stat *zk.Stat, _ []byte) bool {
	token := n.Token()
	return n.named == nil ||
		stat.EphemeralOwner == n.session && (token == 0 || token == stat.Czxid)
}

// Version is that of the znode's data, as far as is known, by which a transaction checks
// that it exists: any, of one whose path no other znode has.
func (n *Node) Version() int32 {
	if n.named == nil {
		return -1
	}
	return n.named.version.Load()
}

func (n *Node) learnVersion(version int32) {
	if n.named != nil {
		n.named.version.Store(version)
	}
}

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
	return l.guarded > 0 || l.stays.left() > 0
}

// Linger keeps the znode for d from now on, whenever n ends by itself.
func (n *Node) Linger(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life.stays.extend(d)
}

// HasEnded turns true before anything is done about the end: before Ended is done, and
// before Hooks.Ended is called.
func (n *Node) HasEnded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.state == stateEnded
}

// Hooks are called on behalf of one znode, from before its create to behind its delete.
type Hooks interface {
	// Sending is called just before each create is sent, on the goroutine that sends it.
	Sending()
	// Created is called on the same goroutine once it is known what became of the create;
	// nil: there is no znode. On an error the Node is withdrawn, and the error ends Join.
	// The Node may end, and Ended and Removed be called, before Created is.
	Created(n *Node) error
	// Ended is called once, before anybody who waits for the Node is woken, with no mutex
	// of a Node held. The caller may hold a mutex of its own.
	Ended(cause error)
	// Removed is called once, when nothing is left to be done: gone if an answer or an
	// event has said that the znode is; else its session is over, which the znode may
	// outlive. That can take as long as the session, if the delete is refused. Ended may
	// not have been called by then.
	Removed(gone bool)
	// Data is called with each change of the znode's data that the watch on it shows.
	Data(data []byte)
}

// NoHooks are Hooks that do nothing. Who needs a few of them embeds it.
type NoHooks struct{}

// Sending implements Hooks.
func (NoHooks) Sending() {}

// Created implements Hooks.
func (NoHooks) Created(*Node) error { return nil }

// Ended implements Hooks.
func (NoHooks) Ended(error) {}

// Removed implements Hooks.
func (NoHooks) Removed(bool) {}

// Data implements Hooks.
func (NoHooks) Data([]byte) {}

// A Tenant relies on a held Node that others may rely on, too.
type Tenant interface {
	// Lost is called before the Node's own Lost is done. The mutex of the Node is held:
	// it calls no method of the Node.
	Lost(cause error)
}

// A selfWatch is the watch on a Node's own znode. It costs a read, so it is set when it
// can matter: at once by WatchSelf, else by WatchSelfLater. From then on the znode's
// deletion is noticed at once, and changes of its data are told.
type selfWatch struct {
	begun     atomic.Bool
	firstRead chan struct{} // closed by the watch's goroutine: the first read has ended
	readErr   error         // of that read; set before firstRead is closed

	// Guarded by Node.mu.
	later  *time.Timer     // starts it, if the Node lasts; nil: nobody has asked for that
	after  time.Duration   // the delay of later
	events <-chan zk.Event // the watch that is set, or fired last; nil before the first
	epoch  uint64          // of the connection, from before events was asked for
	event  *zk.Event       // what Confirmation has received, for Heed; nil: nothing
}

// stopLocked takes back, as the Node ends, what WatchSelfLater has planned. A watch that
// has begun ends by itself.
func (w *selfWatch) stopLocked() {
	if w.later != nil {
		w.later.Stop()
	}
}
