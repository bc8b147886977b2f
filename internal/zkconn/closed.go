package zkconn

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// ErrClosed says that the connection was closed by its owner: nothing will ever be heard
// of it again.
var ErrClosed = errors.New("the connection was closed by its owner")

// closedError is what callers are told: it matches zk.ErrConnectionClosed too, which they
// know.
type closedError struct{}

func (closedError) Error() string   { return ErrClosed.Error() }
func (closedError) Unwrap() []error { return []error{ErrClosed, zk.ErrConnectionClosed} }

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
	s.tell(func(t *tracked) error { return s.clock.explain(closedError{}, t.session, 0) })
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s.forgetIfIdleLocked()
}

// Closed is closed once the connection is known to be closed by its owner.
func (s *Conn) Closed() <-chan struct{} { return s.closed }

func (s *Conn) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

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

// A suspicion that the connection was closed lasts for as long as every call fails as on
// a closed one. It is guarded by Conn.mu.
type suspicion struct {
	since time.Time // zero: there is none
}

func (p *suspicion) raised() bool { return !p.since.IsZero() }

// note takes note of the outcome of a call.
func (p *suspicion) note(err error, now time.Time) {
	switch {
	case !errors.Is(err, zk.ErrConnectionClosed):
		p.since = time.Time{}
	case !p.raised():
		p.since = now
	}
}

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
			return s.saidClosed() ||
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
	if t := s.clock.timeout(); t > 0 {
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
