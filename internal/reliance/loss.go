package reliance

import (
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// A loss is why a hold is lost, and what the clock knew by then: whoever is woken by it
// wants to know for how long ZooKeeper was silent, and which timeout that was measured
// by.
type loss struct {
	cause  error // outcome.ErrSessionEnded, outcome.ErrSuspended or outcome.ClosedError
	detail string
}

func (l loss) Error() string { return fmt.Sprintf("%v (%s)", l.cause, l.detail) }
func (l loss) Unwrap() error { return l.cause }

// CheckMargin returns an error, which says what to do, if a hold with a loss margin can
// never be relied on.
func (c *clock) CheckMargin(margin time.Duration) error {
	terms := c.terms()
	longest := terms.LongestMargin()
	switch {
	case margin <= longest:
		return nil
	case terms.Timeout <= 0:
		return outcome.Permanent(fmt.Errorf("WithLossMargin: %v exceeds the maximum of "+
			"%v for an unknown session timeout: %s", margin, longest, c.advice))
	}
	return outcome.Permanent(fmt.Errorf("WithLossMargin: %v exceeds the maximum of %v "+
		"for a session timeout of %v; shorten it, or request a session timeout of at "+
		"least %v",
		margin, longest, terms.Timeout, marginShare*margin))
}

// marginShare is how many loss margins a session timeout has room for; with servers whose
// ticks are long there is less.
const marginShare = 4

// explain adds to cause what is known of the session's contacts, and by how much earlier
// than it must a hold is told.
func (c *clock) explain(cause error, session int64, margin time.Duration) error {
	now, terms := c.Now(), c.terms()
	ago := func(t time.Time) time.Duration { return rounded(now.Sub(t)) }
	last, detail := c.evidence.Last(session), ""
	switch {
	case last.IsZero():
		return cause
	case terms.Timeout <= 0:
		detail = fmt.Sprintf("no response for %v; its session timeout is unknown: %s",
			ago(last), c.advice)
	case errors.Is(cause, outcome.ErrSuspended):
		known := "its leader may not have confirmed any request"
		counts := c.evidence.Reported(terms, session, c.handshake(session))
		if !counts.IsZero() {
			known = fmt.Sprintf("the last request that its leader confirmed is "+
				"%v old, and the session may end at %v", ago(counts), terms.Timeout)
		}
		if margin > 0 {
			known += fmt.Sprintf(", of which the loss margin is %v", margin)
		}
		detail = fmt.Sprintf("no response for %v; %s", ago(last), known)
	default:
		detail = fmt.Sprintf("last response %v ago, session timeout %v",
			ago(last), terms.Timeout)
	}
	return loss{cause, detail}
}

// rounded is d as people want to read it.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
