package seqnode

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/session"
)

// A selfWatch is the watch on a Node's own znode. It costs a read, so it is set when it
// can matter: at once by WatchSelf, else by watchSelfLater. From then on the znode's
// deletion is noticed at once, and changes of its data are told.
type selfWatch struct {
	begun     atomic.Bool
	firstRead chan struct{} // closed by the watch's goroutine behind what follows
	readErr   error

	// Guarded by Node.mu.
	later  *time.Timer     // starts it, if the Node lasts; nil: nobody has asked for that
	events <-chan zk.Event // the watch that is set, or fired last; nil before the first
}

// watchSelfAfter is how long a znode must last to be worth the read that watches it.
const watchSelfAfter = 20 * time.Millisecond

// WatchSelf keeps a watch on the znode from now on.
func (n *Node) WatchSelf() {
	if n.self.begun.Swap(true) {
		return
	}
	session.Start(n.s, func() (struct{}, error) {
		n.keepSelfWatch()
		return struct{}{}, nil
	})
}

// watchSelfLater is WatchSelf if n lasts.
func (n *Node) watchSelfLater() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.self.later == nil && n.state != stateEnded {
		n.self.later = time.AfterFunc(watchSelfAfter, n.WatchSelf)
	}
}

// stopLocked takes back, as the Node ends, what watchSelfLater has planned. A watch that
// has begun ends by itself.
func (w *selfWatch) stopLocked() {
	if w.later != nil {
		w.later.Stop()
	}
}

// keepSelfWatch is the watch's goroutine. It ends with the Node, or where the znode
// cannot be read.
func (n *Node) keepSelfWatch() {
	var told int32 // the version of the data that was told; a new znode has 0
	for {
		var own reading
		reconnected := n.s.Reconnected()
		err := n.s.Retry(n.ended, func() (err error) {
			own, err = session.Call(n.ended, n.s, n.read)
			return err
		})
		switch {
		case n.ended.Err() != nil:
			return
		case errors.Is(err, zk.ErrNoNode) && n.s.SessionID() == n.session:
			n.gone(ErrGone)
			return
		case errors.Is(err, zk.ErrNoNode):
			n.gone(session.ErrSessionEnded)
			return
		case err != nil:
			n.self.learn(err)
			n.q.Log.Warn("zookeeper lock: cannot watch the own znode",
				"node", n.Path, "error", err)
			return
		}
		n.watched(own.events)
		n.learnToken(own.stat.Czxid)
		n.self.learn(nil)
		if own.stat.Version > told {
			told = own.stat.Version
			if n.onData != nil {
				n.onData(own.data)
			}
		}
		if !n.nextEvent(own.events, reconnected) {
			return
		}
		n.watched(nil) // it is not intact until the next read
	}
}

type reading struct {
	data   []byte
	stat   *zk.Stat
	events <-chan zk.Event
}

// read reads the znode and sets a watch on it. The watch is not shared: it fires at the
// latest when the Node leaves.
func (n *Node) read() (r reading, err error) {
	r.data, r.stat, r.events, err = n.s.GetW(n.Path)
	return r, err
}

func (n *Node) watched(events <-chan zk.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.self.events = events
}

// learn publishes that the first read has ended.
func (w *selfWatch) learn(err error) {
	select {
	case <-w.firstRead:
	default:
		w.readErr = err
		close(w.firstRead)
	}
}

// nextEvent waits for the watch to fire, or for the connection to be back: it asks once
// that its watches be set again, and a server may turn that away. false: there is nothing
// to watch any more.
func (n *Node) nextEvent(events <-chan zk.Event, reconnected <-chan struct{}) bool {
	select {
	case <-n.ended.Done():
		return false
	case <-reconnected:
		return true
	case ev := <-events:
		switch {
		case ev.Type == zk.EventNodeDeleted:
			n.gone(ErrGone)
		case errors.Is(ev.Err, zk.ErrSessionExpired):
			n.gone(session.ErrSessionEnded)
		case errors.Is(ev.Err, zk.ErrClosing):
			n.s.ConnClosed()
		default:
			return true
		}
		return false
	}
}

// awaitToken waits until the token is known. Where nothing has told it the first read
// does: that finds the zxid that created the znode.
func (n *Node) awaitToken(ctx context.Context) error {
	if n.Token() != 0 {
		return nil
	}
	n.WatchSelf()
	select {
	case <-n.self.firstRead:
		return n.self.readErr
	case <-n.ended.Done():
		return errRejoin
	case <-ctx.Done():
		return session.Cancelled(ctx)
	case <-n.s.Closed():
		return n.s.Pause(ctx, 0)
	}
}

// intact tells whether a Node watches itself, and its znode was there when the last
// event came, if the connection was not away before that: a server sends events in order,
// so the watch on it would have fired before. Where events may come late nothing is
// certain, and the caller lists.
func (n *Node) intact(ctx context.Context) bool {
	if !n.s.InOrder() || !n.self.begun.Load() {
		return false
	}
	select {
	case <-n.self.firstRead:
	case <-n.ended.Done():
		return false
	case <-ctx.Done():
		return false
	}
	return n.heed()
}

// heed takes note of what the watch on n's znode has told, of which its goroutine may not
// know yet. set: the watch is set, and has not fired.
func (n *Node) heed() (set bool) {
	n.mu.Lock()
	ended := n.state == stateEnded
	ev, fired := n.self.firedLocked()
	set = n.self.events != nil && !fired
	n.mu.Unlock()
	switch {
	case ended: // by this process, or it is known
	case ev.Type == zk.EventNodeDeleted:
		n.gone(ErrGone)
	case fired && ev.Type == 0: // its goroutine has the event: maybe it tells of that
		n.s.HoldBack()
	}
	return set
}

// firedLocked tells whether the watch has fired, and with what, unless that was received
// before. keepSelfWatch can do without it.
func (w *selfWatch) firedLocked() (ev zk.Event, fired bool) {
	select {
	case ev = <-w.events: // closed behind its only event
		return ev, true
	default:
		return ev, false
	}
}

// heedDeletions takes note of what a watch on path tells of znodes of this process. A
// change of the children comes behind the deletions among them. So no request follows a
// deletion at once; see session.Session.HoldBack.
func heedDeletions(s *session.Session, path string, ev zk.Event) {
	if s.TellsClose() {
		return
	}
	n, _ := s.Ephemeral(path).(*Node)
	switch {
	case n != nil && ev.Type == zk.EventNodeDeleted:
		n.gone(ErrGone)
	case ev.Type == zk.EventNodeChildrenChanged || ev.Type == 0: // another has the event
		for _, e := range s.EphemeralsAt(path) {
			if n, ok := e.(*Node); ok {
				n.heed()
			}
		}
	}
}
