package zkconn

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
)

// Watches are the watches of a connection, at most one pending for a path: the client
// keeps a channel for each watch until it fires, and cannot remove one. All who wait for
// a path share its watch, also one after the other, so that ten thousand impatient
// callers cost one.
//
// The client cannot watch a znode that does not exist. To wait for one to appear, watch
// its parent's children (WatchChildren).
type Watches struct {
	conn *Conn // set by Use

	// Guarded by Conn.mu. Some of these may be over.
	shared map[watchKey]*watch
	// retired are those that are not shared any more, since they may be dead, but that
	// the client keeps; see incarnationsAtMost.
	retired []*watch
	sweepAt int // how many may be shared before the next sweep
}

type watchKey struct {
	path     string
	children bool
}

// A watch is being set, then pending, then over: by its event, or since it could not be
// set. It belongs to the goroutine that sets it until set has ended, and does not change
// after that.
type watch struct {
	set         *calls.Pending[struct{}]
	events      <-chan zk.Event // closed by the client, behind its only event
	stat        *zk.Stat        // of the znode when it was set
	reconnected <-chan struct{} // of Reconnected, from before it was set
	after       int             // reconnects.times, likewise
}

// begin is called just before w is set.
func (w *watch) begin(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	w.reconnected, w.after = c.reconnects.next, c.reconnects.times
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

// mayBeDead reports whether the connection was seen to be away since the watch was set:
// the client asks once that it be set again, and a server may reject that. A pause
// between two users, which also counts as a reconnect, does not count here: it would take
// a new watch for each. A new watch costs the client a channel for each reconnect, and
// the servers nothing: they have one watch per path and session.
func (w *watch) mayBeDead(reconnects int) bool {
	return w.set.Ended() && reconnects > w.after
}

// Watch returns a channel that is closed at the next change of the znode's data or at its
// deletion. The event itself reaches only one of those who share the watch; the others
// receive a zero zk.Event, which says nothing. A watch that was set earlier is as good as
// a new one: it is pending, so nothing has happened since. zk.ErrNoNode says that there
// is no such znode. If its data is too long to be read, the channel is closed at the
// znode's deletion or a change of its children, and not of its data.
func (ws *Watches) Watch(ctx context.Context, path string) (<-chan zk.Event, error) {
	_, events, err := ws.WatchStat(ctx, path)
	return events, err
}

// WatchStat is Watch, and returns the znode's stat as it was when the watch was set.
func (ws *Watches) WatchStat(
	ctx context.Context, path string,
) (*zk.Stat, <-chan zk.Event, error) {
	w, _ := ws.watch(watchKey{path, false}, &reading{})
	if _, err := w.set.Wait(ctx); err != nil {
		return nil, nil, err
	}
	return w.stat, w.events, nil
}

// WatchData is WatchStat, and returns the znode's data and stat as they are now. Data
// that is too long to be read is nil.
func (ws *Watches) WatchData(
	ctx context.Context, path string,
) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	r, events, err := ws.read(ctx, watchKey{path, false})
	return r.data, r.stat, events, err
}

// WatchChildren returns the children of the znode and a channel that is closed at their
// next change, shared like Watch's.
func (ws *Watches) WatchChildren(
	ctx context.Context, path string,
) ([]string, *zk.Stat, <-chan zk.Event, error) {
	r, events, err := ws.read(ctx, watchKey{path, true})
	return r.children, r.stat, events, err
}

// A reading is what was read with a watch, or behind it: the data or the children.
type reading struct {
	data     []byte
	children []string
	stat     *zk.Stat
}

// read returns what the key has now, and the events of the watch on it.
func (ws *Watches) read(
	ctx context.Context, key watchKey,
) (r reading, events <-chan zk.Event, err error) {
	var first reading
	w, isNew := ws.watch(key, &first)
	if _, err = w.set.Wait(ctx); err != nil {
		return reading{}, nil, err
	}
	if isNew {
		return first, w.events, nil
	}
	// What came with a shared watch may be old. A request that is sent after the watch is
	// set misses nothing: what changes behind it ends the watch.
	r, err = calls.Call(ctx, ws.conn, func() (r reading, err error) {
		if key.children {
			r.children, r.stat, err = ws.conn.Children(key.path)
		} else {
			r.data, r.stat, err = ws.conn.Read(key.path)
		}
		return r, err
	})
	return r, w.events, err
}

// watch returns the watch that is shared, or begins to set a new one. What that reads it
// puts into the reading, once it is set: the watch does not keep it.
func (ws *Watches) watch(key watchKey, into *reading) (w *watch, isNew bool) {
	if w, isNew = ws.sharedOrNew(key); !isNew {
		return w, false
	}
	w.set.Run(ws.conn, func() (none struct{}, err error) {
		w.begin(ws.conn)
		if key.children {
			into.children, into.stat, w.events, err = ws.conn.ChildrenW(key.path)
		} else {
			into.data, into.stat, w.events, err = ws.conn.ReadW(key.path)
		}
		w.stat = into.stat
		return none, err
	})
	return w, true
}

// sharedOrNew returns the watch that is shared, or a new one, which the caller sets.
func (ws *Watches) sharedOrNew(key watchKey) (w *watch, isNew bool) {
	c := ws.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := ws.pendingLocked(key); w != nil && !w.mayBeDead(c.reconnects.times) {
		return w, false
	}
	// Swept whenever there are twice as many as were left the last time, a watch costs a
	// constant share of the sweeps.
	if len(ws.shared) >= ws.sweepAt {
		ws.sweepAt = max(16, 2*ws.sweepLocked())
	}
	w = &watch{set: calls.New[struct{}](c)}
	ws.shared[key] = w
	return w, true
}

// pendingLocked returns the watch that is shared; nil if there is none.
func (ws *Watches) pendingLocked(key watchKey) *watch {
	if w := ws.shared[key]; w != nil && !w.over() {
		return w
	}
	return nil
}

// Received is called by whoever has received the event of a watch on path, before it
// reads there again. The client closes the channel right behind the event, but not at
// once: until then the watch would seem to be pending, and be shared.
func (ws *Watches) Received(path string, events <-chan zk.Event) {
	ws.conn.mu.Lock()
	defer ws.conn.mu.Unlock()
	for _, children := range [...]bool{false, true} {
		key := watchKey{path, children}
		if w := ws.shared[key]; w != nil && w.set.Ended() && w.events == events {
			delete(ws.shared, key)
		}
	}
}

// sweepLocked forgets the shared watches that are over, and returns how many are left.
func (ws *Watches) sweepLocked() (left int) {
	for key, w := range ws.shared {
		if w.over() {
			delete(ws.shared, key)
		}
	}
	return len(ws.shared)
}

// saidClosed reports whether the connection's close has ended a watch that nobody waits
// for.
func (ws *Watches) saidClosed() bool {
	ws.conn.mu.Lock()
	defer ws.conn.mu.Unlock()
	for _, w := range ws.shared {
		if ev, _ := w.event(); errors.Is(ev.Err, zk.ErrClosing) {
			return true
		}
	}
	return false
}

// incarnationsAtMost is on how many paths watches may be pending for WatchIncarnation to
// set one more, which lasts for as long as its znode. A path counts once, however often
// the connection was seen to be away. If the connection does not tell of handshakes, a
// path that is watched again after a pause without users counts once more: its old watch
// may be pending still.
const incarnationsAtMost = 1000

// WatchIncarnation reads in the background what Incarnation returns for the znode at
// path, unless that is known. It takes a read with a watch, and one more each time that
// the connection was away: go-zookeeper sets a watch again behind the requests that it
// was given meanwhile. It returns false if there are too many watches already, or if
// events may come late, so that Incarnation never knows.
func (ws *Watches) WatchIncarnation(path string) bool {
	if !ws.conn.InOrder() {
		return false
	}
	key := watchKey{path, false}
	if !ws.makeRoom(key) {
		return false
	}
	ws.watch(key, &reading{})
	return true
}

// makeRoom reports whether the watch is there, or one more may be set. It retires one
// that is there, but may have missed something.
func (ws *Watches) makeRoom(key watchKey) bool {
	c := ws.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	w := ws.pendingLocked(key)
	switch {
	case w != nil && (!w.set.Ended() || !isDone(w.reconnected)):
		return true // it proves what Incarnation says
	case w != nil && w.mayBeDead(c.reconnects.times):
		return true // the path has counted before, and watch will replace it
	case !ws.hasRoomLocked():
		return false
	case w != nil:
		delete(ws.shared, key)
		ws.retired = append(ws.retired, w)
	}
	return true
}

func (ws *Watches) hasRoomLocked() bool {
	if len(ws.shared)+len(ws.retired) < incarnationsAtMost {
		return true
	}
	ws.retired = slices.DeleteFunc(ws.retired, (*watch).over)
	return ws.sweepLocked()+len(ws.retired) < incarnationsAtMost
}

// Incarnation returns the czxid of the znode at path, if it is known to have been the
// same one ever since WatchIncarnation was called: a watch on it is pending, and the
// event of a deletion would have come before any later answer, as long as the connection
// was not away. It waits for an answer that is under way. If events may come late, it
// does not know.
func (ws *Watches) Incarnation(
	ctx context.Context, path string,
) (czxid int64, ok bool) {
	ws.conn.mu.Lock()
	w := ws.pendingLocked(watchKey{path, false})
	ws.conn.mu.Unlock()
	if w == nil {
		return 0, false
	}
	if _, err := w.set.Wait(ctx); err != nil {
		return 0, false
	}
	return ws.IncarnationNow(path) // it may have fired right behind the answer
}

// IncarnationNow is Incarnation, but does not know either while an answer is under way.
func (ws *Watches) IncarnationNow(path string) (czxid int64, ok bool) {
	c := ws.conn
	if !c.InOrder() {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The watch is looked at first: if the connection is away between the two, the event
	// may come late, but then the look shows that.
	w := ws.pendingLocked(watchKey{path, false})
	if w == nil || !w.set.Ended() {
		return 0, false
	}
	c.lookLocked()
	if isDone(w.reconnected) {
		return 0, false
	}
	return w.stat.Czxid, true
}
