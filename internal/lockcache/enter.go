package lockcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// Enter is Queue.Enter for owners who share an entry, which stays cached as the policy
// says. An owner that finds it held and free, or to which it is handed over, sends no
// request; its Listener hears of a queue only if there is a wait. OnDecision,
// StallTimeout and WatchSelf of the request are not used.
func Enter(
	ctx context.Context, conn *zkconn.Conn, q *seqnode.Queue, policy Policy,
	r seqnode.Request,
) (*Share, error) {
	if err := q.CheckTerms(conn); err != nil {
		return nil, err
	}
	asked := time.Now()
	for {
		sh, w := entryOf(conn, q).arrive(q, policy, r)
		switch {
		case sh != nil:
			return sh, nil
		case w != nil:
			return w.wait(ctx, asked)
		}
		// The entry went out of use between the two calls: there is another one now.
	}
}

// A waiter is an owner that waits for an entry.
type waiter struct {
	entry   *entry
	q       *seqnode.Queue
	policy  Policy
	request seqnode.Request
	queued  chan queuedAt // buffers the latest; sent to with entry.mu held
	settled chan struct{} // closed by settleLocked

	// Guarded by entry.mu until settled is closed. After that only the goroutine in Enter
	// uses them.
	reported bool // something was sent on queued
	share    *Share
	err      error
	where    wait.Place // where it stood, of wait.ErrBusy
	// Done once nothing is left of what was begun for it; nil: nothing is, or others wait
	// for it.
	cleared *calls.Pending[struct{}]
}

// queuedAt is a znode in the queue, and how many were ahead when that was found out.
type queuedAt struct {
	node  string
	ahead int
}

// awaitSettled waits until the owner is admitted, or not to be.
func (w *waiter) awaitSettled(ctx context.Context) {
	for {
		select {
		case at := <-w.queued:
			w.onQueued(at)
		case <-w.settled:
			return
		case <-ctx.Done():
			// After this it is settled, by depart or by a grant that was faster.
			w.depart(outcome.Cancelled(ctx), znode.RanOut(ctx))
			return
		}
	}
}

// wait waits until the owner is admitted. It calls the Listener itself, on the caller's
// goroutine, and never with the mutex held: that is code of the user's.
func (w *waiter) wait(ctx context.Context, asked time.Time) (*Share, error) {
	defer wait.AskBeforeEnd(ctx, w.entry.key.conn)()
	returns := false
	defer func() {
		if !returns { // the Listener has panicked, or ended the goroutine
			w.depart(errNobodyWaits, false)
			w.giveBack()
		}
	}()
	w.awaitSettled(ctx)
	select {
	case at := <-w.queued: // it came before the outcome, and select picks either
		w.onQueued(at)
	default:
	}
	returns = true
	if w.share != nil && ctx.Err() == nil {
		return w.share, nil
	}
	if w.share != nil { // the grant came too late: the caller is promised an error
		w.giveBack()
		w.err, w.where = outcome.Cancelled(ctx), wait.Late
	}
	w.awaitCleared()
	return nil, wait.Explain(w.entry.key.conn, w.err, w.where, asked)
}

func (w *waiter) onQueued(at queuedAt) {
	if w.request.Listener != nil {
		w.request.Listener.Queued(at.node, at.ahead)
	}
}

func (w *waiter) giveBack() {
	if w.share != nil {
		w.share.Withdraw()
	}
}

// awaitCleared waits until nothing is left behind, for at most the time that a caller can
// spare that wants to leave.
func (w *waiter) awaitCleared() {
	if w.cleared == nil {
		return
	}
	select {
	case <-w.cleared.Done():
		// The create may know more of why the time was too short: a parent is missing.
		var missing *znode.MissingError
		if w.where == (wait.Place{}) && errors.As(w.cleared.Err(), &missing) {
			w.err = fmt.Errorf("%w: %w", w.err, missing)
		}
	case <-time.After(znode.LeaveWithin):
	}
}

// depart ends the wait of an owner that leaves, unless it has ended already.
func (w *waiter) depart(cause error, ranOut bool) {
	e := w.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.isSettled() {
		return
	}
	at := slices.Index(e.waiting, w)
	w.where = e.whereLocked(at) // while it is still in the slice
	e.waiting = slices.Delete(e.waiting, at, at+1)
	w.cleared = e.clearingLocked()
	if e.next != nil {
		e.next.ranOut = ranOut
	}
	w.settleLocked(nil, cause)
	e.reconcileLocked() // without it, a generation may have nobody left who waits
}

// reportLocked passes a position to the goroutine in Enter, in place of an older one that
// it has not received.
func (w *waiter) reportLocked(at queuedAt) {
	select {
	case <-w.queued:
	default:
	}
	w.queued <- at // it does not block: all who send hold the mutex
	w.reported = true
}

func (w *waiter) settleLocked(sh *Share, err error) {
	w.share, w.err = sh, err
	close(w.settled)
}

func (w *waiter) isSettled() bool {
	select {
	case <-w.settled:
		return true
	default:
		return false
	}
}
