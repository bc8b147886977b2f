package zkconn

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

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
// nothing: for them there is one watch per path. It is called with Conn.mu held.
func (ws *watches) mayBeDead(w *watch) bool {
	return w.set.Ended() && ws.s.reconnects.times != w.after
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
