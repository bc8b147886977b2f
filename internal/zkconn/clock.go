package zkconn

import (
	"time"

	"github.com/zkrecipes/recipes/internal/lossclock"
)

// A clock knows how long a session of its connection can be relied on. The judgement is
// the loss clock's; here is what it is given, by whom it is known. It is guarded by
// Conn.mu.
type clock struct {
	evidence lossclock.Clock
	timeline lossclock.Timeline
	wall     func(now time.Time) time.Time // the wall clock of a reading

	timeout       func() time.Duration                  // see Config.Timeout
	advice        string                                // see Config.Advice
	serverTick    time.Duration                         // see Config.ServerTick
	lastHandshake func(session int64) (time.Time, bool) // the Conn's
	resumption    resumption                            // where there is none
}

// wallClock is what a reading of the clock says without its monotonic part.
func wallClock(now time.Time) time.Time { return now.Round(0) }

// learn keeps the shortest timeout and the longest tick that the connection's users know:
// to be told of a loss too early is the lesser evil.
func (c *clock) learn(cfg Config) {
	known, told := c.timeout(), cfg.Timeout()
	if told > 0 && (known <= 0 || told < known) {
		c.timeout = cfg.Timeout
	}
	c.serverTick = max(c.serverTick, cfg.ServerTick)
}

func (c *clock) terms() lossclock.Terms {
	return lossclock.Terms{Timeout: c.timeout(), Tick: c.serverTick}
}

// now is the time on the loss clock's line.
func (c *clock) now() time.Time {
	now := time.Now()
	return c.timeline.At(now, c.wall(now))
}

// resume and idle begin and end the time in which there is somebody who may ask.
func (c *clock) resume() { c.evidence.Resume(c.now()) }
func (c *clock) idle()   { c.evidence.Idle(c.now()) }

// ask takes note of a request that may be a contact.
func (c *clock) ask() { c.evidence.Ask(c.terms()) }

// note takes note of a contact that was answered just now.
func (c *clock) note(session int64, sent time.Time) {
	answered := c.now()
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

// nextSync is when the next heartbeat is due, where the last one was sent at lastSync and
// something depends on the session, or not.
func (c *clock) nextSync(session int64, lastSync time.Time, needed bool) time.Time {
	return c.evidence.NextSync(c.terms(), session, c.handshake(session), lastSync, needed)
}

// A resumption dates the last handshake of a *zk.Conn, which does not tell of them: it
// began after the connection was seen to be down, and so without one under way. A gap
// that nobody sees dates nothing. It is guarded by Conn.mu.
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
