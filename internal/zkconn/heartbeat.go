package zkconn

import "time"

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

// interval is the longest time between two ticks: the share of a session that is lost to
// whoever has to notice what the client does not tell.
func (h *heartbeat) interval() time.Duration {
	if t := h.s.ledger.Timeout(); t > 0 {
		return max(min(tickEvery, t/16), time.Millisecond)
	}
	return tickEvery
}
