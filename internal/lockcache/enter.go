package lockcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// arrive lets an owner in at once, or lets it wait. It does neither where the entry is
// not used any more.
func (e *entry) arrive(
	q *seqnode.Queue, policy Policy, r seqnode.Request,
) (*Share, *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unused {
		return nil, nil
	}
	if g := e.current; g != nil && len(e.waiting) == 0 && g.isFree() {
		if sh, err := g.admit(q, r); err == nil {
			if g.doubtful {
				g.handovers++
			}
			return sh, nil
		}
	}
	w := &waiter{
		entry: e, q: q, policy: policy, request: r,
		queued: make(chan queuedAt, 1), settled: make(chan struct{}),
	}
	e.waiting = append(e.waiting, w)
	e.reconcile()
	if !w.isSettled() {
		if at := e.positionOf(len(e.waiting) - 1); at.node != "" {
			w.tell(at)
		}
	}
	return nil, w
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
	w.where = e.where(at)
	e.waiting = slices.Delete(e.waiting, at, at+1)
	w.left = e.leftBehind()
	if e.next != nil {
		e.next.ranOut = ranOut
	}
	w.settle(nil, cause)
	e.reconcile()
}
