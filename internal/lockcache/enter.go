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

// Enter is Queue.Enter for owners who share an entry, which is cached as the policy says.
// An owner that finds it held and free, or to which it is handed over, sends no request,
// and its Listener is told of no queue if there is no wait. OnDecision and WatchSelf of
// the request are not used.
func Enter(
	ctx context.Context, s *zkconn.Conn, q *seqnode.Queue, policy Policy,
	r seqnode.Request,
) (*Share, error) {
	if err := q.Check(s); err != nil {
		return nil, err
	}
	asked := time.Now()
	for {
		sh, w := entryOf(s, q).arrive(q, policy, r)
		switch {
		case sh != nil:
			return sh, nil
		case w != nil:
			return w.await(ctx, asked)
		}
	}
}

// A waiter is an owner who waits for an entry.
type waiter struct {
	entry   *entry
	q       *seqnode.Queue
	policy  Policy
	request seqnode.Request
	queued  chan queuedAt // has room for the latest; sent to with entry.mu held
	settled chan struct{} // closed by settle

	// Guarded by entry.mu until settled is closed. After that only the goroutine in Enter
	// uses them.
	told  bool // something was sent on queued
	share *Share
	err   error
	where wait.Place // where it stood, of wait.ErrBusy
	// ended once nothing is left behind that was made for it; nil: nothing is, or for
	// others
	left *calls.Pending[struct{}]
}

// queuedAt is a znode in the queue, and how many were ahead when it was asked.
type queuedAt struct {
	node  string
	ahead int
}

// await waits until the owner is admitted.
func (w *waiter) await(ctx context.Context, asked time.Time) (*Share, error) {
	over := false
	defer func() {
		if !over { // the Listener has panicked, or ended the goroutine
			w.depart(errNobodyWaits, false)
			w.giveBack()
		}
	}()
	for settled := false; !settled; {
		select {
		case at := <-w.queued:
			w.onQueued(at)
			continue
		case <-w.settled:
		case <-ctx.Done():
			w.depart(outcome.Cancelled(ctx), znode.RanOut(ctx))
		}
		settled = true
	}
	select {
	case at := <-w.queued: // it has come before
		w.onQueued(at)
	default:
	}
	over = true
	if w.share != nil && ctx.Err() == nil {
		return w.share, nil
	}
	if w.share != nil { // it came too late
		w.giveBack()
		w.err, w.where = outcome.Cancelled(ctx), wait.Late
	}
	w.awaitLeft()
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

// awaitLeft waits, for a time that a caller who gives up can spare. What was made for it
// may say more of why the time was too short.
func (w *waiter) awaitLeft() {
	if w.left == nil {
		return
	}
	select {
	case <-w.left.Done():
		var missing *znode.MissingError
		if w.where == (wait.Place{}) && errors.As(w.left.Err(), &missing) {
			w.err = fmt.Errorf("%w: %w", w.err, missing)
		}
	case <-time.After(znode.LeaveWithin):
	}
}

// depart ends the wait of an owner who leaves, unless it has ended already.
func (w *waiter) depart(cause error, ranOut bool) {
	e := w.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.isSettled() {
		return
	}
	at := slices.Index(e.waiting, w)
	w.where = e.whereLocked(at)
	e.waiting = slices.Delete(e.waiting, at, at+1)
	w.left = e.leftBehindLocked()
	if e.next != nil {
		e.next.ranOut = ranOut
	}
	w.settleLocked(nil, cause)
	e.reconcileLocked()
}

// tellLocked tells the latest.
func (w *waiter) tellLocked(at queuedAt) {
	select {
	case <-w.queued:
	default:
	}
	w.queued <- at
	w.told = true
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
