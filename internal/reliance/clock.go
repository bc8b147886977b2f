package reliance

import (
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/lossclock"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// A clock knows until when a session of its connection can be relied on. Package
// lossclock judges; a clock keeps what it has to be given.
type clock struct {
	lossClock lossclock.Clock
	timeline  lossclock.Timeline
	wall      func(now time.Time) time.Time // the wall clock of a reading

	timeout       func() time.Duration                  // see Learn
	serverTick    time.Duration                         // see Learn
	advice        string                                // see Config.Advice
	lastHandshake func(session int64) (time.Time, bool) // see Config.LastHandshake
	resumption    resumption                            // used if that is nil
}

// Learn keeps the shortest session timeout and the longest server tick that the users of
// the connection know: to be notified of a loss too early is the lesser evil. Either is 0
// if it is unknown.
func (c *clock) Learn(timeout func() time.Duration, serverTick time.Duration) {
	known, told := c.timeout(), timeout()
	if told > 0 && (known <= 0 || told < known) {
		c.timeout = timeout
	}
	c.serverTick = max(c.serverTick, serverTick)
}

// Timeout is the session timeout, 0 if it is unknown.
func (c *clock) Timeout() time.Duration { return c.timeout() }

func (c *clock) terms() lossclock.Terms {
	return lossclock.Terms{Timeout: c.timeout(), Tick: c.serverTick}
}

// Now is the time on the loss clock's Timeline.
func (c *clock) Now() time.Time {
	now := time.Now()
	return c.timeline.At(now, c.wall(now))
}

// programTime converts at from the Timeline to a time as time.Now returns it, if both go
// on alike.
func (c *clock) programTime(at time.Time) time.Time {
	now := time.Now()
	return at.Add(now.Sub(c.timeline.At(now, c.wall(now))))
}

// Asked records a request that may be a contact.
func (c *clock) Asked() { c.lossClock.Ask(c.terms()) }

// Heard records a contact that was answered just now.
func (c *clock) Heard(session int64, sent time.Time) {
	answered := c.Now()
	c.lossClock.Note(c.terms(), session, c.timeline.Earliest(sent), answered)
}

// goodUntil is until when a session can be relied on; false if that is not known.
func (c *clock) goodUntil(session int64) (time.Time, bool) {
	return c.lossClock.GoodUntil(c.terms(), session, c.handshake(session))
}

// outlasts reports whether new evidence will most likely come in time for a hold with
// that margin.
func (c *clock) outlasts(session int64, margin time.Duration) bool {
	return c.lossClock.Outlasts(c.terms(), session, c.handshake(session), margin)
}

// A resumption dates the last handshake of a *zk.Conn, which does not tell of handshakes:
// it began after the connection was seen to be down, since no handshake was under way
// then. Without it, a session that was reset twice within a few seconds would have no
// evidence but its next proved contact. A gap that nobody sees dates nothing.
type resumption struct {
	down    time.Time // when that was last seen; zero if the connection was up since
	session int64     // of the last handshake
	began   time.Time // at the earliest; zero: it is not known
}

// handshake is when the last handshake of a session began, zero if that is unknown.
func (c *clock) handshake(session int64) time.Time {
	if c.lastHandshake == nil {
		if c.resumption.session == session {
			return c.resumption.began
		}
		return time.Time{}
	}
	at, ok := c.lastHandshake(session)
	if !ok {
		return time.Time{}
	}
	return c.timeline.Earliest(at)
}

// SawDown records that the connection was seen to be down, at a time of Now that was read
// before. It is for a connection that does not tell of handshakes.
func (c *clock) SawDown(now time.Time) { c.resumption.down = now }

// SawUp records that the connection was seen to be up, with that session.
func (c *clock) SawUp(session int64) {
	if r := &c.resumption; !r.down.IsZero() { // else the handshake is the one before
		*r = resumption{session: session, began: r.down}
	}
}

// A loss is why a hold is lost, and what the clock knew by then: for how long ZooKeeper
// was silent, and by which session timeout that was judged.
type loss struct {
	cause  error // outcome.ErrSessionEnded, outcome.ErrOutOfTouch or outcome.ClosedError
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
		margin, longest, terms.Timeout, lossclock.TimeoutFor(margin)))
}

// explain adds to cause what is known of the session's contacts, and the margin.
func (c *clock) explain(cause error, session int64, margin time.Duration) error {
	now, terms := c.Now(), c.terms()
	ago := func(t time.Time) time.Duration { return rounded(now.Sub(t)) }
	last, detail := c.lossClock.Last(session), ""
	switch {
	case last.IsZero(): // nothing is known
		return cause
	case terms.Timeout <= 0:
		detail = fmt.Sprintf("no response for %v; its session timeout is unknown: %s",
			ago(last), c.advice)
	case errors.Is(cause, outcome.ErrOutOfTouch):
		// The last response may be younger than what counts: a follower answers, too.
		known := "its leader may not have confirmed any request"
		counts := c.lossClock.Reported(terms, session, c.handshake(session))
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

// rounded is d as people want to read it: to milliseconds, or tenths of a second.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
