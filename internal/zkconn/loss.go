package zkconn

import (
	"errors"
	"fmt"
	"time"
)

// A loss is why a hold is lost, and what the clock knew by then: whoever is woken by it
// wants to know for how long ZooKeeper was silent, and which timeout that was measured
// by.
type loss struct {
	cause  error // ErrSessionEnded, ErrSuspended or closedError
	detail string
}

func (l loss) Error() string { return fmt.Sprintf("%v (%s)", l.cause, l.detail) }
func (l loss) Unwrap() error { return l.cause }

// bears refuses a loss margin that is too long for the session's terms.
func (c *clock) bears(margin time.Duration) error {
	terms := c.terms()
	longest := terms.LongestMargin()
	switch {
	case margin <= longest:
		return nil
	case terms.Timeout <= 0:
		return Permanent(fmt.Errorf("WithLossMargin: %v is too long for a session whose "+
			"timeout is not known, where %v is the most: %s", margin, longest, c.advice))
	}
	return Permanent(fmt.Errorf("WithLossMargin: %v is too long for a session timeout "+
		"of %v, where %v is the most: shorten it, or ask the servers for a session "+
		"timeout of %v or more", margin, terms.Timeout, longest, marginShare*margin))
}

// marginShare is how many loss margins a session timeout has room for; with servers whose
// ticks are long there is less.
const marginShare = 4

// explain adds to cause what is known of the session's contacts, and by how much earlier
// than it must a hold is told.
func (c *clock) explain(cause error, session int64, margin time.Duration) error {
	now, terms := c.now(), c.terms()
	ago := func(t time.Time) time.Duration { return rounded(now.Sub(t)) }
	last, detail := c.evidence.Last(session), ""
	switch {
	case last.IsZero():
		return cause
	case terms.Timeout <= 0:
		detail = fmt.Sprintf("no answer for %v; its session timeout is not known: %s",
			ago(last), c.advice)
	case errors.Is(cause, ErrSuspended):
		known := "its leader may know of no request yet"
		counts := c.evidence.Reported(terms, session, c.handshake(session))
		if !counts.IsZero() {
			known = fmt.Sprintf("the last request that its leader surely knows of is "+
				"%v old, and the session may end at %v", ago(counts), terms.Timeout)
		}
		if margin > 0 {
			known += fmt.Sprintf(", of which the loss margin is %v", margin)
		}
		detail = fmt.Sprintf("no answer for %v; %s", ago(last), known)
	default:
		detail = fmt.Sprintf("last answer %v ago, session timeout %v",
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
