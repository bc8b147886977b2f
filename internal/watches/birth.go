package watches

import (
	"context"
	"slices"
)

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
