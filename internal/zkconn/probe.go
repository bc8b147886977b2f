package zkconn

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// *zk.Conn does not tell that its owner has closed it: every call fails at once, as calls
// do that a breaking connection interrupts. But while a connection is away calls wait. So
// many that fail in less time than a reconnect takes prove it, if the client has given up
// its session as well. If not, it may be ending against a server that does not answer;
// then that has to last, sync after sync.
//
// Of what stands before a client nothing of the kind is known: it may play an outage, in
// which every call fails at once. So the word of the client is waited for, zk.ErrClosing.
// Only where it says StateDisconnected all the time, which an outage shows for moments,
// it is taken for closed after so long that a session would have ended.
const (
	probes       = 100
	probesWithin = 10 * time.Millisecond
	suspectFor   = 3 * time.Second

	wrapperSuspectFor = 10 * time.Second // or T, if that is longer
	longestTimeout    = 40 * time.Second // that servers grant by default, for T unknown
)

// probe makes the sync of the heartbeat, or as many as it takes to tell that the
// connection was closed. It makes just one while the client may still write: requests
// behind Close, one of which then fails to be written, can leave the client's loop stuck
// for ever.
func (s *Conn) probe() (closed bool) {
	began := time.Now()
	for range probes {
		err := s.Sync("/")
		switch {
		case !errors.Is(err, zk.ErrConnectionClosed):
			return false
		case time.Since(began) > probesWithin: // it had to wait, so it was not closed
			s.clearSuspicion()
			return false
		}
		disconnected := s.conn.State() == zk.StateDisconnected
		switch {
		case !s.plain:
			return s.SaidClosed() ||
				disconnected && s.suspectedFor() >= s.wrapperPatience()
		case !disconnected:
			return s.suspectedFor() >= suspectFor
		}
	}
	return true
}

// wrapperPatience is for how long a connection of no known kind may seem to be closed.
func (s *Conn) wrapperPatience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ledger.Timeout(); t > 0 {
		return max(t, wrapperSuspectFor)
	}
	return longestTimeout
}

// suspectedFor tells for how long the suspicion has lasted.
func (s *Conn) suspectedFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.suspicion.raised() {
		return 0
	}
	return time.Since(s.suspicion.since)
}

func (s *Conn) clearSuspicion() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspicion = suspicion{}
}
