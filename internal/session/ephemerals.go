package session

import (
	"errors"
	"fmt"
)

// An Ephemeral is a znode of this process that lives in the session.
type Ephemeral interface {
	// SessionEnded tells that the znode's session has ended or, of a held one only, that
	// it cannot be relied on any more. It may be called more than once, and from any
	// goroutine.
	SessionEnded(cause error)
}

// ephemerals are the znodes that are tracked, by path: whoever finds another's znode in a
// queue asks by its path whether it is one of this process, which needs no watch. They
// are guarded by Session.mu.
type ephemerals map[string]*tracked

type tracked struct {
	Ephemeral
	session int64 // that the znode lives in
	held    bool  // it guards something, so that silence is a loss
}

// Track takes note that the znode at path is e's, in the given ZooKeeper session, until
// Untrack.
func (s *Session) Track(path string, session int64, e Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ephemerals[path] = &tracked{Ephemeral: e, session: session}
}

// Untrack is documented at Track.
func (s *Session) Untrack(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ephemerals, path)
}

// Ephemeral returns the znode at path, nil where it is none of this process.
func (s *Session) Ephemeral(path string) Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ephemerals[path]; t != nil {
		return t.Ephemeral
	}
	return nil
}

// Hold marks the ephemeral at path as held, which it is only if its session can be relied
// on now: a mere notification, that another has gone, may have been under way for long.
// Judging and marking are one step under mu, so that a tick that comes right behind finds
// it held, and tells of its loss.
func (s *Session) Hold(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.ephemerals[path]
	if t == nil { // untracked meanwhile, by whoever told of the loss
		return ErrSessionEnded
	}
	// Even where it is good now, by a handshake: no proof would come after that.
	if terms := s.clock.terms(); !terms.Workable() {
		return fmt.Errorf("%w: a session timeout of %v, with a server tick of %v; "+
			"it takes %v, and servers grant two ticks by default", ErrTooShort,
			terms.Timeout, terms.Tick, terms.LeastTimeout())
	}
	if err := s.goodLocked(t.session); err != nil {
		return err
	}
	t.held = true
	return nil
}

// goodLocked tells whether a hold in session can be relied on now, and if not, why.
func (s *Session) goodLocked(session int64) error {
	now := s.clock.now()
	until, ok := s.clock.goodUntil(session)
	switch {
	case s.isClosed():
		return closedError{}
	case s.conn.SessionID() != session:
		return s.clock.explain(ErrSessionEnded, session)
	case !ok || !now.Before(until):
		return s.clock.explain(ErrSuspended, session)
	}
	return nil
}

// tellLosses tells each ephemeral that is lost. That is judged anew for each: what the
// tick has seen may be of a session, or of an outage, that has ended since. Whose session
// has ended comes first: no contact can save it.
func (s *Session) tellLosses() {
	s.tell(func(t *tracked) error {
		if s.conn.SessionID() != t.session {
			return s.clock.explain(ErrSessionEnded, t.session)
		}
		return nil
	})
	s.tell(func(t *tracked) error {
		if err := s.goodLocked(t.session); t.held && errors.Is(err, ErrSuspended) {
			return err
		}
		return nil
	})
}

// tell tells those ephemerals for which why, called with mu held, has a cause.
func (s *Session) tell(why func(*tracked) error) {
	type loss struct {
		of    Ephemeral
		cause error
	}
	var losses []loss
	s.mu.Lock()
	for _, t := range s.ephemerals {
		if cause := why(t); cause != nil {
			losses = append(losses, loss{t.Ephemeral, cause})
		}
	}
	s.mu.Unlock()
	for _, l := range losses { // without mu: an Ephemeral has locks of its own
		l.of.SessionEnded(l.cause)
	}
}
