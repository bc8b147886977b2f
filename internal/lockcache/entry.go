package lockcache

import (
	"context"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// Policy says for how long an entry is cached that could be given up.
type Policy struct {
	Idle time.Duration // while nobody uses it, and nobody else wants it
	// how often in a row it is handed over in this process while others want it
	MaxHandovers int
}

// An entry is where the owners of this process, all who come through one connection,
// stand together in a queue with one znode. The owners of a kind that excludes itself
// have it one after the other, in the order in which they came; those of one that does
// not (readers) have it together. It is cached when they have left, until somebody else
// wants it. See the package's page.
type entry struct {
	// Set by entryOf.
	key      entryKey
	together bool // whether its owners have it together

	// mu guards what follows, and what generations and Shares say it does. It comes
	// before the mutexes of the packages below; nobody who has it calls ZooKeeper or
	// waits for anything else.
	mu      sync.Mutex
	current *generation // the last that was granted, unless it is over
	next    *generation // in the queue, or on its way there, for those who wait
	waiting []*waiter   // in the order in which they came
	unused  bool        // and another has the key, or will: nobody may come here
	later   bool        // reconcileLater is under way
}

type entryKey struct {
	conn  *zkconn.Conn
	queue seqnode.Key
	kind  string
}

// entries finds the entry of a connection, a directory and a kind. It has those that are
// used.
var entries sync.Map // entryKey to *entry

func entryOf(s *zkconn.Conn, q *seqnode.Queue) *entry {
	key := entryKey{s, q.Key(), q.Kind}
	if e, ok := entries.Load(key); ok {
		return e.(*entry)
	}
	together := !q.Excludes(
		seqname.Name{Kind: q.Kind, Seq: 0}, seqname.Name{Kind: q.Kind, Seq: 1},
	)
	e, _ := entries.LoadOrStore(key, &entry{key: key, together: together})
	return e.(*entry)
}

// A waiter is an owner who waits for an entry.
type waiter struct {
	entry   *entry
	q       *seqnode.Queue
	policy  Policy
	request seqnode.Request
	queued  chan queuedAt // has room for the latest; sent to with entry.mu held
	settled chan struct{} // closed by settle

	// Guarded by entry.mu until settled is closed. After that only the goroutine in Enter
	// uses them.
	told  bool // something was sent on queued
	early bool // its margin was in the way when it could have been admitted; see letIn
	share *Share
	err   error
	where wait.Place // where it stood, of wait.ErrBusy
	// ended once nothing is left behind that was made for it; nil: nothing is, or for
	// others
	left *calls.Pending[struct{}]
}

// A generation is one znode of an entry, from its create to its delete. See the package's
// page.
type generation struct {
	// Set by newGeneration.
	entry  *entry
	q      *seqnode.Queue // of the owner for whom it began
	policy Policy         // likewise
	attempt

	// Guarded by entry.mu.
	reached
	contended bool        // somebody behind is known to wait for it; for good if held
	closed    bool        // nobody else is admitted, whoever waits; for good
	node      *znode.Node // nil until it is granted; held then
	users     int         // how many Shares are not released
	doubt                 // whether that is so still
	handovers int         // how often it was while others waited, or may have
	idleness
	left leavingFuncs // set when it was given up, or over
}

// An attempt is a generation's way through the queue.
type attempt struct {
	// Done by giveUp, when nobody waits for it any more; only until it is granted.
	ctx    context.Context
	giveUp context.CancelCauseFunc
	ranOut bool // the last that waited for it had no more time; guarded by entry.mu
	// Done when the generation's goroutine has ended; of a generation that was given up,
	// when its znode has gone or will do so in the background.
	run *calls.Pending[struct{}]
}

// reached is where a generation that waits stands.
type reached struct {
	queued   queuedAt         // when it joined the queue last
	position seqnode.Position // by its last list; none where it may be its turn
}

// A doubt is about a generation behind which nobody is known to wait: somebody has come
// or gone since the last list, or since it is held there was none. An owner that is
// admitted meanwhile may overtake a newcomer: that counts as a hand-over, and if none is
// left the next owner waits for the list.
type doubt struct {
	doubtful bool
	look     chan struct{} // has room for one who waits for that list
}

// The idleness of a generation without users.
type idleness struct {
	idleSince time.Time
	idle      *time.Timer // ends it if it stays idle; nil where none runs
}

// leavingFuncs is what Node.StartLeaving returns.
type leavingFuncs = func(ctx context.Context) error

// queuedAt is a znode in the queue, and how many were ahead when it was asked.
type queuedAt struct {
	node  string
	ahead int
}

// A Share is an owner's part in a generation. The generation's znode is held for it, and
// may be held for other owners before, after and at the same time. It is safe for
// concurrent use.
type Share struct {
	*znode.Node // the generation's, from which it has all that is not below

	// Set by admit.
	generation   *generation
	listener     seqnode.Listener // see Request; may be nil
	margin       time.Duration    // see Queue.LossMargin
	cancelExpiry func()           // takes back expire

	// Done, with the cause, by the Node when it is lost: see attach.
	lost    context.Context
	loseNow context.CancelCauseFunc

	// Guarded by entry.mu.
	released bool // or expired
	guarded  int  // transactions of this owner whose outcome is open
}

// What follows is called with entry.mu held.

// tell tells the latest.
func (w *waiter) tell(at queuedAt) {
	select {
	case <-w.queued:
	default:
	}
	w.queued <- at
	w.told = true
}

func (w *waiter) settle(sh *Share, err error) {
	w.share, w.err = sh, err
	close(w.settled)
}

func (w *waiter) isSettled() bool {
	select {
	case <-w.settled:
		return true
	default:
		return false
	}
}
