package session

import "time"

// WatchesKept tells how many watches s remembers.
func (s *Session) WatchesKept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

// MoveWall moves the wall clock, as if the monotonic one had stood still, or it had been set.
func (s *Session) MoveWall(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heartbeat.wall = func(now time.Time) time.Time { return wallClock(now).Add(by) }
}
