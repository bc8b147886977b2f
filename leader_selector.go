package recipes

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
)

// LeaderSelector is Curator's election of the same name: candidates queue, and each leads
// for as long as a function of its own runs. All values for one path, in Go or Java, are
// candidates of one election, which is the queue of an InterProcessMutex at that path:
// whoever holds that lock keeps them all from leading.
//
// At most one candidate leads, as at most one owner holds a lock: see [Hold.Lost] for
// what that rests on. A process that is stopped for longer than its session lasts, and
// then goes on, leads in its own eyes until it has been told: what the leader writes to
// refuses it by the fencing token of its term, or is written by [Hold.Multi].
//
// It is safe for concurrent use and needs no closing.
type LeaderSelector struct {
	*election
	running atomic.Bool // a Run is under way
}

// errRunning says that a candidate stands for election already.
var errRunning = errors.New("Run is already in progress on this LeaderSelector")

// NewLeaderSelector returns a candidate of the election at path, which is created when
// the first one queues. WithData names the candidate to those who look: by default it is
// an address of this host. It asks nothing of ZooKeeper, and refuses what
// NewInterProcessMutex refuses. It refuses WithCaching as well: a candidate whose term is
// over goes to the tail of the queue.
func NewLeaderSelector(
	conn Conn, path string, opts ...Option,
) (*LeaderSelector, error) {
	e, err := newElection(conn, path, "leader selector", mutexName, opts)
	if err != nil {
		return nil, refuse("NewLeaderSelector", path, err)
	}
	return &LeaderSelector{election: e}, nil
}

// Run queues, and calls lead on this goroutine each time that the candidate leads. term
// is the hold behind the leadership: its fencing token grows with each term, of whichever
// candidate, and its transactions (Hold.Multi) are done only while it leads. lead's ctx
// is cancelled with a cause that matches ErrLockLost as soon as the leadership cannot be
// relied on, and ends with ctx. lead has to return then, best with context.Cause of its
// ctx. After a loss another may lead soon, whether it has returned or not: see
// [Hold.Lost].
//
// Leadership is given up once lead has returned, and not before, also where ctx is done:
// for as long as lead runs nobody else leads, unless the leadership is lost. Giving it up
// waits for ZooKeeper's answer, as Release does. What comes after lead has returned:
//
//   - Where ctx is done, Run returns an error that matches its cause. It matches what
//     lead returned, too, unless that is no more than the end of its ctx, and ErrLockLost
//     where the leadership turned out to be lost.
//   - Where the leadership was lost, whatever lead returned, and where lead returned nil
//     and the leadership was given up, the candidate queues anew, at the tail. What lead
//     returned behind a loss is logged.
//   - Any other error of lead ends Run, which returns it, joined with that of giving up
//     the leadership, if that failed.
//   - Where lead returned nil and giving up the leadership failed with an error that no
//     retry fixes, Run returns that error.
//
// lead is not called again before it has returned and the leadership of that term was
// given up, and it is not called with a term that is known to be lost. Where lead panics,
// or ends its goroutine (runtime.Goexit), the leadership is given up, and the panic goes
// on.
//
// Run outlasts outages and ends of the session. It returns an error that no retry can
// mend, such as a closed connection or a lack of permission, and one of its own where
// another Run of the same value is under way. It never returns nil. After it has returned
// there is no candidate any more, and Run may be called again.
func (s *LeaderSelector) Run(
	ctx context.Context, lead func(ctx context.Context, term *Hold) error,
) error {
	const op = "run for"
	if err := usable(op, s.where(), ctx); err != nil {
		return err
	}
	if lead == nil {
		return wrap(op, s.lock.path, errors.New("lead is nil"))
	}
	if s.running.Swap(true) {
		return wrap(op, s.lock.path, errRunning)
	}
	defer s.running.Store(false)
	for {
		term, err := s.elect(ctx)
		if err != nil {
			return wrap(op, s.lock.path, err)
		}
		failed, ended := s.serve(ctx, term, lead)
		switch lost := errors.Is(ended, ErrLockLost); {
		case ctx.Err() != nil:
			return s.endOfRun(ctx, failed, untold(ended, failed, term))
		case lost && failed != nil:
			s.logLoss(cmp.Or(term.Err(), ended), failed)
		case !lost && ended != nil:
			return errors.Join(failed, ended)
		case !lost && failed != nil:
			return failed
		}
	}
}

// logLoss logs what lead returned after a loss. Most likely that is the loss, or wraps
// it: then it is not logged twice.
func (s *LeaderSelector) logLoss(loss, failed error) {
	attrs := []any{"path", s.lock.path, "error", failed}
	if !strings.Contains(failed.Error(), loss.Error()) {
		attrs = append(attrs, "loss", loss)
	}
	s.lock.queue.Log.Warn(
		"zookeeper leader selector: leadership lost, rejoining", attrs...)
}

// serve calls lead for a term, and gives that up whatever lead does. failed is what lead
// returned, ended what has become of the term: ErrLockLost where that was lost.
func (s *LeaderSelector) serve(
	ctx context.Context, term *Hold, lead func(ctx context.Context, term *Hold) error,
) (failed, ended error) {
	defer func() {
		if err := s.stepDown(ctx); err != nil {
			ended = wrap("step down from", s.lock.path, err)
		}
	}()
	if term.Err() != nil || ctx.Err() != nil {
		return nil, nil
	}
	within, cancel := term.Context(ctx)
	defer cancel()
	return lead(within, term), nil
}

// endOfRun is what Run returns whose ctx is done.
func (s *LeaderSelector) endOfRun(ctx context.Context, failed, ended error) error {
	err := wrap("run for", s.lock.path, context.Cause(ctx))
	//nolint:errorlint // these very values: what wraps them has more to tell
	if failed == ctx.Err() || failed == context.Cause(ctx) {
		failed = nil
	}
	if failed == nil && ended == nil {
		return err
	}
	return errors.Join(err, failed, ended)
}
