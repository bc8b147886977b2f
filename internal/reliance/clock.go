package reliance

import (
	"time"

	"github.com/zkrecipes/recipes/internal/lossclock"
)

// A clock knows how long a session of its connection can be relied on. The judgement is
// the loss clock's; here is what it is given, by whom it is known.
type clock struct {
	evidence lossclock.Clock
	timeline lossclock.Timeline
	wall     func(now time.Time) time.Time // the wall clock of a reading

	timeout       func() time.Duration                  // see Learn
	serverTick    time.Duration                         // see Learn
	advice        string                                // see Config.Advice
	lastHandshake func(session int64) (time.Time, bool) // see Config.LastHandshake
	resumption    resumption                            // where there is none
}

// Learn keeps the shortest session timeout and the longest server tick that the users of
// the connection know: to be told of a loss too early is the lesser evil. Either is 0
// where it is unknown.
func (c *clock) Learn(timeout func() time.Duration, serverTick time.Duration) {
	known, told := c.timeout(), timeout()
	if told > 0 && (known <= 0 || told < known) {
		c.timeout = timeout
	}
	c.serverTick = max(c.serverTick, serverTick)
}

// Timeout is the session timeout, 0 where it is unknown.
func (c *clock) Timeout() time.Duration { return c.timeout() }

func (c *clock) terms() lossclock.Terms {
	return lossclock.Terms{Timeout: c.timeout(), Tick: c.serverTick}
}

// Now is the time on the loss clock's line.
func (c *clock) Now() time.Time {
	now := time.Now()
	return c.timeline.At(now, c.wall(now))
}

// Resume begins the time in which there is somebody who may ask.
func (c *clock) Resume() { c.evidence.Resume(c.Now()) }

// Idle ends it.
func (c *clock) Idle() { c.evidence.Idle(c.Now()) }

// Asked takes note of a request that may be a contact.
func (c *clock) Asked() { c.evidence.Ask(c.terms()) }

// Heard takes note of a contact that was answered just now.
func (c *clock) Heard(session int64, sent time.Time) {
	answered := c.Now()
	c.evidence.Note(c.terms(), session, c.timeline.Before(sent), answered)
}

// goodUntil is until when a session can be relied on; false where that is not known.
func (c *clock) goodUntil(session int64) (time.Time, bool) {
	return c.evidence.GoodUntil(c.terms(), session, c.handshake(session))
}

// outlasts tells whether new evidence will most likely come in time for one that is told
// of silence by margin earlier.
func (c *clock) outlasts(session int64, margin time.Duration) bool {
	return c.evidence.Outlasts(c.terms(), session, c.handshake(session), margin)
}

// A resumption dates the last handshake of a *zk.Conn, which does not tell of them: it
// began after the connection was seen to be down, and so without one under way. A gap
// that nobody sees dates nothing.
type resumption struct {
	down    time.Time // when that was seen last, if no handshake was since; else zero
	session int64     // the last handshake's
	began   time.Time // at the earliest; zero: that is not known
}

// handshake is when the last handshake of a session began, zero where that is unknown.
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
	return c.timeline.Before(at)
}

// SawDown takes note that the connection is seen to be down, at a time of Now that was
// read before. It is for a connection that does not tell of handshakes.
func (c *clock) SawDown(now time.Time) { c.resumption.down = now }

// SawUp takes note that it is seen to be up, with that session.
func (c *clock) SawUp(session int64) {
	if r := &c.resumption; !r.down.IsZero() {
		*r = resumption{session: session, began: r.down}
	}
}
