package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// ErrNoAnswer says that ZooKeeper could not be asked.
var ErrNoAnswer = errors.New("no answer from ZooKeeper")

// answerWithin is how long a request may be under way until its connection counts as out
// of touch.
const answerWithin = time.Second

// A touch knows whether ZooKeeper answers, for what callers are told: any answer counts.
// What the leader has heard of, on which holds depend, is the loss clock's.
type touch struct {
	heard time.Time // when the last answer came, or the first user if none has
	asked time.Time // when the first request after that was made; zero: there was none
}

func (t *touch) ask(now time.Time) {
	if t.asked.IsZero() {
		t.asked = now
	}
}

func (t *touch) hear(now time.Time) { *t = touch{heard: now} }

// noteAsked takes note of a request that is about to be made.
func (s *Session) noteAsked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch.ask(time.Now())
}

// noteHeard takes note of an answer.
func (s *Session) noteHeard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch.hear(time.Now())
}

// firstUser begins anew: nobody has asked since the last user left.
func (s *Session) firstUser() {
	s.noteHeard()
	session := s.conn.SessionID()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shookHandsLocked(session)
}

// shookHandsLocked tells whether there was a handshake since the last call: a connection
// can have been away between two looks at its state, with nothing under way that could
// tell. The client sets its watches again, and asks for what was missed: a deletion
// always shows, since the server looks whether the znode is there. A change of data or of
// children shows if it is newer than the last answer that the client had when it set
// them, and that could be one to a request which it had kept, and sent before. So
// everybody who waits had better look. On a bare *zk.Conn, which does not tell of
// handshakes, they look at their next poll.
func (s *Session) shookHandsLocked(session int64) bool {
	if s.lastHandshake == nil {
		return false
	}
	at, ok := s.lastHandshake(session)
	anew := ok && !at.Equal(s.handshakeSeen)
	if ok {
		s.handshakeSeen = at
	}
	return anew
}

// Unavailable tells whether ZooKeeper cannot be asked just now, as far as the connection
// knows: it has no session, or a request is without an answer for a second. The heartbeat
// makes one now and then, so a silent network is noticed a second after it.
func (s *Session) Unavailable() bool {
	if s.conn.State() != zk.StateHasSession {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.touch.asked.IsZero() && time.Since(s.touch.asked) >= answerWithin
}

// NoAnswer returns an ErrNoAnswer of a caller who has asked at the given time: since
// then, or since the last answer to anybody, where that was before.
func (s *Session) NoAnswer(asked time.Time) error {
	s.mu.Lock()
	since := s.touch.heard
	s.mu.Unlock()
	if asked.Before(since) {
		since = asked
	}
	silence := time.Since(since)
	if silence > time.Second {
		silence = silence.Round(time.Millisecond)
	}
	return fmt.Errorf("%w for %v, since %s",
		ErrNoAnswer, silence, since.Format(time.RFC3339))
}
