package reliance

import (
	"errors"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

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
	for _, t := range l.ephemerals {
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
		for _, t := range l.ephemerals {
			by(end.Add(-t.margin))
		}
	}
	for a := range l.alarms {
		by(a.at)
	}
	return at, !at.IsZero()
}
