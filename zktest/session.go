package zktest

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// A session, as the leader tracks it (SessionTrackerImpl).
type session struct {
	id      int64
	timeout time.Duration
	expiry  time.Time
	owner   *Peer // where its client is connected; nil after an election, until somebody is heard from
	closing bool  // it has ended for everybody who asks, but that is not committed yet
}

// password is what a client must show to take up its session again. Each server can work it out, as in the real one.
func password(id int64) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("zktest"), uint64(id)))
	return sum[:16]
}

// negotiate gives the timeout that a client gets.
func (s *Server) negotiate(wanted time.Duration) time.Duration {
	return min(max(wanted, s.shortest), s.longest)
}

func (s *Server) trackLocked(id int64, timeout time.Duration, owner *Peer) {
	s.sessions[id] = &session{id: id, timeout: timeout, expiry: s.expiryLocked(timeout), owner: owner}
}

// expiryLocked rounds up to a whole tick, so that sessions end in batches (ExpiryQueue).
func (s *Server) expiryLocked(timeout time.Duration) time.Time {
	ticks := time.Since(s.began.Add(-timeout))/s.tick + 1
	return s.began.Add(ticks * s.tick)
}

// touchLocked keeps a session alive; false if there is none any more.
func (s *Server) touchLocked(id int64, timeout time.Duration) bool {
	one := s.sessions[id]
	if one == nil || one.closing {
		return false
	}
	one.expiry = s.expiryLocked(timeout)
	return true
}

// checkLocked judges a request that came through a server, as SessionTrackerImpl.checkSession does.
func (s *Server) checkLocked(id int64, via *Peer) code {
	one := s.sessions[id]
	switch {
	case one == nil || one.closing:
		return codeSessionExpired
	case one.owner == nil:
		one.owner = via
	case one.owner != via:
		return codeSessionMoved
	}
	return codeOK
}

// expireDueLocked ends the sessions that have not been heard from for too long. A leader that
// nobody follows does so all the same. To the others they end when it is in contact again.
func (s *Server) expireDueLocked() {
	if s.leader == nil || s.leader.frozen {
		return
	}
	now := time.Now()
	for _, id := range s.sessionIDsLocked() {
		if one := s.sessions[id]; !one.closing && !now.Before(one.expiry) {
			s.expireLocked(one)
		}
	}
}

// expireLocked marks the session as closing and queues its close behind what the leader may have to do before: meanwhile
// its client can be told that it has expired, and get a new one, while its ephemeral znodes are still there.
func (s *Server) expireLocked(one *session) {
	one.closing = true
	epoch := s.epoch
	s.closings.push(s.slowClose+s.slowCommit, func() {
		// A new leader knows nothing of it: to it the session lives on.
		if s.leader != nil && s.epoch == epoch && s.sessions[one.id] == one {
			s.proposeLocked(request{op: opClose}, nil, one.id, nil)
		}
	})
}

// closingLocked refuses what comes behind the end of a session, from the moment on at
// which the leader has taken that (PrepRequestProcessor, setSessionClosing).
func (s *Server) closingLocked(id int64) {
	if one := s.sessions[id]; one != nil {
		one.closing = true
	}
}

// reviveLocked gives every session its whole timeout, as a new leader does, who does not know when they were heard from.
func (s *Server) reviveLocked() {
	for _, one := range s.sessions {
		one.owner, one.closing, one.expiry = nil, false, s.expiryLocked(one.timeout)
	}
}

func (s *Server) sessionIDsLocked() []int64 {
	ids := make([]int64, 0, len(s.sessions))
	for id := range s.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// ExpireSession ends a session at once, as if it had not been heard from in time. It reports false where there is no such session,
// and while there is no leader to end it.
func (s *Server) ExpireSession(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one == nil || one.closing || s.leader == nil {
		return false
	}
	s.expireLocked(one)
	return true
}

// Sessions returns the ids of all sessions that have not ended, sorted.
func (s *Server) Sessions() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.sessionIDsLocked(), func(id int64) bool { return s.sessions[id].closing })
}
