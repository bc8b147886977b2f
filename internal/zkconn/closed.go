package zkconn

import "github.com/zkrecipes/recipes/internal/reliance"

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
	s.ledger.Close()
	s.mu.Unlock()
	s.tell((*reliance.Ledger).Closed)
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s.forgetIfIdleLocked()
}
