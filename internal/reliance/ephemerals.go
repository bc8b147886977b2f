package reliance

import (
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

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
