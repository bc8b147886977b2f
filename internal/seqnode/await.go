package seqnode

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/session"
)

// An aim is what somebody waits for: a turn in the queue, room for leases, a maximum. It
// is of the goroutine that waits.
type aim interface {
	// look asks ZooKeeper whether it is free.
	look(ctx context.Context) (free bool, err error)
	// wait sleeps until it is worth looking again, or until it is free for certain.
	wait(ctx context.Context) (free bool, err error)
	// take makes it the caller's. An error of any of the three begins anew with look,
	// after a pause that grows (session.Retry), unless it is final, as ErrBusy is.
	take(ctx context.Context) error
}

// await waits until a is free, and takes it. Who waits for anything in this room waits
// here. An error that a retry may mend, of a request or since the session cannot be
// relied on just now, ends nothing; see session.Retry.
func await(ctx context.Context, s *session.Session, tryOnce bool, a aim) error {
	return s.Retry(ctx, func() error {
		for {
			free, err := a.look(ctx)
			if err == nil && !free {
				if tryOnce {
					return ErrBusy
				}
				free, err = a.wait(ctx)
			}
			switch {
			case err != nil:
				return err
			case free:
				return a.take(ctx)
			}
		}
	})
}

// wakers are what can end a sleep. Those that are nil do not. A watch goes with
// reconnected and poll, since its event can be lost on the way; what ends by the doing of
// this process tells for certain.
type wakers struct {
	blocker     <-chan struct{} // the one ahead, of this process, has ended
	watch       <-chan zk.Event // of the one ahead, or of the directory
	path        string          // what watch is on
	limit       <-chan zk.Event // the maximum may have changed
	ended       <-chan struct{} // the znode that one waits with has
	watchSelf   <-chan struct{} // see Request.WatchSelf
	reconnected <-chan struct{} // something may have gone unnoticed
	poll        <-chan time.Time
}

// A wakeup names which of the wakers it was.
type wakeup int

const (
	blockerEnded wakeup = iota
	watchFired
	limitChanged
	selfEnded
	watchSelfAsked
	reconnected
	pollDue
)

// sleep waits for the first of w, or until ctx is done or the connection closed, which is
// an error. ev is what a watch fired with.
func (w *wakers) sleep(
	ctx context.Context, s *session.Session,
) (by wakeup, ev zk.Event, err error) {
	select {
	case <-w.blocker:
		by = blockerEnded
	case ev = <-w.watch:
		by = watchFired
		heedDeletions(s, w.path, ev)
	case ev = <-w.limit:
		by = limitChanged
	case <-w.ended:
		by = selfEnded
	case <-w.watchSelf:
		by = watchSelfAsked
	case <-w.reconnected:
		by = reconnected
	case <-w.poll:
		by = pollDue
	case <-ctx.Done():
		err = session.Cancelled(ctx)
	case <-s.Closed():
		err = s.Pause(ctx, 0)
	}
	return by, ev, err
}

// safetyPoll is the shortest time after which a waiter looks for itself although nothing
// was told, and half of the longest. It guards against a lost watch, of which none is
// known.
const safetyPoll = 30 * time.Second

// nextPoll is not the same for all: who began to wait together need not ask together.
func nextPoll() <-chan time.Time {
	return time.After(safetyPoll + rand.N(safetyPoll)) //nolint:gosec // no secret
}
