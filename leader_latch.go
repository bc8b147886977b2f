package recipes

import (
	"context"
	"errors"
	"time"
)

// LeaderLatch is Curator's election of the same name: a candidate that leads keeps the
// leadership until it is closed or loses it. All values for one path, in Go or Java, are
// candidates of one election. LeaderSelector, whose znodes have other names, must not
// share its path.
//
// At most one candidate leads, as at most one owner holds a lock: see [Hold.Lost] for
// what that rests on, and LeaderSelector for what it does not cover. Unlike Curator's it
// does not join again by itself after a loss: whoever wants to lead again calls Await
// again, when it has stopped what it did as the leader.
//
// It is safe for concurrent use. Close it when it is of no use any more: a candidate that
// leads keeps all others from it.
type LeaderLatch struct {
	*election

	closing context.Context // done once Close was called
	close   context.CancelCauseFunc

	// turn has the one token of whoever may join the queue or leave it: an Await, or
	// Close. It is no mutex, since others wait for it no longer than their ctx.
	turn chan struct{}
}

// errLatchClosed says why nobody can be elected any more.
var errLatchClosed = errors.New("the leader latch was closed")

// NewLeaderLatch returns a candidate of the election at path, which is created when the
// first one queues. WithData names the candidate to those who look: by default it is an
// address of this host. It asks nothing of ZooKeeper, and refuses what
// NewInterProcessMutex refuses. It refuses WithCaching as well: a candidate whose term is
// over goes to the tail of the queue.
func NewLeaderLatch(conn Conn, path string, opts ...Option) (*LeaderLatch, error) {
	e, err := newElection(conn, path, "leader latch", latchName, opts)
	if err != nil {
		return nil, refuse("NewLeaderLatch", path, err)
	}
	l := &LeaderLatch{election: e, turn: make(chan struct{}, 1)}
	l.closing, l.close = context.WithCancelCause(context.Background())
	l.turn <- struct{}{}
	return l, nil
}

// Await joins the queue, if the candidate is not in it yet, and returns once it leads:
// with the hold behind the leadership, which tells when that is lost and has its fencing
// token. While it leads, Await returns the same hold at once. After a loss it joins anew,
// at the tail, and returns another hold with a greater token.
//
// ctx bounds the wait and not the leadership. A wait that ctx has ended has left the
// queue, and leaves nothing behind; its error matches the cause, and says where it stood.
// Where several goroutines wait, one of them stands in the queue for all: if that one is
// cancelled, another joins anew, at the tail.
//
// Outages and ends of the session do not end the wait. What no retry can mend does, and
// Close: after it, Await returns an error.
func (l *LeaderLatch) Await(ctx context.Context) (*Hold, error) {
	if err := usable("await", l.where(), ctx); err != nil {
		return nil, err
	}
	term, err := l.await(ctx)
	if err != nil {
		return nil, wrap("await", l.lock.path, err)
	}
	return term, nil
}

func (l *LeaderLatch) await(ctx context.Context) (*Hold, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closing, func() { cancel(errLatchClosed) })()
	if err := l.lock.awaitSettled(ctx, l.turn); err != nil {
		return nil, err
	}
	defer func() { l.turn <- struct{}{} }()
	if l.closing.Err() != nil {
		return nil, errLatchClosed
	}
	if term := l.lock.holdOf(l.candidate); term != nil && term.Err() != nil {
		_ = l.stepDown(ctx) // it says that the term was lost, which its hold has told
	} else if term != nil && ctx.Err() == nil {
		return term, nil
	}
	term, err := l.elect(ctx)
	if err == nil && l.closing.Err() != nil {
		return nil, errLatchClosed // Close, which waits for the turn, steps down
	}
	return term, err
}

// HasLeadership reports whether the candidate leads, as far as this process knows: from
// its turn, of which an Await returns the hold, until the leadership is lost (from then
// on the hold's Lost is closed) or Close is called. It asks nothing of ZooKeeper. What it
// says can be over when the caller reads it: what depends on leading goes by the hold.
func (l *LeaderLatch) HasLeadership() bool {
	return l.where() != "" && l.closing.Err() == nil && l.lock.held(l.candidate) != nil
}

// Close steps down or leaves the queue, and ends every Await with an error. Before that
// the caller stops what it does as the leader: the next may lead as soon as Close is
// called. It waits for ZooKeeper's answer as Release does: where ctx ends first (or was
// done before: then after at most a second) it returns an error that says so, and the
// rest is done in the background for as long as the session lasts.
//
// An error that matches ErrLockLost says that the leadership had ended before, with no
// Await since. To close what never led, or what is closed, is no error.
func (l *LeaderLatch) Close(ctx context.Context) error {
	if err := usable("close", l.where(), ctx); err != nil {
		return err
	}
	l.close(errLatchClosed)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTurnWithin)
	defer cancel()
	select {
	case <-l.turn:
		return l.leave(ctx)
	case <-within.Done():
		go func() {
			<-l.turn
			_ = l.leave(ctx) // it is told that nobody knows yet
		}()
		return wrap("close", l.lock.path, errStillLeaving)
	}
}

// leaveTurnWithin is more than an Await takes to return once its ctx is done, unless an
// observer keeps it.
const leaveTurnWithin = time.Second

// errStillLeaving says that Close could not wait.
var errStillLeaving = errors.New(
	"not confirmed yet: an Await is leaving the queue, held up by its observer",
)

// leave ends the candidacy of whoever has the turn.
func (l *LeaderLatch) leave(ctx context.Context) error {
	defer func() { l.turn <- struct{}{} }()
	if err := l.stepDown(ctx); err != nil && !errors.Is(err, ErrNotOwner) {
		return wrap("close", l.lock.path, err)
	}
	return nil
}
