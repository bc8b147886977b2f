package zkconn

// Note keeps a value for whoever asks for that key.
func (s *Conn) Note(key, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.keep(key, value)
}

// Noted returns the last value that was kept for a key; nil where it is not known.
func (s *Conn) Noted(key any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes.values[key]
}
