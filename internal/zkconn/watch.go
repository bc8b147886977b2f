package zkconn

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// watches are the watches that are pending, at most one for a path: the client keeps a
// channel for every watch until it fires, and cannot remove one. All who wait for a path,
// one after the other too, wait on its one watch, so that ten thousand impatient callers
// cost one. They are guarded by Conn.mu.
type watches struct {
	s      *Conn
	shared map[watchKey]*watch // some of which may be over
	// those that nobody else is to share, likewise, since they may be dead for all that
	// is known; see birthsAtMost
	retired []*watch
	sweepAt int // how many there may be before the next sweep
}

type watchKey struct {
	path     string
	children bool
}

// A watch belongs to the one who sets it until set is done; then it does not change.
type watch struct {
	set    *Pending[struct{}]
	events <-chan zk.Event // closed by the client, behind its only event
	czxid  int64           // of the znode when it was set; of one on data
	steady <-chan struct{} // of Reconnected, from before that
	after  int             // how many reconnects there were by then
}

// begin is called just before w is set.
func (w *watch) begin(s *Conn) {
	w.steady = s.Reconnected()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.after = s.reconnects.times
}

// event returns what the watch fired with, unless one of those who share it has that
// already. A watch that could not be set is over, too.
func (w *watch) event() (ev zk.Event, over bool) {
	if !isDone(w.set.done) {
		return ev, false
	}
	if w.set.err != nil {
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

// Watch returns a channel that ends with the next change of the znode's data or with its
// deletion. The event itself reaches only one of those who share the watch; the others
// receive a zero zk.Event, which says nothing. A watch that was set earlier serves as
// well as a new one: it is pending, so nothing has happened since. zk.ErrNoNode says that
// there is no such znode.
func (ws *watches) Watch(ctx context.Context, path string) (<-chan zk.Event, error) {
	w := ws.watch(path)
	if _, err := w.set.Wait(ctx); err != nil {
		return nil, err
	}
	return w.events, nil
}

// watch returns the watch on a path's data that is shared, or begins to set one.
func (ws *watches) watch(path string) *watch {
	w, isNew := ws.of(watchKey{path, false})
	if isNew {
		w.set.run(func() (none struct{}, err error) {
			var stat *zk.Stat
			w.begin(ws.s)
			if _, stat, w.events, err = ws.s.GetW(path); err == nil {
				w.czxid = stat.Czxid
			}
			return none, err
		})
	}
	return w
}

// WatchChildren returns the children of the znode and a channel that ends with the next
// change of them, shared like Watch's.
func (ws *watches) WatchChildren(
	ctx context.Context, path string,
) ([]string, *zk.Stat, <-chan zk.Event, error) {
	type listing struct {
		children []string
		stat     *zk.Stat
	}
	var l listing
	w, isNew := ws.of(watchKey{path, true})
	if isNew {
		w.set.run(func() (none struct{}, err error) {
			w.begin(ws.s)
			l.children, l.stat, w.events, err = ws.s.childrenW(path)
			return none, err
		})
	}
	_, err := w.set.Wait(ctx)
	if err == nil && !isNew { // listed behind the watch, so that nothing goes unseen
		l, err = Call(ctx, ws.s, func() (l listing, err error) {
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
func (ws *watches) of(key watchKey) (w *watch, isNew bool) {
	ws.s.mu.Lock()
	defer ws.s.mu.Unlock()
	if w := ws.shared[key]; w != nil && !w.over() {
		if !ws.mayBeDead(w) {
			return w, false
		}
	}
	if len(ws.shared) >= ws.sweepAt {
		ws.sweepAt = max(16, 2*ws.sweepWatches())
	}
	w = &watch{set: newPending[struct{}](ws.s)}
	ws.shared[key] = w
	return w, true
}

// mayBeDead tells whether the connection was seen to be away since a watch was set: the
// client asks once that it be set again, and a server may turn that away. What only
// counts as a reconnect does not count here: it would make a watch of each pause between
// two users. The new one costs the client a channel for each reconnect, and the servers
// nothing: for them there is one watch per path. It is called with Conn.mu held.
func (ws *watches) mayBeDead(w *watch) bool {
	return isDone(w.set.done) && ws.s.reconnects.times != w.after
}

// sweepWatches forgets the watches that are over, and tells how many are left.
func (ws *watches) sweepWatches() (left int) {
	for key, w := range ws.shared {
		if w.over() {
			delete(ws.shared, key)
		}
	}
	return len(ws.shared)
}

// saidClosed tells whether a watch that nobody waits for was ended by the connection's
// close.
func (ws *watches) saidClosed() bool {
	ws.s.mu.Lock()
	defer ws.s.mu.Unlock()
	for _, w := range ws.shared {
		if ev, _ := w.event(); errors.Is(ev.Err, zk.ErrClosing) {
			return true
		}
	}
	return false
}

// Missing tells whether the server says that there is no such znode. It takes a small
// read.
func (s *Conn) Missing(ctx context.Context, path string) bool {
	_, err := Call(ctx, s, func() (none struct{}, err error) {
		_, _, err = s.Get(path)
		return none, err
	})
	return errors.Is(err, zk.ErrNoNode)
}
