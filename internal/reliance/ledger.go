package reliance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// A Ledger knows the znodes of this process that live in the sessions of one connection,
// and until when they can be relied on. It is guarded by its owner's mutex.
type Ledger struct {
	clock
	slowness               // whom to tell that answers are slow
	sessionID func() int64 // see Config.SessionID
	closed    bool         // see Close

	ephemerals ephemerals // the znodes of this process
	reliers    reliers    // those who rely on them with a margin of their own
	alarms     alarms     // what is to be done at a time
}

// A Config is what a Ledger is given. Its functions are called with the mutex held.
type Config struct {
	// SessionID is the present session's.
	SessionID func() int64
	// Timeout is the negotiated session timeout, 0 where it is unknown.
	Timeout func() time.Duration
	// Advice is what a loss says is to be done where Timeout is unknown.
	Advice string
	// LastHandshake tells when the last handshake of that session began; nil where the
	// connection does not tell.
	LastHandshake func(session int64) (time.Time, bool)
	// Wall is what the wall clock says, of a reading of the clock.
	Wall func(now time.Time) time.Time
}

// New returns a Ledger of no znodes.
func New(c Config) Ledger {
	return Ledger{
		clock: clock{
			wall: c.Wall, timeout: c.Timeout, lastHandshake: c.LastHandshake,
			advice: c.Advice,
		},
		sessionID:  c.SessionID,
		ephemerals: ephemerals{}, reliers: reliers{}, alarms: alarms{},
	}
}

// Close says that the connection was closed: nothing can be relied on any more.
func (l *Ledger) Close() { l.closed = true }

// An Ephemeral is a znode of this process that lives in the session.
type Ephemeral interface {
	// SessionEnded tells that the znode's session has ended or, of a held one only, that
	// it cannot be relied on any more. It may be called more than once, and from any
	// goroutine.
	SessionEnded(cause error)
}

// ephemerals are the znodes that are tracked, by path: whoever finds another's znode in a
// queue asks by its path whether it is one of this process, which needs no watch.
type ephemerals map[string]*tracked

// reliers are those who rely on an ephemeral that is held for several, with a margin of
// their own; see Rely.
type reliers map[Ephemeral]*tracked

type tracked struct {
	Ephemeral
	session int64 // that the znode lives in
	held    bool  // it guards something, so that silence is a loss
	// how much earlier than the others it is told of silence, of a held one
	margin time.Duration
}

// A slowness tells whoever reads the log that holds are near their loss although nothing
// is wrong: answers take long.
type slowness struct {
	log  *slog.Logger // nil: nobody reads it
	told time.Time
}

// Tell has warnings go to log, unless they go to another that takes them.
func (s *slowness) Tell(log *slog.Logger) {
	if s.log == nil && log != nil && log.Enabled(context.Background(), slog.LevelWarn) {
		s.log = log
	}
}

// all returns those who can be told of a loss: the znodes, and who relies on them.
func (l *Ledger) all() iter.Seq[*tracked] {
	return func(yield func(*tracked) bool) {
		for _, t := range l.ephemerals {
			if !yield(t) {
				return
			}
		}
		for _, t := range l.reliers {
			if !yield(t) {
				return
			}
		}
	}
}

// alarms are what is to be done at a time on the clock's line: by the monotonic clock, or
// by the wall clock where that has moved farther, as on a machine that was suspended.
type alarms map[*Alarm]struct{}

// An Alarm is one call that is to be made.
type Alarm struct {
	at time.Time
	f  func()
}

// Track takes note that the znode at path is e's, in the given ZooKeeper session, until
// Untrack.
func (l *Ledger) Track(path string, session int64, e Ephemeral) {
	l.ephemerals[path] = &tracked{Ephemeral: e, session: session}
}

// Untrack is documented at Track.
func (l *Ledger) Untrack(path string) {
	delete(l.ephemerals, path)
}

// Ephemeral returns the znode at path, nil where it is none of this process.
func (l *Ledger) Ephemeral(path string) Ephemeral {
	if t := l.ephemerals[path]; t != nil {
		return t.Ephemeral
	}
	return nil
}

// EphemeralsAt returns the znode at path and those below it, as far as they are of this
// process.
func (l *Ledger) EphemeralsAt(path string) (found []Ephemeral) {
	below := strings.TrimSuffix(path, "/") + "/"
	for p, t := range l.ephemerals {
		if p == path || strings.HasPrefix(p, below) {
			found = append(found, t.Ephemeral)
		}
	}
	return found
}

// Hold marks the ephemeral at path as held, which it is only if its session can be relied
// on now: a mere notification, that another has gone, may have been under way for long.
// Judging and marking are one step, so that a tick that comes right behind finds it held,
// and tells of its loss. From then on it is told of silence by margin earlier
// than it must be; of several margins for one ephemeral the longest counts. One that is
// not held yet has to wait for word from the server where it would be told although
// nothing is amiss. With a margin it returns when that is to be looked at: until.
func (l *Ledger) Hold(path string, margin time.Duration) (until time.Time, err error) {
	t := l.ephemerals[path]
	if t == nil { // untracked meanwhile, by whoever told of the loss
		return until, outcome.ErrSessionEnded
	}
	return l.hold(t, max(margin, t.margin))
}

// Rely is Hold for one of several who rely on the held ephemeral at path, each with a
// margin of its own: e alone is told of silence by its margin earlier, until Forgo.
func (l *Ledger) Rely(
	path string, e Ephemeral, margin time.Duration,
) (until time.Time, err error) {
	t := l.ephemerals[path]
	if t == nil || !t.held {
		return until, outcome.ErrSessionEnded
	}
	t = &tracked{Ephemeral: e, session: t.session}
	until, err = l.hold(t, margin)
	if err == nil {
		l.reliers[e] = t
	}
	return until, err
}

// Forgo undoes Rely.
func (l *Ledger) Forgo(e Ephemeral) {
	delete(l.reliers, e)
}

// Waive takes the margin off the ephemeral at path: those who rely on it have their own.
func (l *Ledger) Waive(path string) {
	if t := l.ephemerals[path]; t != nil {
		t.margin = 0
	}
}

func (l *Ledger) hold(t *tracked, margin time.Duration) (until time.Time, err error) {
	// Even where it is good now, by a handshake: no proof would come after that.
	if terms := l.terms(); !terms.Workable() {
		return until, fmt.Errorf("%w: a session timeout of %v, with a server tick of "+
			"%v; at least %v is needed, and servers grant two ticks by default",
			outcome.ErrTooShort, terms.Timeout, terms.Tick, terms.LeastTimeout())
	}
	if err := l.CheckMargin(margin); !t.held && err != nil {
		return until, err
	}
	if err := l.good(t.session, margin); err != nil {
		return until, err
	}
	if !t.held && !l.outlasts(t.session, margin) {
		return until, l.explain(outcome.ErrSuspended, t.session, margin)
	}
	t.held, t.margin = true, margin
	if end, ok := l.goodUntil(t.session); ok && margin > 0 {
		until = end.Add(-margin)
	}
	return until, nil
}

// good tells whether a hold in session that is told of silence by margin earlier
// can be relied on now, and if not, why.
func (l *Ledger) good(session int64, margin time.Duration) error {
	now := l.Now()
	until, ok := l.goodUntil(session)
	switch {
	case l.closed:
		return outcome.ClosedError{}
	case l.sessionID() != session:
		return l.explain(outcome.ErrSessionEnded, session, 0)
	case !ok || !now.Before(until.Add(-margin)):
		return l.explain(outcome.ErrSuspended, session, margin)
	}
	return nil
}

// A Notice is what an Ephemeral is to be told. Whoever tells it holds no mutex: an
// Ephemeral has locks of its own.
type Notice struct {
	Of    Ephemeral
	Cause error
}

// Closed returns the notices that the connection was closed.
func (l *Ledger) Closed() []Notice {
	return l.notices(func(t *tracked) error {
		return l.explain(outcome.ClosedError{}, t.session, 0)
	})
}

// Ended returns the notices of those whose session has ended. They come before those of
// Suspended: no contact can save them.
func (l *Ledger) Ended() []Notice {
	return l.notices(func(t *tracked) error {
		if l.sessionID() != t.session {
			return l.explain(outcome.ErrSessionEnded, t.session, 0)
		}
		return nil
	})
}

// Suspended returns the notices of those that cannot be relied on any more.
func (l *Ledger) Suspended() []Notice {
	return l.notices(func(t *tracked) error {
		err := l.good(t.session, t.margin)
		if t.held && errors.Is(err, outcome.ErrSuspended) {
			return err
		}
		return nil
	})
}

// notices returns those for whom why has a cause.
func (l *Ledger) notices(why func(*tracked) error) (all []Notice) {
	for t := range l.all() {
		if cause := why(t); cause != nil {
			all = append(all, Notice{t.Ephemeral, cause})
		}
	}
	return all
}

// NextSync is when the next heartbeat is due, where the last one was sent at lastSync.
func (l *Ledger) NextSync(session int64, lastSync time.Time) time.Time {
	return l.evidence.NextSync(l.terms(), session, l.handshake(session), lastSync,
		len(l.ephemerals) > 0)
}

// Next is when there is something to do after now: an Ephemeral to be told of silence, if
// it lasts, or an alarm; false where there is nothing. A loss is to be told at its very
// time, since what is left of the session then is little.
func (l *Ledger) Next(session int64, now time.Time) (at time.Time, ok bool) {
	by := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if end, known := l.goodUntil(session); known {
		by(end)
		for t := range l.all() {
			by(end.Add(-t.margin))
		}
	}
	for a := range l.alarms {
		by(a.at)
	}
	return at, !at.IsZero()
}

// Set adds a call of f, when d has passed.
func (l *Ledger) Set(d time.Duration, f func()) *Alarm {
	a := &Alarm{l.Now().Add(d), f}
	l.alarms[a] = struct{}{}
	return a
}

// At is when it is to be made, on the clock's line.
func (a *Alarm) At() time.Time { return a.at }

// Stop takes an alarm back. A call that is under way is not waited for.
func (l *Ledger) Stop(a *Alarm) { delete(l.alarms, a) }

// Due takes out the calls that are to be made by now, a warning that answers are slow
// last. Whoever makes them holds no mutex.
func (l *Ledger) Due(now time.Time) (rung []func()) {
	for a := range l.alarms {
		if !now.Before(a.at) {
			rung = append(rung, a.f)
			delete(l.alarms, a)
		}
	}
	if warning := l.warning(now); warning != nil {
		rung = append(rung, warning)
	}
	return rung
}

const (
	toldEvery = time.Minute
	slowShare = 2 // of what is a loss
)

// warning returns what tells that answers take long for those that are held; nil if they
// do not, or it was told of late.
func (l *Ledger) warning(now time.Time) func() {
	log, terms := l.slowness.log, l.terms()
	answer, longest := l.evidence.Answer(), terms.LongestAnswer()
	if log == nil || answer*slowShare < longest || now.Sub(l.slowness.told) < toldEvery {
		return nil
	}
	for t := range l.all() {
		if t.held {
			l.slowness.told = now
			return func() {
				log.Warn("zookeeper lock: answers are slow, holds may be lost",
					"answer", rounded(answer), "timeout", terms.Timeout,
					"lost_from", rounded(longest))
			}
		}
	}
	return nil
}
