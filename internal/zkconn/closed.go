package zkconn

import "github.com/zkrecipes/recipes/internal/outcome"

// ConnClosed takes note that the connection was closed: every ephemeral is lost, every
// wait ends. When it returns they have been told. So a Client that calls it before it
// ends its session (Config.WhenClosed) lets no other have a lock before its holder here
// knows.
func (s *Conn) ConnClosed() {
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return
	}
	close(s.closed)
	s.mu.Unlock()
	s.tell(func(t *tracked) error {
		return s.clock.explain(outcome.ClosedError{}, t.session, 0)
	})
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s.forgetIfIdleLocked()
}
