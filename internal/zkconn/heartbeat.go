package zkconn

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// A heartbeat keeps the loss clock going while the Conn has users: if nobody makes a
// contact, it makes one. Its tick finds out what nobody reports, above all that the
// session is suspended: the client says so only once the connection is back. It is
// guarded by Conn.mu.
type heartbeat struct {
	conn     *Conn
	timer    *time.Timer // runs tick; nil if there are no users
	syncs    int         // how many of the tick's are under way
	lastSync time.Time   // when the last sync was sent, of any kind, whatever its outcome
	next     time.Time   // when the timer fires
}

// tickEvery is how often the client's state is looked at, which sends no request.
const tickEvery = 100 * time.Millisecond

// syncsAtMost is how many syncs of the tick may be under way: more than there are while
// answers take as long as a hold survives, so that a mute server gets no more.
const syncsAtMost = 20

// start starts over: nobody has looked, or asked for anything, since the last user left.
func (h *heartbeat) start() {
	c := h.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.availability.hear(time.Now())
	// What was learned before may rely on the connection not having been away since. If
	// no handshake tells, the pause counts as an absence.
	c.reconnects.blind = c.cfg.LastHandshake == nil
	c.lookLocked()
	h.setNextLocked(c.ledger.Now().Add(h.intervalLocked()))
	c.ledger.Resume()
	h.timer = time.AfterFunc(h.intervalLocked(), h.tick)
}

func (h *heartbeat) stop() {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	h.conn.ledger.Idle()
	stop(&h.timer)
}

// tick is run by the timer, which it sets again.
func (h *heartbeat) tick() {
	c := h.conn
	c.mu.Lock()
	if h.timer == nil { // stopped while it fired
		c.mu.Unlock()
		return
	}
	seen := c.lookLocked()
	now := c.ledger.Now()
	due := c.ledger.NextSync(seen.session, h.lastSync)
	// A suspicion does not wait until the next sync is due: callers that wait on a closed
	// connection wait until that is proved. Nor does a *zk.Conn that is away: only a
	// request shows that it was closed, and an open one sends none meanwhile.
	away := !seen.connected()
	suspect := c.suspicion.raised() || c.cfg.Plain && away
	// While nobody needs proof, only a connection that may be closed is asked after.
	rests := c.ledger.Rests() && (!away || c.TellsClose())
	send := h.maySyncLocked(seen) && (suspect || !rests && !now.Before(due))
	if send {
		h.syncs++
		h.lastSync = now
		due = c.ledger.NextSync(seen.session, now)
	}
	wait := h.waitLocked(now, seen.session, due)
	h.setNextLocked(now.Add(wait))
	h.timer.Reset(wait)
	rung := c.ledger.Due(now)
	c.mu.Unlock()

	// What calls others is done without the mutex, on this goroutine. The next tick may
	// run concurrently: it is safe to notify an ephemeral twice. A sync may stay
	// unanswered, so it has a goroutine of its own.
	if seen.state != zk.StateHasSession && c.saidClosed() {
		c.ConnClosed()
	}
	c.tellLosses()
	if send {
		go h.sync()
	}
	for _, f := range rung { // the last may be a log handler's, which may not return
		f()
	}
}

// takeDueSyncLocked reports whether the time at which a sync is due has come. If so, the
// sync counts as sent, and the caller sends it.
func (h *heartbeat) takeDueSyncLocked(at time.Time) bool {
	now := h.conn.ledger.Now()
	if now.Before(at) {
		return false
	}
	h.lastSync = now
	return true
}

// maySyncLocked reports whether another sync may be sent.
func (h *heartbeat) maySyncLocked(seen connState) bool {
	// Slow answers do not delay the next sync: that would make the evidence older by as
	// much. While the connection is away, or may be closed, one sync tells all there is
	// to know.
	usual := seen.connected() && !h.conn.suspicion.raised()
	return h.syncs == 0 || usual && h.syncs < syncsAtMost
}

// waitLocked is how long after now to look again: when a sync is due, an alarm rings, or
// a hold is lost.
func (h *heartbeat) waitLocked(
	now time.Time, session int64, due time.Time,
) time.Duration {
	wait := h.intervalLocked()
	if until := due.Sub(now); until > 0 { // a sync that is due may have to wait its turn
		wait = min(wait, until)
	}
	if next, ok := h.conn.ledger.Next(session, now); ok {
		wait = min(wait, next.Sub(now))
	}
	return wait
}

// setNextLocked records when the timer fires next.
func (h *heartbeat) setNextLocked(at time.Time) {
	h.next = at
	h.conn.ledger.LookBy(at)
}

// lookEarlierLocked makes the next look no later than at, unless that is zero.
func (h *heartbeat) lookEarlierLocked(at time.Time) {
	if h.timer != nil && !at.IsZero() && at.Before(h.next) {
		h.next = at
		h.timer.Reset(at.Sub(h.conn.ledger.Now()))
	}
}

// intervalLocked is the longest time between two ticks. That much of a session is lost to
// a user who depends on what the client does not tell.
func (h *heartbeat) intervalLocked() time.Duration {
	if t := h.conn.ledger.Timeout(); t > 0 {
		return max(min(tickEvery, t/16), time.Millisecond)
	}
	return tickEvery
}

// sync makes the heartbeat's request, and finds out by it when the connection was closed.
func (h *heartbeat) sync() {
	if h.probe() {
		h.conn.ConnClosed()
	}
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	h.syncs--
}

const (
	// Of a *zk.Conn: so many calls that fail in so little time, less than a reconnect
	// takes, prove that it was closed.
	probes       = 100
	probesWithin = 10 * time.Millisecond
	// suspectFor is for how long a *zk.Conn may fail calls although it shows a session,
	// before it counts as closed.
	suspectFor = 3 * time.Second

	// A wrapper may seem to be closed for T, if that is known, and at least ten seconds;
	// otherwise for the longest session timeout that servers grant by default.
	wrapperSuspectFor = 10 * time.Second
	longestTimeout    = 40 * time.Second
)

// probe makes the sync of the heartbeat, or as many as it takes to tell that the
// connection was closed: a *zk.Conn does not say so. On one that was closed, each call
// fails at once, but so do calls that a breaking connection interrupts.
func (h *heartbeat) probe() (closed bool) {
	c, began := h.conn, time.Now()
	for range probes {
		err := c.Sync("/")
		switch {
		case !errors.Is(err, zk.ErrConnectionClosed):
			return false
		case time.Since(began) > probesWithin:
			// It waited for something, as calls do while a connection is away.
			c.mu.Lock()
			c.suspicion = suspicion{}
			c.mu.Unlock()
			return false
		}
		// Only a client that has dropped its session is asked again at once. While it
		// may still write, a request that follows on Close can leave its loop stuck
		// forever.
		disconnected := c.client.State() == zk.StateDisconnected
		lasts, wrapperMay := h.suspected()
		switch {
		case !c.cfg.Plain:
			// A wrapper may simulate an outage in which each call fails at once. So the
			// client has to say that it was closed, or to be disconnected, which an
			// outage shows for moments only, for as long as a session lasts.
			return c.saidClosed() || disconnected && lasts >= wrapperMay
		case !disconnected:
			// Close may be waiting for a server that does not answer. Then this lasts.
			return lasts >= suspectFor
		}
	}
	return true
}

// suspected returns for how long the connection has seemed to be closed, and for how long
// a wrapper may.
func (h *heartbeat) suspected() (lasts, wrapperMay time.Duration) {
	c := h.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspicion.raised() {
		lasts = time.Since(c.suspicion.since)
	}
	if t := c.ledger.Timeout(); t > 0 {
		return lasts, max(t, wrapperSuspectFor)
	}
	return lasts, longestTimeout
}

// A suspicion that the connection was closed lasts for as long as each call fails as it
// would on a closed connection. It is guarded by Conn.mu.
type suspicion struct {
	since time.Time // zero: there is none
}

func (p *suspicion) raised() bool { return !p.since.IsZero() }

// note records the outcome of a call.
func (p *suspicion) note(err error, now time.Time) {
	switch {
	case !errors.Is(err, zk.ErrConnectionClosed):
		p.since = time.Time{}
	case !p.raised():
		p.since = now
	}
}
