package zkconn

import "time"

// After calls f once, when d has passed, with no mutex held, unless stop was called
// before. A call that is under way is not waited for by stop. f is called by the tick, so
// it must not wait for anything. Whoever calls After has the Conn in use until then:
// without users there is no tick.
func (s *Conn) After(d time.Duration, f func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &alarm{s.clock.now().Add(d), f}
	s.alarms[a] = struct{}{}
	s.heartbeat.lookBy(a.at)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.alarms, a)
	}
}

// lookBy makes the next look no later than at.
func (h *heartbeat) lookBy(at time.Time) {
	if h.timer != nil && at.Before(h.next) {
		h.next = at
		h.timer.Reset(at.Sub(h.s.clock.now()))
	}
}
