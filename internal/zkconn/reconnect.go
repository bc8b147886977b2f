package zkconn

import "github.com/go-zookeeper/zk"

// status returns what the connection shows just now.
func (s *Conn) status() connState {
	server := s.server() // first: it may change from now on
	now := connState{
		session:   s.conn.SessionID(),
		connected: s.conn.State() == zk.StateHasSession,
	}
	if s.lastHandshake == nil {
		if now.connected {
			now.server = server
		}
		return now
	}
	if at, ok := s.lastHandshake(now.session); ok {
		now.handshake = at
	}
	return now
}

// Reconnected is closed when the connection, seen to be away after this call, is back. It
// looks: that the connection is back already need not have been seen before.
func (s *Conn) Reconnected() <-chan struct{} {
	now := s.status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawLocked(now)
	return s.reconnects.next
}

// sawLocked takes note of what a look has shown.
func (s *Conn) sawLocked(now connState) {
	s.reconnects.observe(now)
	s.lookDown()
}

// AwaySince looks at the connection and tells whether it was away since reconnected, of
// [Conn.Reconnected], was got. What was missed meanwhile the client tells in any
// order, and before the next tick: so who draws a conclusion from one event and not
// another asks here first. A *zk.Conn that lost no request does not tell.
func (s *Conn) AwaySince(reconnected <-chan struct{}) bool {
	now := s.status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawLocked(now)
	return isDone(reconnected)
}

// Epoch looks at the connection and returns how often it has been away. What was learned
// in one epoch from watches that are pending counts in that one only; see
// [Conn.AwaySince].
func (s *Conn) Epoch() uint64 {
	now := s.status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawLocked(now)
	return s.reconnects.epoch
}

// Reconnects is how often the connection was seen to be away. What only counts as a
// reconnect does not count here; see reconnects.blind.
func (s *Conn) Reconnects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconnects.times
}

// lookDown looks at the connection. It is called with mu held, so that what is seen is
// in order: a *zk.Conn reads its state without a lock. Another Client may play an outage,
// after which there is no handshake.
func (s *Conn) lookDown() {
	if !s.plain {
		return
	}
	now := s.ledger.Now() // before the state, which may change
	switch s.conn.State() {
	case zk.StateDisconnected, zk.StateConnecting:
		s.ledger.SawDown(now)
	case zk.StateHasSession:
		s.ledger.SawUp(s.conn.SessionID())
	}
}
