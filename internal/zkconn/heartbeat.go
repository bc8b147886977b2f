package zkconn

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// A heartbeat keeps the clock going while the Conn has users: where no contact comes
// by itself it makes one. Its tick finds out what nobody tells, a loss by silence above
// all, since the client speaks up only when the connection is back. It is guarded by
// Conn.mu.
type heartbeat struct {
	s        *Conn
	timer    *time.Timer // runs tick; nil where there are no users
	syncs    int         // how many are under way
	lastSync time.Time   // when the last one was sent, whatever came of it
	next     time.Time   // when the timer fires
}

// tickEvery is how often the client's state is looked at; this asks nothing of ZooKeeper.
const tickEvery = 100 * time.Millisecond

// syncsAtMost is how many syncs may be under way: more than there are while answers take
// as long as a hold survives, so that no more is sent to a server that is mute.
const syncsAtMost = 20

// start begins anew: nobody has looked, or asked for anything, since the last user left.
// What was learned before that may rely on the connection not having been away since: it
// counts as away where no handshake tells.
func (h *heartbeat) start() {
	s, seen := h.s, h.s.status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.availability.hear(time.Now())
	s.reconnects.blind = s.lastHandshake == nil
	s.sawLocked(seen)
	s.ledger.Resume()
	h.next = s.ledger.Now().Add(h.interval())
	h.timer = time.AfterFunc(h.interval(), h.tick)
}

func (h *heartbeat) stop() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.s.ledger.Idle()
	stop(&h.timer)
}

// tick is run by the timer, which it arms again.
func (h *heartbeat) tick() {
	s, seen := h.s, h.s.status()
	s.mu.Lock()
	if h.timer == nil { // stopped while the timer fired
		s.mu.Unlock()
		return
	}
	s.sawLocked(seen)
	now := s.ledger.Now()
	due := h.nextSync(seen.session)
	send := h.maySync(seen.connected) && (s.suspicion.raised() || !now.Before(due))
	if send {
		h.syncs++
		h.lastSync = now
		due = h.nextSync(seen.session)
	}
	wait := h.wait(now, seen.session, due)
	h.next = now.Add(wait)
	h.timer.Reset(wait)
	rung := s.ledger.Due(now)
	s.mu.Unlock()

	// On this goroutine: the next tick may well run beside it, and being told twice is no
	// harm. The sync may hang, so it has its own.
	if !seen.connected && s.SaidClosed() {
		s.ConnClosed()
	}
	s.tellLosses()
	for _, f := range rung {
		f()
	}
	if send {
		go h.sync()
	}
}

// maySync tells whether another sync may be sent. Slow answers do not keep the next one
// waiting: that would make the evidence older by as much. Without a connection one tells
// all there is to know. A suspicion does not wait for the time of the next: who waits on
// a closed connection waits until it is proved.
func (h *heartbeat) maySync(connected bool) bool {
	more := connected && !h.s.suspicion.raised() && h.syncs < syncsAtMost
	return h.syncs == 0 || more
}

// sync makes the heartbeat's request, and finds out by it when the connection was closed.
func (h *heartbeat) sync() {
	if h.s.probe() {
		h.s.ConnClosed()
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.syncs--
}

func (h *heartbeat) nextSync(session int64) time.Time {
	return h.s.ledger.NextSync(session, h.lastSync)
}

// wait is how long after now to look again: when a sync is due, an alarm rings, or a hold
// is lost.
func (h *heartbeat) wait(now time.Time, session int64, due time.Time) time.Duration {
	wait := h.interval()
	if until := due.Sub(now); until > 0 {
		wait = min(wait, until)
	}
	if next, ok := h.s.ledger.Next(session, now); ok {
		wait = min(wait, next.Sub(now))
	}
	return wait
}

// lookBy makes the next look no later than at; a zero time is no matter.
func (h *heartbeat) lookBy(at time.Time) {
	if h.timer != nil && !at.IsZero() && at.Before(h.next) {
		h.next = at
		h.timer.Reset(at.Sub(h.s.ledger.Now()))
	}
}

// interval is the longest time between two ticks: the share of a session that is lost to
// whoever has to notice what the client does not tell.
func (h *heartbeat) interval() time.Duration {
	if t := h.s.ledger.Timeout(); t > 0 {
		return max(min(tickEvery, t/16), time.Millisecond)
	}
	return tickEvery
}

// A suspicion that the connection was closed lasts for as long as every call fails as on
// a closed one. It is guarded by Conn.mu.
type suspicion struct {
	since time.Time // zero: there is none
}

func (p *suspicion) raised() bool { return !p.since.IsZero() }

// note takes note of the outcome of a call.
func (p *suspicion) note(err error, now time.Time) {
	switch {
	case !errors.Is(err, zk.ErrConnectionClosed):
		p.since = time.Time{}
	case !p.raised():
		p.since = now
	}
}

// *zk.Conn does not tell that its owner has closed it: every call fails at once, as calls
// do that a breaking connection interrupts. But while a connection is away calls wait. So
// many that fail in less time than a reconnect takes prove it, if the client has given up
// its session as well. If not, it may be ending against a server that does not answer;
// then that has to last, sync after sync.
//
// Of what stands before a client nothing of the kind is known: it may play an outage, in
// which every call fails at once. So the word of the client is waited for, zk.ErrClosing.
// Only where it says StateDisconnected all the time, which an outage shows for moments,
// it is taken for closed after so long that a session would have ended.
const (
	probes       = 100
	probesWithin = 10 * time.Millisecond
	suspectFor   = 3 * time.Second

	wrapperSuspectFor = 10 * time.Second // or T, if that is longer
	longestTimeout    = 40 * time.Second // that servers grant by default, for T unknown
)

// probe makes the sync of the heartbeat, or as many as it takes to tell that the
// connection was closed. It makes just one while the client may still write: requests
// behind Close, one of which then fails to be written, can leave the client's loop stuck
// for ever.
func (s *Conn) probe() (closed bool) {
	began := time.Now()
	for range probes {
		err := s.Sync("/")
		switch {
		case !errors.Is(err, zk.ErrConnectionClosed):
			return false
		case time.Since(began) > probesWithin: // it had to wait, so it was not closed
			s.clearSuspicion()
			return false
		}
		disconnected := s.conn.State() == zk.StateDisconnected
		switch {
		case !s.plain:
			return s.SaidClosed() ||
				disconnected && s.suspectedFor() >= s.wrapperPatience()
		case !disconnected:
			return s.suspectedFor() >= suspectFor
		}
	}
	return true
}

// wrapperPatience is for how long a connection of no known kind may seem to be closed.
func (s *Conn) wrapperPatience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ledger.Timeout(); t > 0 {
		return max(t, wrapperSuspectFor)
	}
	return longestTimeout
}

// suspectedFor tells for how long the suspicion has lasted.
func (s *Conn) suspectedFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.suspicion.raised() {
		return 0
	}
	return time.Since(s.suspicion.since)
}

func (s *Conn) clearSuspicion() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspicion = suspicion{}
}
