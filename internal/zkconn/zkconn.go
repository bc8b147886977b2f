package zkconn

import (
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/reliance"
	"github.com/zkrecipes/recipes/internal/watches"
)

// A Conn is the shared state of one connection, over all the ZooKeeper sessions that
// the connection goes through. Get one with Use; safe for concurrent use.
type Conn struct {
	// Set by Use, before anybody else has the Conn.
	requests // the calls of the Client
	brought
	creating chan struct{} // see BeginCreate

	usage // guarded by registry.mu

	// mu guards knowledge; see the lock order in the package's documentation.
	mu sync.Mutex
	knowledge

	*watches.Shared // set by Use; it has a mutex of its own

	// Closed by ConnClosed, once, with mu held.
	closed chan struct{}
}

// What the first user of a Conn has brought; see Config.
type brought struct {
	plain         bool
	whenClosed    func(f func()) (stop func())          // may be nil
	lastHandshake func(session int64) (time.Time, bool) // may be nil
	inOrder       bool
	server        func() string
	createdAt     func(path string) (zxid int64) // may be nil
}

// The usage of a Conn is who needs it, and what is done when nobody does.
type usage struct {
	users       int         // waiters, holders, unfinished deletes, calls under way
	idle        *time.Timer // looks whether a Conn without users can be forgotten
	rested      bool        // it has, and nobody has used it since it looked
	stopOnClose func()      // takes back Config.WhenClosed; nil: nothing to take back
}

// The knowledge of a Conn is what it has learned, and who is told of it.
type knowledge struct {
	ledger       reliance.Ledger // who relies on a session, and how long that can be
	heartbeat    heartbeat       // what keeps it so
	reconnects   reconnects      // when the connection was away and is back
	availability availability    // whether ZooKeeper answers
	suspicion    suspicion       // whether the connection was closed
	notes        notes           // what its users have learned
	cuts         cuts            // what the servers may not accept
	noContainers bool            // the server has said that it knows none
	quietUntil   time.Time       // until when no request is sent (HoldBack)

	wall func(now time.Time) time.Time // the wall clock of a reading
}

// InOrder reports whether events and answers arrive in the order in which the server sent
// them. Only then does a watch that has not fired prove anything about the time of an
// answer.
func (s *Conn) InOrder() bool { return s.inOrder }

// TellsCreates tells whether the connection knows when it has created what.
func (s *Conn) TellsCreates() bool { return s.createdAt != nil }

// CreatedAt is Config's; 0 where that is nil.
func (s *Conn) CreatedAt(path string) (zxid int64) {
	if s.createdAt == nil {
		return 0
	}
	return s.createdAt(path)
}

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// requests are the calls of the Client, as a Conn offers them. What is to be learned
// from every one of them is learned here, so that no caller can forget it: the clock runs
// on writes and syncs, and what callers are told of silence on all answers. A refusal
// names what was asked for.
type requests struct {
	conn Client
	s    *Conn
}

// A heartbeat keeps the clock going while the Conn has users: where no contact comes
// by itself it makes one. Its tick finds out what nobody tells, a loss by silence above
// all, since the client speaks up only when the connection is back. It is guarded by
// Conn.mu.
type heartbeat struct {
	s        *Conn
	timer    *time.Timer // runs tick; nil where there are no users
	syncs    int         // how many are under way
	lastSync time.Time   // when the last one was sent, whatever came of it
	next     time.Time   // when the timer fires
}

// Closed is closed once the connection is known to be closed by its owner.
func (s *Conn) Closed() <-chan struct{} { return s.closed }

func (s *Conn) isClosed() bool { return isDone(s.closed) }
