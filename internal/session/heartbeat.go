package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/lossclock"
)

// tickEvery is how often the client's state is looked at; this asks nothing of ZooKeeper.
const tickEvery = 100 * time.Millisecond

// A heartbeat keeps the loss clock going while the Session has users.
type heartbeat struct {
	timer        *time.Timer // nil where there are no users
	clock        lossclock.Clock
	timeline     lossclock.Timeline
	wall         func(now time.Time) time.Time // the wall clock of a reading
	seen         int64                         // the session at the last look
	disconnected bool                          // no session at the last look
	syncing      bool                          // a sync is under way
	lastSync     time.Time                     // when the last sync was sent
}

// wallClock is what a reading of the clock says without its monotonic part.
func wallClock(now time.Time) time.Time { return now.Round(0) }

// nowLocked is the time for the loss clock.
func (s *Session) nowLocked() time.Time {
	now := time.Now()
	return s.heartbeat.timeline.At(now, s.heartbeat.wall(now))
}

// noteContact records that a write or a sync sent at the given time was answered in a
// session.
func (s *Session) noteContact(session int64, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn.SessionID() != session {
		return // another one began meanwhile, and may have its own contact already
	}
	answered := s.nowLocked()
	h := &s.heartbeat
	h.clock.Note(s.termsLocked(), session, h.timeline.Before(sent), answered)
}

func (s *Session) termsLocked() lossclock.Terms {
	return lossclock.Terms{Timeout: s.timeout(), Tick: s.serverTick}
}

// handshakeLocked is when the last handshake of a session began, zero where that is
// unknown.
func (s *Session) handshakeLocked(session int64) time.Time {
	if s.lastHandshake == nil {
		return time.Time{}
	}
	at, ok := s.lastHandshake(session)
	if !ok {
		return time.Time{}
	}
	return s.heartbeat.timeline.Before(at)
}

// goodUntilLocked is until when a session can be relied on; false where that is not
// known.
func (s *Session) goodUntilLocked(session int64) (time.Time, bool) {
	return s.heartbeat.clock.GoodUntil(
		s.termsLocked(), session, s.handshakeLocked(session))
}

// goodLocked tells whether a hold in session can be relied on now, and if not, why.
func (s *Session) goodLocked(session int64) error {
	now := s.nowLocked()
	until, ok := s.goodUntilLocked(session)
	switch {
	case s.isClosed():
		return closedError{}
	case s.conn.SessionID() != session:
		return s.lossLocked(ErrSessionEnded, session)
	case !ok || !now.Before(until):
		return s.lossLocked(ErrSuspended, session)
	}
	return nil
}

// Hold marks the ephemeral at path as held, which it is only if its session can be relied on
// now.
func (s *Session) Hold(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.ephemerals[path]
	if t == nil {
		return ErrSessionEnded
	}
	// Even where it is good now, by a handshake: no proof would come after that.
	if terms := s.termsLocked(); !terms.Workable() {
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

// Timeout is the session timeout as far as it is known, else 0.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout()
}

func (s *Session) startHeartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.heartbeat
	h.seen, h.disconnected = s.conn.SessionID(), s.conn.State() != zk.StateHasSession
	h.timer = time.AfterFunc(s.tickIntervalLocked(), s.tick)
}

func (s *Session) stopHeartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop(&s.heartbeat.timer)
}

func (s *Session) tickIntervalLocked() time.Duration {
	if t := s.timeout(); t > 0 {
		return max(min(tickEvery, t/16), time.Millisecond)
	}
	return tickEvery
}

// tick is run by the timer: it tells the ephemerals that are lost, keeps the
// contact fresh, and arms the timer again.
func (s *Session) tick() {
	session, state := s.conn.SessionID(), s.conn.State()
	s.mu.Lock()
	h := &s.heartbeat
	if h.timer == nil { // stopped while the timer fired
		s.mu.Unlock()
		return
	}
	away := state != zk.StateHasSession
	if s.shookHandsLocked(session) || h.disconnected && !away || h.seen != session {
		close(s.reconnected)
		s.reconnected = make(chan struct{})
	}
	h.disconnected, h.seen = away, session
	now := s.nowLocked()
	due := s.nextSyncLocked(session)
	beat := !h.syncing && (!s.suspectedAt.IsZero() || !now.Before(due))
	if beat {
		h.syncing, h.lastSync = true, now
		due = s.nextSyncLocked(session)
	}
	h.timer.Reset(s.waitLocked(now, session, due))
	s.mu.Unlock()

	s.tellLosses()
	if beat {
		go s.heartbeatSync()
	}
}

func (s *Session) nextSyncLocked(session int64) time.Time {
	h := &s.heartbeat
	return h.clock.NextBeat(s.termsLocked(), session, s.handshakeLocked(session), h.lastSync,
		len(s.ephemerals) > 0)
}

// waitLocked is how long after now to look again: when a beat is due, or a hold is lost.
func (s *Session) waitLocked(now time.Time, session int64, due time.Time) time.Duration {
	wait := s.tickIntervalLocked()
	if until := due.Sub(now); until > 0 {
		wait = min(wait, until)
	}
	if end, ok := s.goodUntilLocked(session); ok && end.After(now) {
		wait = min(wait, end.Sub(now))
	}
	return wait
}

// tellLosses tells each ephemeral that is lost. That is judged anew for each: what the look
// has seen may be of a session, or of an outage, that has ended since.
func (s *Session) tellLosses() {
	s.lose(func(t *tracked) error {
		if s.conn.SessionID() != t.session {
			return s.lossLocked(ErrSessionEnded, t.session)
		}
		return nil
	})
	s.lose(func(t *tracked) error {
		if err := s.goodLocked(t.session); t.held && errors.Is(err, ErrSuspended) {
			return err
		}
		return nil
	})
}

func (s *Session) heartbeatSync() {
	if s.probe() {
		s.ConnClosed()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heartbeat.syncing = false
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
	longestTimeout    = 40 * time.Second // that servers grant by default, where T is unknown
)

// probe makes the sync of the heartbeat, or as many as it takes to tell that the
// connection was closed. It makes just one while the client may still write: requests
// behind Close, one of which then fails to be written, can leave the client's loop stuck
// for ever.
func (s *Session) probe() (closed bool) {
	began := time.Now()
	for range probes {
		err := s.Sync("/")
		switch {
		case !errors.Is(err, zk.ErrConnectionClosed):
			return false
		case time.Since(began) > probesWithin: // it had to wait, which no call on a closed connection has
			s.noteOutcome(nil)
			return false
		}
		disconnected := s.conn.State() == zk.StateDisconnected
		switch {
		case !s.plain:
			return s.saidClosed() || disconnected && s.suspectedFor() >= s.wrapperPatience()
		case !disconnected:
			return s.suspectedFor() >= suspectFor
		}
	}
	return true
}

// wrapperPatience is for how long a connection of no known kind may seem to be closed.
func (s *Session) wrapperPatience() time.Duration {
	if t := s.Timeout(); t > 0 {
		return max(t, wrapperSuspectFor)
	}
	return longestTimeout
}

// suspectedFor tells for how long all calls have failed as on a closed connection.
func (s *Session) suspectedFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspectedAt.IsZero() {
		return 0
	}
	return time.Since(s.suspectedAt)
}

// noteOutcome takes note of calls that a lost connection ended: it may be closed, or be
// back before the next look.
func (s *Session) noteOutcome(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if connectionLost(err) {
		s.heartbeat.disconnected = true
	}
	if !errors.Is(err, zk.ErrConnectionClosed) {
		s.suspectedAt = time.Time{}
	} else if s.suspectedAt.IsZero() {
		s.suspectedAt = time.Now()
	}
}
