package watches

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

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
	w, _ := ws.watchData(path, new(reading))
	return w
}

// A reading is a znode as it was read.
type reading struct {
	data []byte
	stat *zk.Stat
}

// watchData is watch. A watch that is new reads r, once it is set.
func (ws *Shared) watchData(path string, r *reading) (w *watch, isNew bool) {
	w, isNew = ws.of(watchKey{path, false})
	if isNew {
		w.set.Run(ws.s, func() (none struct{}, err error) {
			w.begin(ws.s)
			r.data, r.stat, w.events, err = ws.s.GetW(path)
			if outcome.IsReplyTooLong(err) {
				_, r.stat, w.events, err = ws.s.ChildrenW(path)
			}
			if err == nil {
				w.czxid, w.stat = r.stat.Czxid, r.stat
			}
			return none, err
		})
	}
	return w, isNew
}

// WatchData returns the data of the znode and a channel that ends with its next change,
// shared like Watch's. Data that is too long to be read is nil.
func (ws *Shared) WatchData(
	ctx context.Context, path string,
) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	var r reading
	w, isNew := ws.watchData(path, &r)
	_, err := w.set.Wait(ctx)
	if err == nil && !isNew { // read behind the watch, so that nothing goes unseen
		r, err = calls.Call(ctx, ws.s, func() (r reading, err error) {
			r.data, r.stat, err = ws.s.Get(path)
			if outcome.IsReplyTooLong(err) {
				_, r.stat, err = ws.s.Children(path)
			}
			return r, err
		})
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return r.data, r.stat, w.events, nil
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
