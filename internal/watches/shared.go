package watches

import (
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
)

// A Conn is the connection whose watches these are.
type Conn interface {
	calls.Owner
	Get(path string) ([]byte, *zk.Stat, error)
	Children(path string) ([]string, *zk.Stat, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	// InOrder reports whether events and answers arrive in the order in which the server
	// sent them.
	InOrder() bool
	// Reconnected is closed when the connection, seen to be away after this call, is
	// back; AwaySince tells whether it is, of one that was got before.
	Reconnected() <-chan struct{}
	AwaySince(reconnected <-chan struct{}) bool
	// Reconnects is how often the connection was seen to be away.
	Reconnects() int
}

// Shared are the watches that are pending, at most one for a path: the client keeps a
// channel for every watch until it fires, and cannot remove one. All who wait for a path,
// one after the other too, wait on its one watch, so that ten thousand impatient callers
// cost one. It is safe for concurrent use.
type Shared struct {
	s Conn // set by New

	mu     sync.Mutex          // guards what follows; not held during a call
	shared map[watchKey]*watch // some of which may be over
	// those that nobody else is to share, likewise, since they may be dead for all that
	// is known; see birthsAtMost
	retired []*watch
	sweepAt int // how many there may be before the next sweep
}

// New returns the shared watches of a connection, of which there are none.
func New(s Conn) *Shared { return &Shared{s: s, shared: map[watchKey]*watch{}} }

type watchKey struct {
	path     string
	children bool
}

// A watch belongs to the one who sets it until set is done; then it does not change.
type watch struct {
	set    *calls.Pending[struct{}]
	events <-chan zk.Event // closed by the client, behind its only event
	czxid  int64           // of the znode when it was set; of one on data
	stat   *zk.Stat        // likewise
	steady <-chan struct{} // of Reconnected, from before that
	after  int             // how many reconnects there were by then
}

// begin is called just before w is set.
func (w *watch) begin(s Conn) {
	w.steady = s.Reconnected()
	w.after = s.Reconnects()
}

// event returns what the watch fired with, unless one of those who share it has that
// already. A watch that could not be set is over, too.
func (w *watch) event() (ev zk.Event, over bool) {
	if !w.set.Ended() {
		return ev, false
	}
	if w.set.Err() != nil {
		return ev, true
	}
	select {
	case ev = <-w.events:
		return ev, true
	default:
		return ev, false
	}
}

func (w *watch) over() bool {
	_, over := w.event()
	return over
}

// mayBeDead tells whether the connection was seen to be away since a watch was set: the
// client asks once that it be set again, and a server may turn that away. What only
// counts as a reconnect does not count here: it would make a watch of each pause between
// two users. The new one costs the client a channel for each reconnect, and the servers
// nothing: for them there is one watch per path. reconnects is what Conn.Reconnects was
// a moment ago: the watch may have been set since.
func (w *watch) mayBeDead(reconnects int) bool {
	return w.set.Ended() && reconnects > w.after
}

// Sweep forgets the watches that are over, and tells how many are left.
func (ws *Shared) Sweep() (left int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.sweepLocked()
}

func (ws *Shared) sweepLocked() (left int) {
	for key, w := range ws.shared {
		if w.over() {
			delete(ws.shared, key)
		}
	}
	return len(ws.shared)
}

// SaidClosed tells whether a watch that nobody waits for was ended by the connection's
// close.
func (ws *Shared) SaidClosed() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.shared {
		if ev, _ := w.event(); errors.Is(ev.Err, zk.ErrClosing) {
			return true
		}
	}
	return false
}
