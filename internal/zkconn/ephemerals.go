package zkconn

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// Track takes note that the znode at path is e's, in the given ZooKeeper session, until
// Untrack.
func (s *Conn) Track(path string, session int64, e Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ephemerals[path] = &tracked{Ephemeral: e, session: session}
}

// Untrack is documented at Track.
func (s *Conn) Untrack(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ephemerals, path)
}

// Ephemeral returns the znode at path, nil where it is none of this process.
func (s *Conn) Ephemeral(path string) Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ephemerals[path]; t != nil {
		return t.Ephemeral
	}
	return nil
}

// EphemeralsAt returns the znode at path and those below it, as far as they are of this
// process.
func (s *Conn) EphemeralsAt(path string) (found []Ephemeral) {
	below := strings.TrimSuffix(path, "/") + "/"
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, t := range s.ephemerals {
		if p == path || strings.HasPrefix(p, below) {
			found = append(found, t.Ephemeral)
		}
	}
	return found
}

// Hold marks the ephemeral at path as held, which it is only if its session can be relied
// on now: a mere notification, that another has gone, may have been under way for long.
// Judging and marking are one step under mu, so that a tick that comes right behind finds
// it held, and tells of its loss. From then on it is told of silence by margin earlier
// than it must be; of several margins for one ephemeral the longest counts. One that is
// not held yet has to wait for word from the server where it would be told although
// nothing is amiss.
func (s *Conn) Hold(path string, margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.ephemerals[path]
	if t == nil { // untracked meanwhile, by whoever told of the loss
		return outcome.ErrSessionEnded
	}
	return s.holdLocked(t, max(margin, t.margin))
}

// Rely is Hold for one of several who rely on the held ephemeral at path, each with a
// margin of its own: e alone is told of silence by its margin earlier, until Forgo.
func (s *Conn) Rely(path string, e Ephemeral, margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.ephemerals[path]
	if t == nil || !t.held {
		return outcome.ErrSessionEnded
	}
	t = &tracked{Ephemeral: e, session: t.session}
	err := s.holdLocked(t, margin)
	if err == nil {
		s.reliers[e] = t
	}
	return err
}

// Forgo undoes Rely.
func (s *Conn) Forgo(e Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reliers, e)
}

// Waive takes the margin off the ephemeral at path: those who rely on it have their own.
func (s *Conn) Waive(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ephemerals[path]; t != nil {
		t.margin = 0
	}
}

func (s *Conn) holdLocked(t *tracked, margin time.Duration) error {
	// Even where it is good now, by a handshake: no proof would come after that.
	if terms := s.clock.terms(); !terms.Workable() {
		return fmt.Errorf("%w: a session timeout of %v, with a server tick of %v; "+
			"at least %v is needed, and servers grant two ticks by default",
			outcome.ErrTooShort, terms.Timeout, terms.Tick, terms.LeastTimeout())
	}
	if err := s.clock.bears(margin); !t.held && err != nil {
		return err
	}
	if err := s.goodLocked(t.session, margin); err != nil {
		return err
	}
	if !t.held && margin > 0 && !s.clock.outlasts(t.session, margin) {
		return s.clock.explain(outcome.ErrSuspended, t.session, margin)
	}
	t.held, t.margin = true, margin
	if until, ok := s.clock.goodUntil(t.session); ok && margin > 0 {
		s.heartbeat.lookBy(until.Add(-margin))
	}
	return nil
}

// CheckMargin returns an error, which says what to do, if a hold with a loss margin can
// never be relied on.
func (s *Conn) CheckMargin(margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.bears(margin)
}

// goodLocked tells whether a hold in session that is told of silence by margin earlier
// can be relied on now, and if not, why.
func (s *Conn) goodLocked(session int64, margin time.Duration) error {
	now := s.clock.now()
	until, ok := s.clock.goodUntil(session)
	switch {
	case s.isClosed():
		return outcome.ClosedError{}
	case s.conn.SessionID() != session:
		return s.clock.explain(outcome.ErrSessionEnded, session, 0)
	case !ok || !now.Before(until.Add(-margin)):
		return s.clock.explain(outcome.ErrSuspended, session, margin)
	}
	return nil
}

// tellLosses tells each ephemeral that is lost. That is judged anew for each: what the
// tick has seen may be of a session, or of an outage, that has ended since. Whose session
// has ended comes first: no contact can save it.
func (s *Conn) tellLosses() {
	s.tell(func(t *tracked) error {
		if s.conn.SessionID() != t.session {
			return s.clock.explain(outcome.ErrSessionEnded, t.session, 0)
		}
		return nil
	})
	s.tell(func(t *tracked) error {
		err := s.goodLocked(t.session, t.margin)
		if t.held && errors.Is(err, outcome.ErrSuspended) {
			return err
		}
		return nil
	})
}

// nextLoss is when the first ephemeral is to be told of silence, if it lasts; false where
// there is nothing to tell.
func (s *Conn) nextLoss(session int64, now time.Time) (at time.Time, ok bool) {
	end, ok := s.clock.goodUntil(session)
	if !ok {
		return at, false
	}
	next := func(margin time.Duration) {
		told := end.Add(-margin)
		if told.After(now) && (at.IsZero() || told.Before(at)) {
			at = told
		}
	}
	next(0)
	for t := range s.trackedLocked() {
		if t.margin > 0 {
			next(t.margin)
		}
	}
	return at, !at.IsZero()
}

// tell tells those ephemerals for which why, called with mu held, has a cause.
func (s *Conn) tell(why func(*tracked) error) {
	type loss struct {
		of    Ephemeral
		cause error
	}
	var losses []loss
	s.mu.Lock()
	for t := range s.trackedLocked() {
		if cause := why(t); cause != nil {
			losses = append(losses, loss{t.Ephemeral, cause})
		}
	}
	s.mu.Unlock()
	for _, l := range losses { // without mu: an Ephemeral has locks of its own
		l.of.SessionEnded(l.cause)
	}
}

// trackedLocked returns those who can be told of a loss: the znodes, and who relies on
// them.
func (s *Conn) trackedLocked() iter.Seq[*tracked] {
	return func(yield func(*tracked) bool) {
		for _, t := range s.ephemerals {
			if !yield(t) {
				return
			}
		}
		for _, t := range s.reliers {
			if !yield(t) {
				return
			}
		}
	}
}
