package zkconn

import "time"

// Timeout is the session timeout as far as it is known, else 0.
func (s *Conn) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Timeout()
}

// MoveWall moves the wall clock, as if the monotonic one had stood still, or it had been
// set.
func (s *Conn) MoveWall(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall = func(now time.Time) time.Time { return wallClock(now).Add(by) }
}

// KeptWatches returns how many watches s remembers.
func (s *Conn) KeptWatches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shared) + len(s.retired)
}

// Reconnects returns how often the connection was seen to be away.
func (s *Conn) Reconnects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconnects.times
}
