package znode

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/wait"
)

// How long a znode must last to be worth the read that watches it.
const (
	Soon = 20 * time.Millisecond // somebody relies on it, or the watch can spare a list
	Late = time.Second           // somebody waits, and would rejoin later
)

// A selfWatch is the watch on a Node's own znode. It costs a read, so it is set when it
// can matter: at once by WatchSelf, else by WatchSelfLater. From then on the znode's
// deletion is noticed at once, and changes of its data are reported.
type selfWatch struct {
	begun     atomic.Bool
	firstRead chan struct{} // closed by the watch's goroutine: the first read has ended
	readErr   error         // of that read; set before firstRead is closed

	// Guarded by Node.mu.
	later  *time.Timer     // starts it, if the Node lasts; nil: nobody has asked for that
	after  time.Duration   // the delay of later
	events <-chan zk.Event // the watch that is set, or fired last; nil before the first
	epoch  uint64          // of the connection, from before events was asked for
	event  *zk.Event       // what Confirmation has received, for DrainEvent; nil: nothing
}

// stopLocked takes back, as the Node ends, what WatchSelfLater has planned. A watch that
// has begun ends with the Node.
func (w *selfWatch) stopLocked() {
	if w.later != nil {
		w.later.Stop()
	}
}

// WatchSelf keeps a watch on the znode from now on.
func (n *Node) WatchSelf() {
	if n.self.begun.Swap(true) {
		return
	}
	calls.Start(n.conn, n.keepSelfWatch)
}

// WatchSelfLater is WatchSelf if n lasts for so long, unless that is planned for sooner.
func (n *Node) WatchSelfLater(after time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch w := &n.self; {
	case n.life.state == stateEnded, w.later != nil && w.after <= after:
	case w.later == nil:
		w.later, w.after = time.AfterFunc(after, n.WatchSelf), after
	case w.later.Reset(after): // it has not fired
		w.after = after
	}
}

// keepSelfWatch is the watch's goroutine, until the Node ends or cannot be read. It
// returns nothing: the results are as calls.Start wants them.
func (n *Node) keepSelfWatch() (_ struct{}, _ error) {
	var told int32 // the version of the data that was reported; a new znode has 0
	for {
		var own reading
		// Both before the read is sent: if the connection is away meanwhile, the read
		// starts over, and what it has shown confirms nothing.
		reconnected := n.conn.Reconnected()
		epoch := n.conn.Epoch()
		read := func() (err error) { // nobody waits for this goroutine
			// The watch is not shared: it fires at the latest when the Node leaves.
			own.data, own.stat, own.events, err = n.conn.ReadW(n.Path)
			return err
		}
		err := n.conn.Retry(n.ended.ctx, read)
		if outcome.Refused(err) { // the hold is as good, but its end may go unnoticed
			n.self.learn(err)
			go n.spec.Log.Warn("zookeeper lock: cannot watch this lock's znode; it is "+
				"still being tried", "node", n.Path, "error", err)
			err = n.conn.Insist(n.ended.ctx, func() error {
				reconnected, epoch = n.conn.Reconnected(), n.conn.Epoch()
				return read()
			})
		}
		switch {
		case n.ended.ctx.Err() != nil:
			return
		case errors.Is(err, zk.ErrNoNode) && n.conn.SessionID() == n.session:
			n.Gone(ErrGone)
			return
		case errors.Is(err, zk.ErrNoNode): // it went with its session
			n.Gone(outcome.ErrSessionEnded)
			return
		case err == nil && !n.isOwn(own.stat, own.data):
			n.Gone(ErrGone) // another's stands under the name
			return
		case err != nil:
			n.self.learn(err)
			return
		}
		n.watched(own.events, epoch)
		n.LearnToken(own.stat.Czxid)
		n.version.Store(own.stat.Version)
		n.self.learn(nil)
		if own.stat.Version > told { // not if a reconnect has read the same again
			told = own.stat.Version
			n.hooks.Data(own.data)
		}
		if !n.nextEvent(own.events, reconnected) {
			return
		}
		n.watched(nil, 0) // it is not confirmed until the next read
	}
}

type reading struct {
	data   []byte
	stat   *zk.Stat
	events <-chan zk.Event
}

func (n *Node) watched(events <-chan zk.Event, epoch uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.self.events, n.self.epoch = events, epoch
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
// that its watches be set again, and a server may turn that away. Where it can be away
// unseen, the znode is looked at now and then. false: there is nothing to watch any more.
func (n *Node) nextEvent(events <-chan zk.Event, reconnected <-chan struct{}) bool {
	for {
		var poll <-chan time.Time
		if !n.conn.TellsReconnects() {
			poll = wait.NextPoll()
		}
		select {
		case <-n.ended.ctx.Done():
			return false
		case <-reconnected:
			return true
		case <-poll:
			if n.differs() {
				return true
			}
		case ev := <-events:
			switch {
			case ev.Type == zk.EventNodeDeleted:
				n.Gone(ErrGone)
			case errors.Is(ev.Err, zk.ErrSessionExpired):
				n.Gone(outcome.ErrSessionEnded)
			case errors.Is(ev.Err, zk.ErrClosing):
				n.conn.ConnClosed()
			default:
				return true
			}
			return false
		}
	}
}

// differs tells whether the znode is not as it was read last. It sets no watch: the
// client would keep one for each time.
func (n *Node) differs() bool {
	var now reading
	err := n.conn.Retry(n.ended.ctx, func() (err error) {
		now.data, now.stat, err = n.conn.Read(n.Path)
		return err
	})
	return err != nil || !n.isOwn(now.stat, now.data) ||
		now.stat.Version != n.version.Load()
}

// AwaitToken waits until the token is known. If nothing has shown it the first read does:
// that finds the zxid that created the znode.
func (n *Node) AwaitToken(ctx context.Context) error {
	if n.Token() != 0 {
		return nil
	}
	n.WatchSelf()
	select {
	case <-n.self.firstRead:
		return n.self.readErr
	case <-n.ended.ctx.Done():
		return ErrEnded
	case <-ctx.Done():
		return outcome.Cancelled(ctx)
	case <-n.conn.Closed():
		return n.conn.Pause(ctx, 0)
	}
}

// AwaitConfirmation waits for the answer to the first read of the znode, with a watch; it
// returns false if that is not under way.
func (n *Node) AwaitConfirmation(ctx context.Context) (waited bool) {
	if !n.self.begun.Load() {
		return false
	}
	select {
	case <-n.self.firstRead:
		return false
	default:
	}
	select {
	case <-n.self.firstRead:
	case <-n.ended.ctx.Done():
	case <-ctx.Done():
	}
	return true
}

// Confirmation reports whether the znode was read with a watch that has not fired, and in
// which epoch of the connection that was asked for. It may be called with a mutex of the
// caller's held: what the watch has received it leaves to DrainEvent.
func (n *Node) Confirmation() (epoch uint64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &n.self
	if ev, fired := w.firedLocked(); fired { // a channel has it once: keep it
		received := ev
		w.event, w.events = &received, nil
	}
	return w.epoch, w.events != nil && n.life.state != stateEnded
}

// Deleted implements wait.OwnZnode. An event that comes late can be of a former znode
// with a given name, so only n's own watch tells of its end.
func (n *Node) Deleted() {
	if n.claim != nil {
		n.DrainEvent()
		return
	}
	n.Gone(ErrGone)
}

// DrainEvent implements wait.OwnZnode: it acts on what the watch on n's znode has
// received, of which its goroutine may not know yet.
func (n *Node) DrainEvent() {
	n.mu.Lock()
	ended := n.life.state == stateEnded
	ev, fired := n.self.firedLocked()
	if !fired && n.self.event != nil {
		ev, fired = *n.self.event, true
	}
	n.self.event = nil
	n.mu.Unlock()
	switch {
	case ended: // by this process, or it is known
	case ev.Type == zk.EventNodeDeleted:
		n.Gone(ErrGone)
	case fired && ev.Type == 0: // keepSelfWatch has the event: maybe of a deletion
		n.conn.HoldBack()
	}
}

// firedLocked tells whether the watch has fired, and with what, unless that was received
// before. What it takes from keepSelfWatch it need not give back: that receives the zero
// event of the closed channel then, and reads.
func (w *selfWatch) firedLocked() (ev zk.Event, fired bool) {
	select {
	case ev = <-w.events: // closed behind its only event
		return ev, true
	default:
		return ev, false
	}
}
