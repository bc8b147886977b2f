package wait

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// Wakers are what can end a sleep. Those that are nil do not. A watch goes with
// Reconnected and Poll, since its event can be lost on the way; what ends because of this
// process is certain to wake.
type Wakers struct {
	Blocker     <-chan struct{} // the one ahead, of this process, has ended
	Watch       <-chan zk.Event // of the one ahead, or of the directory
	Path        string          // what Watch is on
	Beyond      <-chan zk.Event // of the next one ahead
	BeyondPath  string          // what Beyond is on
	BeyondSet   <-chan struct{} // the answer about that watch is here
	Maximum     <-chan zk.Event // that of leases may have changed
	Ended       <-chan struct{} // the znode that one waits with has
	WatchSelf   <-chan struct{} // that znode is to be watched at once
	Reconnected <-chan struct{} // something may have gone unnoticed
	Poll        <-chan time.Time
	Ending      <-chan time.Time // the time of the wait is running out
	Stall       <-chan time.Time // it is time to see whether the queue moves
}

// A Wakeup names which of the Wakers it was.
type Wakeup int

// The wakeups, in the order of the fields of Wakers.
const (
	BlockerEnded Wakeup = iota
	WatchFired
	BeyondFired
	BeyondAnswered
	MaximumChanged
	SelfEnded
	WatchSelfAsked
	Reconnected
	PollDue
	EndingSoon
	StallDue
)

// Sleep waits for the first of w, or until ctx is done or the connection closed, which is
// an error. ev is what a watch fired with; if that was the close, the connection learns
// of it.
func (w *Wakers) Sleep(
	ctx context.Context, conn *zkconn.Conn,
) (by Wakeup, ev zk.Event, err error) {
	select {
	case <-w.Blocker:
		by = BlockerEnded
	case ev = <-w.Watch:
		by = WatchFired
		conn.Received(w.Path, w.Watch)
		noteDeletions(conn, w.Path, ev)
	case ev = <-w.Beyond:
		by = BeyondFired
		conn.Received(w.BeyondPath, w.Beyond)
		noteDeletions(conn, w.BeyondPath, ev)
	case <-w.BeyondSet:
		by = BeyondAnswered
	case ev = <-w.Maximum:
		by = MaximumChanged
	case <-w.Ended:
		by = SelfEnded
	case <-w.WatchSelf:
		by = WatchSelfAsked
	case <-w.Reconnected:
		by = Reconnected
	case <-w.Poll:
		by = PollDue
	case <-w.Ending:
		by = EndingSoon
	case <-w.Stall:
		by = StallDue
	case <-ctx.Done():
		err = outcome.Cancelled(ctx)
	case <-conn.Closed():
		err = conn.Pause(ctx, 0)
	}
	if errors.Is(ev.Err, zk.ErrClosing) {
		conn.ConnClosed()
	}
	return by, ev, err
}

// An OwnZnode is an ephemeral of this process that learns of the end of its znode from
// other watches than its own.
type OwnZnode interface {
	// Deleted takes note that the znode was deleted.
	Deleted()
	// DrainEvent takes note of what the watch on the znode has already received.
	DrainEvent()
}

// noteDeletions takes note of what a watch on path tells of znodes of this process. A
// change of the children follows the deletions among them. So no request follows a
// deletion at once; see zkconn.Conn.HoldBack.
func noteDeletions(conn *zkconn.Conn, path string, ev zk.Event) {
	if conn.TellsClose() {
		return
	}
	n, _ := conn.Ephemeral(path).(OwnZnode)
	switch {
	case n != nil && ev.Type == zk.EventNodeDeleted:
		n.Deleted()
	case ev.Type == zk.EventNodeChildrenChanged || ev.Type == 0: // another has the event
		for _, e := range conn.EphemeralsAt(path) {
			if n, ok := e.(OwnZnode); ok {
				n.DrainEvent()
			}
		}
	}
}

// safetyPoll is the shortest time after which a waiter looks for itself although nothing
// woke it, and half of the longest. It guards against a lost watch, of which none is
// known.
const safetyPoll = 30 * time.Second

// NextPoll is not the same for all: those who began to wait together need not ask
// together.
func NextPoll() <-chan time.Time {
	return time.After(safetyPoll + rand.N(safetyPoll)) //nolint:gosec // no secret
}
