package session

// WatchesKept tells how many watches s remembers.
func (s *Session) WatchesKept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}
