package session

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// The loss clock. The leader ends a session no earlier than T, the session timeout, after it last heard of it. So a hold is good
// for T after the last request of which the leader surely has heard, by this process's monotonic clock and counted from
// when that was sent. Timing from the moment at which the disconnect was noticed would be late by the silence before it, up to 2/3 T
// (CURATOR-460).
//
// Not every answer tells that the leader has heard of us. A follower answers reads and pings by itself, also for as long as it takes to
// notice that it has lost its leader (syncLimit, five ticks by default). So only writes and syncs are contacts. And even of these the
// leader takes no notice: what keeps a session alive is the follower's report of those it has heard from, when the leader pings it, every
// half tick (LearnerHandler, Leader.PING). If the follower dies before, the report is lost. So a contact counts once another one, sent
// reportedWithin after its answer, has proved that the two were still in touch; until then, the client's pings before it do. A
// handshake goes to the leader itself.
//
// What is left to the fencing token: a ping or a report that comes through so late that the second contact overtakes it; pings of an idle
// client that were stalled; and a leader that has lost its quorum, which answers a sync for up to a tick and a half after the others
// have elected the next (Leader.processSync asks nobody; a write does).

const (
	lookEvery   = 100 * time.Millisecond // how often the client's state is looked at; this asks nothing of ZooKeeper
	beatShare   = 10                     // there is a contact at least every T/10
	pingShare   = 3                      // the client pings every T/3
	slackShare  = 20                     // T/20 is left for clocks that differ, and for being told
	unknownBeat = 5 * time.Second        // between syncs where T is unknown: they only find out that the connection was closed
)

// reportedWithin is half a tick or more, for ticks of up to 5 s; the default is 2 s, and the shortest T two ticks.
func reportedWithin(t time.Duration) time.Duration { return min(t/4, 2500*time.Millisecond) }

type clock struct {
	timer   *time.Timer // nil where there are no users
	session int64       // the ZooKeeper session that contact is of
	contact time.Time   // when the last answered write or sync was sent
	recent  []contact   // in order, some left out: the first may be long ago, the others are not proved to be reported yet
	seen    int64       // the session at the last look
	away    bool        // no session at the last look
	beating bool        // a sync is under way
	beaten  time.Time   // when the last sync was sent
}

// A contact is a write or a sync that was answered.
type contact struct{ sent, answered time.Time }

// provedBy tells whether an answered request of that time shows that the contact was reported. When the server heard of the contact
// is only known to be before its answer.
func (c contact) provedBy(sent time.Time, within time.Duration) bool {
	return sent.Sub(c.answered) >= within
}

// noteContact records that a write or a sync sent at the given time was answered in a session.
func (s *Session) noteContact(session int64, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Conn.SessionID() != session {
		return // another one began meanwhile, and may have its own contact already
	}
	c := &s.clock
	if c.session != session {
		c.session, c.contact, c.recent = session, time.Time{}, nil
	}
	if !sent.After(c.contact) {
		return
	}
	c.contact = sent
	within := reportedWithin(s.timeout())
	if n := len(c.recent); n == 0 || sent.Sub(c.recent[n-1].sent) >= within/8 {
		c.recent = append(c.recent, contact{sent: sent, answered: time.Now()})
	}
	for len(c.recent) > 1 && c.recent[1].provedBy(sent, within) {
		c.recent = c.recent[1:]
	}
}

// deadlineLocked is when a hold in the session of the last contact stops to be good; false where T is unknown.
func (s *Session) deadlineLocked() (time.Time, bool) {
	t := s.timeout()
	if t <= 0 {
		return time.Time{}, false
	}
	return s.reportedLocked(t).Add(t - t/slackShare), true
}

// reportedLocked is the latest time from which the leader surely has heard of the session.
func (s *Session) reportedLocked(t time.Duration) time.Time {
	c := &s.clock
	reported := c.contact.Add(-t/pingShare - reportedWithin(t))
	if len(c.recent) > 0 && c.recent[0].provedBy(c.contact, reportedWithin(t)) && c.recent[0].sent.After(reported) {
		reported = c.recent[0].sent
	}
	if s.greeted != nil {
		if at, ok := s.greeted(c.session); ok && at.After(reported) {
			reported = at
		}
	}
	return reported
}

// goodLocked tells whether a hold in session can be relied on now, and if not, why.
func (s *Session) goodLocked(session int64) error {
	switch deadline, known := s.deadlineLocked(); {
	case s.isClosed():
		return closedError{}
	case s.Conn.SessionID() != session:
		return ErrOver
	case known && (s.clock.session != session || !time.Now().Before(deadline)):
		return ErrOutOfTouch
	case !known && s.Conn.State() != zk.StateHasSession:
		return ErrOutOfTouch
	}
	return nil
}

// Hold marks the tenant at path as held, which it is only if its session can be relied on now.
func (s *Session) Hold(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[path]
	if t == nil {
		return ErrOver
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

func (s *Session) startClock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.seen, s.clock.away = s.Conn.SessionID(), s.Conn.State() != zk.StateHasSession
	s.clock.timer = time.AfterFunc(s.lookIntervalLocked(), s.look)
}

func (s *Session) stopClock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop(&s.clock.timer)
}

func (s *Session) lookIntervalLocked() time.Duration {
	if t := s.timeout(); t > 0 {
		return max(min(lookEvery, t/16), time.Millisecond)
	}
	return lookEvery
}

// look is the clock's tick: it tells the tenants that are lost, keeps the contact fresh, and arms the timer again.
func (s *Session) look() {
	now, session, state := time.Now(), s.Conn.SessionID(), s.Conn.State()
	s.mu.Lock()
	if s.clock.timer == nil { // stopped while the timer fired
		s.mu.Unlock()
		return
	}
	away := state != zk.StateHasSession
	if s.greetedAnewLocked(session) || s.clock.away && !away || s.clock.seen != session {
		close(s.reconnected)
		s.reconnected = make(chan struct{})
	}
	s.clock.away, s.clock.seen = away, session
	deadline, known := s.deadlineLocked()
	beat := !s.clock.beating && s.beatDueLocked(now)
	if beat {
		s.clock.beating, s.clock.beaten = true, now
	}
	wait := s.lookIntervalLocked()
	if until := deadline.Sub(now); known && until > 0 {
		wait = min(wait, until)
	}
	s.clock.timer.Reset(wait)
	s.mu.Unlock()

	// Judged anew for each: what was read above may be of a session, or of an outage, that has ended since.
	for _, t := range s.lostTenants(func(t *tenancy) bool { return s.Conn.SessionID() != t.session }) {
		t.Lose(ErrOver)
	}
	for _, t := range s.lostTenants(func(t *tenancy) bool {
		return t.held && errors.Is(s.goodLocked(t.session), ErrOutOfTouch)
	}) {
		t.Lose(ErrOutOfTouch)
	}
	if beat {
		go s.beat()
	}
}

// beatDueLocked: one sync every T/10 where there was no other contact, at the next look where the connection may be closed.
func (s *Session) beatDueLocked(now time.Time) bool {
	every := unknownBeat
	if t := s.timeout(); t > 0 {
		every = t / beatShare
	}
	last := s.clock.contact
	if s.clock.beaten.After(last) {
		last = s.clock.beaten
	}
	return !s.suspectedAt.IsZero() || now.Sub(last) >= every
}

func (s *Session) beat() {
	if s.probe() {
		s.Fail()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.beating = false
}

// The client does not tell that its owner has closed it: every call fails at once, as calls do that a breaking connection
// interrupts. But while a connection is away calls wait. So many that fail in less time than a reconnect takes prove it, if the
// client has given up its session as well. If not, it may be ending against a server that does not answer, or stand
// behind a wrapper that plays an outage; then that has to last, sync after sync.
const (
	probes       = 100
	probesWithin = 10 * time.Millisecond
	suspectFor   = 3 * time.Second
)

// probe makes the sync of the loss clock, or as many as it takes to tell that the connection was closed. It makes just one while
// the client may still write: requests behind Close, one of which then fails to be written, can leave the client's loop
// stuck for ever.
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
		if s.Conn.State() != zk.StateDisconnected {
			return s.suspectedFor() >= suspectFor
		}
	}
	return true
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

// noteOutcome takes note of calls that a lost connection ended: it may be closed, or be back before the next look.
func (s *Session) noteOutcome(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if connectionLost(err) {
		s.clock.away = true
	}
	if !errors.Is(err, zk.ErrConnectionClosed) {
		s.suspectedAt = time.Time{}
	} else if s.suspectedAt.IsZero() {
		s.suspectedAt = time.Now()
	}
}
