package zkconn

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
)

// begin is called just before w is set.
func (w *watch) begin(s *Conn) {
	w.steady = s.Reconnected()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.after = s.reconnects.times
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
		w.set.Run(func() (none struct{}, err error) {
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
		w.set.Run(func() (none struct{}, err error) {
			w.begin(ws.s)
			l.children, l.stat, w.events, err = ws.s.childrenW(path)
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
	w = &watch{set: calls.New[struct{}](ws.s)}
	ws.shared[key] = w
	return w, true
}

// Missing tells whether the server says that there is no such znode. It takes a small
// read.
func (s *Conn) Missing(ctx context.Context, path string) bool {
	_, err := calls.Call(ctx, s, func() (none struct{}, err error) {
		_, _, err = s.Get(path)
		return none, err
	})
	return errors.Is(err, zk.ErrNoNode)
}
