package recipes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// LeaderSelector is Curator's election of the same name: candidates queue, and each leads
// while its function runs. All values for one path, in Go or Java, are candidates of one
// election, which is the queue of an InterProcessMutex at that path: while an owner holds
// that lock, no candidate leads. At most one candidate leads, as at most one owner holds
// a lock (see [Hold.Lost]). One that is suspended for longer than its session lasts
// believes that it leads until it is notified: use Hold.FencingToken or Hold.Multi.
type LeaderSelector struct {
	*election
	running atomic.Bool // a Run is under way
}

// errRunning says that a candidate stands for election already.
var errRunning = errors.New("Run is already in progress on this LeaderSelector")

// NewLeaderSelector returns a candidate of the election at path; [WithData] names it to
// readers of the queue. WithCaching is an error: a candidate whose term has ended goes to
// the tail of the queue.
func NewLeaderSelector(conn Conn, path string, opts ...Option) (*LeaderSelector, error) {
	e, err := newElection(conn, path, "leader selector", mutexName, opts)
	if err != nil {
		return nil, refuse("NewLeaderSelector", path, err)
	}
	return &LeaderSelector{election: e}, nil
}

// Run joins the election and calls lead, on this goroutine, each time this candidate
// becomes the leader. Use it if the leadership should last as long as a function runs.
// term is the hold behind the leadership: its fencing token grows with each term of any
// candidate, and its transactions ([Hold.Multi]) succeed only while this candidate leads.
// lead's ctx ends with ctx, and is cancelled with a cause that matches ErrLockLost as
// soon as the leadership cannot be relied on. lead must then return, ideally
// context.Cause of its ctx (see [Do]): after a loss another candidate may lead soon, even
// while lead runs. Unless it is lost, the leadership is relinquished once lead has
// returned and not before. Run waits for the answer as Release does. Then:
//
//   - If ctx is done, Run returns an error that matches context.Cause(ctx); also lead's
//     error, unless that is only the end of its ctx, and ErrLockLost if the leadership
//     was lost.
//   - If the leadership was lost, or if lead returned nil, the candidate rejoins at the
//     tail: from the tenth term within a second on, after a pause that grows to 100 ms.
//     An error that lead returned after a loss is logged.
//   - Any other error of lead, or a permanent one of relinquishing, ends Run.
//
// Run never returns nil. To end it on Ctrl-C, pass the ctx of [os/signal.NotifyContext].
// Outages and expired sessions do not end Run; permanent errors do, such as a closed
// connection. A second, concurrent Run fails. Afterwards the candidate has left; Run may
// be called again. A panic or runtime.Goexit of lead relinquishes the leadership, and
// goes on.
func (s *LeaderSelector) Run(
	ctx context.Context, lead func(ctx context.Context, term *Hold) error,
) error {
	const op = "run for"
	if err := usable(op, s.inner().where(), ctx); err != nil {
		return err
	}
	if lead == nil {
		return wrap(op, s.lock.path, errors.New("lead is nil"))
	}
	if s.running.Swap(true) {
		return wrap(op, s.lock.path, errRunning)
	}
	defer s.running.Store(false)
	for pace := new(pacer); ; pace.wait(ctx) {
		term, err := s.elect(ctx)
		if err != nil {
			return wrap(op, s.lock.path, err)
		}
		failed, ended := s.serve(ctx, term, lead)
		switch lost := errors.Is(ended, ErrLockLost); {
		case ctx.Err() != nil:
			return s.endOfRun(ctx, failed, ended)
		case lost && failed != nil:
			s.logLoss(cmp.Or(term.Err(), ended), failed)
		case !lost && ended != nil:
			return errors.Join(failed, ended)
		case !lost && failed != nil:
			return failed
		}
	}
}

// HasLeadership reports, without requests, whether this candidate leads, as far as this
// process knows: from its turn until a loss (then Lost is closed) or the end of its term.
// It may be stale: work that depends on leading must use the hold.
func (s *LeaderSelector) HasLeadership() bool { return s.inner().leads() }

// A pacer slows a candidate down whose terms end as soon as they begin: each costs a
// number of the path's counter, which has an end, and load for all. The tenth term within
// a second is followed by a pause, which grows while it goes on like that.
type pacer struct {
	ends  [10]time.Time // of the last terms, in a ring
	at    int
	pause time.Duration
}

const (
	pauseFirst  = time.Millisecond
	pauseAtMost = 100 * time.Millisecond
)

// wait takes note of the end of a term, and returns once the candidate may rejoin, or ctx
// is done.
func (p *pacer) wait(ctx context.Context) {
	now := time.Now()
	tenth := p.ends[p.at]
	p.ends[p.at] = now
	p.at = (p.at + 1) % len(p.ends)
	if now.Sub(tenth) > time.Second {
		p.pause /= 2
	} else {
		p.pause = min(max(2*p.pause, pauseFirst), pauseAtMost)
	}
	if p.pause < pauseFirst {
		return
	}
	select {
	case <-time.After(p.pause):
	case <-ctx.Done():
	}
}

// logLoss logs what lead returned after a loss, which has a message of its own. Most
// likely it is that, or wraps it: then it is no second warning.
func (s *LeaderSelector) logLoss(loss, failed error) {
	level := slog.LevelWarn
	if strings.Contains(failed.Error(), loss.Error()) {
		level = slog.LevelInfo
	}
	s.lock.queue.Log.Log(context.Background(), level,
		"zookeeper leader selector: leadership lost, rejoining",
		"path", s.lock.path, "error", failed)
}

// serve calls lead for a term, and gives that up whatever lead does. failed is what lead
// returned, ended what has become of the term: ErrLockLost where that was lost.
func (s *LeaderSelector) serve(
	ctx context.Context, term *Hold, lead func(ctx context.Context, term *Hold) error,
) (failed, ended error) {
	defer func() {
		if err := s.stepDown().finish(ctx, nil); err != nil {
			ended = wrap("step down from", s.lock.path, err)
		}
	}()
	if term.Err() != nil || ctx.Err() != nil {
		return nil, nil
	}
	within, _ := term.context(ctx)
	return lead(within, term), nil
}

// endOfRun is what Run returns whose ctx is done.
func (s *LeaderSelector) endOfRun(ctx context.Context, failed, ended error) error {
	err := wrap("run for", s.lock.path, context.Cause(ctx))
	// Not the other way round: what wraps these has more to tell.
	if errors.Is(ctx.Err(), failed) || errors.Is(context.Cause(ctx), failed) {
		failed = nil
	}
	if isKnown(ended, failed) {
		ended = nil
	}
	if failed == nil && ended == nil {
		return err
	}
	return errors.Join(err, failed, ended)
}

// inner is nil of a nil LeaderSelector, and of a zero one.
func (s *LeaderSelector) inner() *election {
	if s == nil {
		return nil
	}
	return s.election
}

// Participants returns all candidates in queue order, the leader first, with Holding set.
// It sends a read for each, and omits those that leave.
func (s *LeaderSelector) Participants(ctx context.Context) ([]Participant, error) {
	return s.inner().Participants(ctx)
}

// Leader returns the leader according to the znodes at this moment, with the data of its
// znode, which names it ([WithData]); false if there is no candidate. It sends requests
// each time: for the list and that one znode. Use it to route requests; it proves
// nothing: the leader may not know yet, or may just have lost contact. Its own Hold and
// token decide what it may do.
func (s *LeaderSelector) Leader(ctx context.Context) (Participant, bool, error) {
	return s.inner().Leader(ctx)
}

// Leaders yields the current leader, as Leader returns it, and again each time that
// another candidate leads or its znode's data changes; while nobody leads, the zero
// Participant, whose Node is "". Changes that come faster than they can be read are
// merged: the last value is eventually true, but not every leader is seen. A leader that
// steps down while others wait is followed directly by the next. It watches only the
// leader's znode, so candidates behind it wake nobody; a change costs three requests.
// Otherwise the loop behaves as that of [InterProcessMutex.WatchParticipants].
func (s *LeaderSelector) Leaders(ctx context.Context) iter.Seq2[Participant, error] {
	return s.inner().Leaders(ctx)
}
