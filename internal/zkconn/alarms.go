package zkconn

import "time"

// alarms are what is to be done at a time on the clock's line: by the monotonic clock, or
// by the wall clock where that has moved farther, as on a machine that was suspended.
// They are guarded by Conn.mu.
type alarms map[*alarm]struct{}

// An alarm is one call that is to be made.
type alarm struct {
	at time.Time
	f  func()
}

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

// due takes out what is to be done by now.
func (as alarms) due(now time.Time) (rung []func()) {
	for a := range as {
		if !now.Before(a.at) {
			rung = append(rung, a.f)
			delete(as, a)
		}
	}
	return rung
}
