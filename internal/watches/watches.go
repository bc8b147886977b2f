package watches

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// A Conn is the connection whose watches these are.
type Conn interface {
	calls.Owner
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

// Watch returns a channel that ends with the next change of the znode's data or with its
// deletion. The event itself reaches only one of those who share the watch; the others
// receive a zero zk.Event, which says nothing. A watch that was set earlier serves as
// well as a new one: it is pending, so nothing has happened since. zk.ErrNoNode says that
// there is no such znode. If its data is too long to be read, the channel ends with its
// deletion or a change of its children, and not of its data.
func (ws *Shared) Watch(ctx context.Context, path string) (<-chan zk.Event, error) {
	_, events, err := ws.WatchStat(ctx, path)
	return events, err
}

// WatchStat is Watch, and returns the znode's stat as it was when the watch was set.
func (ws *Shared) WatchStat(
	ctx context.Context, path string,
) (*zk.Stat, <-chan zk.Event, error) {
	w := ws.watch(path)
	if _, err := w.set.Wait(ctx); err != nil {
		return nil, nil, err
	}
	return w.stat, w.events, nil
}

// watch returns the watch on a path's data that is shared, or begins to set one.
func (ws *Shared) watch(path string) *watch {
	w, isNew := ws.of(watchKey{path, false})
	if isNew {
		w.set.Run(ws.s, func() (none struct{}, err error) {
			var stat *zk.Stat
			w.begin(ws.s)
			_, stat, w.events, err = ws.s.GetW(path)
			if outcome.IsReplyTooLong(err) {
				_, stat, w.events, err = ws.s.ChildrenW(path)
			}
			if err == nil {
				w.czxid, w.stat = stat.Czxid, stat
			}
			return none, err
		})
	}
	return w
}

// WatchChildren returns the children of the znode and a channel that ends with the next
// change of them, shared like Watch's.
func (ws *Shared) WatchChildren(
	ctx context.Context, path string,
) ([]string, *zk.Stat, <-chan zk.Event, error) {
	type listing struct {
		children []string
		stat     *zk.Stat
	}
	var l listing
	w, isNew := ws.of(watchKey{path, true})
	if isNew {
		w.set.Run(ws.s, func() (none struct{}, err error) {
			w.begin(ws.s)
			l.children, l.stat, w.events, err = ws.s.ChildrenW(path)
			return none, err
		})
	}
	_, err := w.set.Wait(ctx)
	if err == nil && !isNew { // listed behind the watch, so that nothing goes unseen
		l, err = calls.Call(ctx, ws.s, func() (l listing, err error) {
			l.children, l.stat, err = ws.s.Children(path)
			return l, err
		})
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return l.children, l.stat, w.events, nil
}

// of returns the watch that is shared, or a new one, which the caller sets.
func (ws *Shared) of(key watchKey) (w *watch, isNew bool) {
	reconnects := ws.s.Reconnects() // first: no mutex is held during a call
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.shared[key]; w != nil && !w.over() && !w.mayBeDead(reconnects) {
		return w, false
	}
	if len(ws.shared) >= ws.sweepAt {
		ws.sweepAt = max(16, 2*ws.sweepLocked())
	}
	w = &watch{set: calls.New[struct{}](ws.s)}
	ws.shared[key] = w
	return w, true
}

// birthsAtMost is on how many paths watches may be pending on a connection for one more
// to be set that lasts for as long as the znode. A path counts once, however often the
// connection was seen to be away; but also once for each watch that is set since it may
// have been, between two users of a connection that does not tell of handshakes: they can
// come and go at any rate.
const birthsAtMost = 1000

// WatchIncarnation reads in the background what Incarnation returns for the znode at
// path, unless that is known. It takes a read with a watch, and one more each time that
// the connection was away: go-zookeeper sets a watch again behind what it was asked for
// meanwhile. false: there are too many watches already, or events may come late, so that
// Incarnation never knows.
func (ws *Shared) WatchIncarnation(path string) bool {
	if !ws.s.InOrder() {
		return false
	}
	key := watchKey{path, false}
	w := ws.pending(key)
	if w != nil && (!w.set.Ended() || !ws.s.AwaySince(w.steady)) {
		return true
	}
	if !ws.makeRoom(key, w) {
		return false
	}
	ws.watch(path)
	return true
}

// Incarnation returns the czxid of the znode at path, if it is known to be the same one
// ever since WatchIncarnation was called: a watch on it is pending, and the event of a
// deletion would have come before any later answer, as long as the connection was not
// away. It waits for an answer that is under way. If events may come late it does not
// know.
func (ws *Shared) Incarnation(ctx context.Context, path string) (czxid int64, ok bool) {
	if !ws.s.InOrder() {
		return 0, false
	}
	key := watchKey{path, false}
	w := ws.pending(key)
	if w == nil {
		return 0, false
	}
	_, err := w.set.Wait(ctx)
	if err != nil || ws.pending(key) != w || ws.s.AwaySince(w.steady) {
		return 0, false
	}
	return w.czxid, true
}

// IncarnationNow is Incarnation, and does not know either while an answer is under way.
func (ws *Shared) IncarnationNow(path string) (czxid int64, ok bool) {
	if !ws.s.InOrder() {
		return 0, false
	}
	w := ws.pending(watchKey{path, false})
	if w == nil || !w.set.Ended() || ws.s.AwaySince(w.steady) {
		return 0, false
	}
	return w.czxid, true
}

// pending returns the watch that is shared; nil where there is none.
func (ws *Shared) pending(key watchKey) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.shared[key]; w != nil && !w.over() {
		return w
	}
	return nil
}

// makeRoom tells whether one more watch may be set. It replaces w, if that is not nil,
// which the client keeps until it fires.
func (ws *Shared) makeRoom(key watchKey, w *watch) bool {
	reconnects := ws.s.Reconnects() // first: no mutex is held during a call
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w != nil && w.mayBeDead(reconnects) {
		return true // the path has counted before
	}
	if !ws.hasRoomLocked() {
		return false
	}
	if w != nil && ws.shared[key] == w {
		delete(ws.shared, key)
		ws.retired = append(ws.retired, w)
	}
	return true
}

func (ws *Shared) hasRoomLocked() bool {
	if len(ws.shared)+len(ws.retired) < birthsAtMost {
		return true
	}
	ws.retired = slices.DeleteFunc(ws.retired, (*watch).over)
	return ws.sweepLocked()+len(ws.retired) < birthsAtMost
}
