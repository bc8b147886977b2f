package recipes

import (
	"context"
	"errors"
	"iter"
	"time"
)

// LeaderLatch is Curator's election of the same name: a candidate that leads keeps the
// leadership until it is closed or loses it. Use it if the leadership should outlast a
// function. All values for one path, in Go or Java, are candidates of one election; a
// [LeaderSelector] must not share the path. As there, at most one candidate leads;
// Leader, Leaders and Participants are the same methods. Unlike Curator's, it does not
// rejoin by itself after a loss: stop what was done as the leader, then call Await again.
// Close it when it is not needed: while it leads, nobody else can.
type LeaderLatch struct {
	*election

	closing context.Context // done once Close was called
	close   context.CancelCauseFunc

	// turn has the one token of whoever may join the queue or leave it: an Await, or
	// Close. It is no mutex, since others wait for it no longer than their ctx.
	turn     chan struct{}
	awaiting presence // of the Await that has the turn
}

// errLatchClosed says why nobody can be elected any more.
var errLatchClosed = errors.New("the leader latch was closed")

// NewLeaderLatch returns a candidate, as [NewLeaderSelector] does.
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

// Await joins the election, if necessary, and returns once this candidate leads, with the
// hold behind the leadership: it reports a loss and has the fencing token. While the
// candidate leads, Await returns the same hold at once. After a loss it rejoins at the
// tail and returns a new hold with a greater token. The wait ends as that of
// InterProcessLock.Acquire, and with Close: after it, Await returns an error. If several
// goroutines wait, one queues for all; if that one is cancelled, another rejoins at the
// tail.
func (l *LeaderLatch) Await(ctx context.Context) (*Hold, error) {
	if err := usable("await", l.inner().where(), ctx); err != nil {
		return nil, err
	}
	term, err := l.await(ctx)
	return term, wrap("await", l.lock.path, err)
}

func (l *LeaderLatch) await(ctx context.Context) (*Hold, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closing, func() { cancel(errLatchClosed) })()
	if l.awaiting.isHere() {
		return nil, errObserving
	}
	if err := l.lock.awaitTurn(ctx, l.turn); err != nil {
		return nil, err
	}
	defer func() { l.turn <- struct{}{} }()
	l.awaiting.enter()
	defer l.awaiting.leave()
	if l.closing.Err() != nil {
		return nil, errLatchClosed
	}
	if term := l.term(); term != nil && term.Err() != nil {
		_ = l.stepDown().finish(ctx, nil) // a loss, which its hold has reported
	} else if term != nil && ctx.Err() == nil {
		return term, nil
	}
	term, err := l.elect(ctx)
	if err == nil && l.closing.Err() != nil {
		return nil, errLatchClosed // Close, which waits for the turn, steps down
	}
	return term, err
}

// HasLeadership reports, without requests, whether this candidate leads, as far as this
// process knows: from its turn until a loss (then Lost is closed) or Close. It may be
// stale: work that depends on leading must use the hold.
func (l *LeaderLatch) HasLeadership() bool {
	return l.inner().leads() && l.closing.Err() == nil
}

// Close relinquishes the leadership or leaves the queue, and ends every Await with an
// error. Stop what is done as the leader before: the next candidate may lead as soon as
// Close is called. It waits for the answer as Release does, with the same errors;
// ErrLockLost means that the leadership had ended before, with no Await since. A
// candidate that does not lead yet leaves as a cancelled Acquire does: its znode may be
// there for longer than Close takes, which returns no error then. Closing twice, or
// without a term, is no error; a second Close does not wait for the first.
func (l *LeaderLatch) Close(ctx context.Context) error {
	if err := usable("close", l.inner().where(), ctx); err != nil {
		return err
	}
	l.close(errLatchClosed)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTurnWithin)
	defer cancel()
	select {
	case <-l.turn:
	case <-within.Done():
		go func() {
			<-l.turn
			_ = l.leave().finish(ctx, nil) // the caller has an error already
		}()
		return wrap("close", l.lock.path, errStillLeaving)
	}
	left := l.leave()
	if errors.Is(left.err, ErrNotOwner) { // there was nothing to leave
		return nil
	}
	return wrap("close", l.lock.path, left.finish(ctx, nil))
}

// leaveTurnWithin is more than an Await takes to return once its ctx is done, unless an
// observer keeps it.
const leaveTurnWithin = time.Second

// errStillLeaving says that Close could not wait.
var errStillLeaving = errors.New(
	"close not confirmed: an Await, delayed by its observer, is leaving the queue",
)

// leave begins to end the candidacy, and gives the turn back: it is not kept until the
// answer comes.
func (l *LeaderLatch) leave() leaving {
	defer func() { l.turn <- struct{}{} }()
	return l.stepDown()
}

// inner is nil of a nil LeaderLatch, and of a zero one.
func (l *LeaderLatch) inner() *election {
	if l == nil {
		return nil
	}
	return l.election
}

// Participants returns all candidates, as [LeaderSelector.Participants] does.
func (l *LeaderLatch) Participants(ctx context.Context) ([]Participant, error) {
	return l.inner().Participants(ctx)
}

// Leader returns the leader, as [LeaderSelector.Leader] does.
func (l *LeaderLatch) Leader(ctx context.Context) (Participant, bool, error) {
	return l.inner().Leader(ctx)
}

// Leaders yields the leader now and at each change, as [LeaderSelector.Leaders] does.
func (l *LeaderLatch) Leaders(ctx context.Context) iter.Seq2[Participant, error] {
	return l.inner().Leaders(ctx)
}
