package zkconn

import (
	"time"

	"github.com/zkrecipes/recipes/internal/reliance"
)

// Track takes note that the znode at path is e's, in the given ZooKeeper session, until
// Untrack.
func (s *Conn) Track(path string, session int64, e reliance.Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Track(path, session, e)
}

// Untrack is documented at Track.
func (s *Conn) Untrack(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Untrack(path)
}

// Ephemeral returns the znode at path, nil where it is none of this process.
func (s *Conn) Ephemeral(path string) reliance.Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Ephemeral(path)
}

// EphemeralsAt returns the znode at path and those below it, as far as they are of this
// process.
func (s *Conn) EphemeralsAt(path string) []reliance.Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.EphemeralsAt(path)
}

// Hold is [reliance.Ledger.Hold].
func (s *Conn) Hold(path string, margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, err := s.ledger.Hold(path, margin)
	s.heartbeat.lookBy(until)
	return err
}

// Rely is [reliance.Ledger.Rely].
func (s *Conn) Rely(path string, e reliance.Ephemeral, margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, err := s.ledger.Rely(path, e, margin)
	s.heartbeat.lookBy(until)
	return err
}

// Forgo undoes Rely.
func (s *Conn) Forgo(e reliance.Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Forgo(e)
}

// Waive takes the margin off the ephemeral at path: those who rely on it have their own.
func (s *Conn) Waive(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Waive(path)
}

// CheckMargin returns an error, which says what to do, if a hold with a loss margin can
// never be relied on.
func (s *Conn) CheckMargin(margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.CheckMargin(margin)
}

// After calls f once, when d has passed, with no mutex held, unless stop was called
// before. A call that is under way is not waited for by stop. f is called by the tick, so
// it must not wait for anything. Whoever calls After has the Conn in use until then:
// without users there is no tick.
func (s *Conn) After(d time.Duration, f func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.ledger.Set(d, f)
	s.heartbeat.lookBy(a.At())
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ledger.Stop(a)
	}
}

// lookBy makes the next look no later than at; a zero time is no matter.
func (h *heartbeat) lookBy(at time.Time) {
	if h.timer != nil && !at.IsZero() && at.Before(h.next) {
		h.next = at
		h.timer.Reset(at.Sub(h.s.ledger.Now()))
	}
}

// tellLosses tells each ephemeral that is lost. That is judged anew for each: what the
// tick has seen may be of a session, or of an outage, that has ended since. Whose session
// has ended comes first: no contact can save it.
func (s *Conn) tellLosses() {
	s.tell((*reliance.Ledger).Ended)
	s.tell((*reliance.Ledger).Suspended)
}

// tell gives those notices.
func (s *Conn) tell(which func(*reliance.Ledger) []reliance.Notice) {
	s.mu.Lock()
	notices := which(&s.ledger)
	s.mu.Unlock()
	for _, n := range notices { // without mu: an Ephemeral has locks of its own
		n.Of.SessionEnded(n.Cause)
	}
}

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
