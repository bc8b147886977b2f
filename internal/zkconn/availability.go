package zkconn

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// ErrNoAnswer says that ZooKeeper could not be asked.
var ErrNoAnswer = errors.New("no response from ZooKeeper")

// answerWithin is how long a request may be under way until ZooKeeper counts as
// unavailable.
const answerWithin = time.Second

// Unavailable tells whether ZooKeeper cannot be asked just now, as far as the connection
// knows: it has no session, or a request is without an answer for a second. The heartbeat
// makes one now and then, so a silent network is noticed a second after it.
func (s *Conn) Unavailable() bool {
	if s.conn.State() != zk.StateHasSession {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.availability.asked
	return !asked.IsZero() && time.Since(asked) >= answerWithin
}

// RoundTrip is what an answer has taken at least, of late, and zero at first. A fast
// answer lowers it at once; it rises slowly.
func (s *Conn) RoundTrip() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.availability.roundTrip
}

// NoAnswer returns an ErrNoAnswer of a caller who has asked at the given time: since
// then, or since the last answer to anybody, where that was before.
func (s *Conn) NoAnswer(asked time.Time) error {
	s.mu.Lock()
	since := s.availability.heard
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
