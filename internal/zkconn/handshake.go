package zkconn

import "github.com/go-zookeeper/zk"

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
