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
	// Where its client is connected; nil after an election, until somebody is heard from.
	owner *Server
	// It has ended for everybody who asks, but that is not committed yet.
	closing bool
}

// password is what a client must show to take up its session again. Each server can work
// it out, as in the real one.
func password(id int64) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("zktest"), uint64(id)))
	return sum[:16]
}

// negotiate gives the timeout that a client gets.
func (c *Cluster) negotiate(wanted time.Duration) time.Duration {
	return min(max(wanted, c.shortest), c.longest)
}

func (c *Cluster) trackLocked(id int64, timeout time.Duration, owner *Server) {
	c.sessions[id] = &session{
		id: id, timeout: timeout, expiry: c.expiryLocked(timeout), owner: owner,
	}
}

// expiryLocked rounds up to a whole tick, so that sessions end in batches (ExpiryQueue).
func (c *Cluster) expiryLocked(timeout time.Duration) time.Time {
	ticks := time.Since(c.began.Add(-timeout))/c.tick + 1
	return c.began.Add(ticks * c.tick)
}

// touchLocked keeps a session alive; false if there is none any more.
func (c *Cluster) touchLocked(id int64, timeout time.Duration) bool {
	one := c.sessions[id]
	if one == nil || one.closing {
		return false
	}
	one.expiry = c.expiryLocked(timeout)
	return true
}

// checkLocked judges a request that came through a server, as
// SessionTrackerImpl.checkSession does.
func (c *Cluster) checkLocked(id int64, via *Server) code {
	one := c.sessions[id]
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

// expireDueLocked ends the sessions that have not been heard from for too long. A leader
// that nobody follows does so all the same. To the others they end when it is in contact
// again.
func (c *Cluster) expireDueLocked() {
	if c.leader == nil || c.leader.frozen {
		return
	}
	now := time.Now()
	for _, id := range c.sessionIDsLocked() {
		if one := c.sessions[id]; !one.closing && !now.Before(one.expiry) {
			c.expireLocked(one)
		}
	}
}

// expireLocked marks the session as closing and queues its close behind what the leader
// may have to do before: meanwhile its client can be told that it has expired, and get a
// new one, while its ephemeral znodes are still there. What was taken before the close is
// committed before it: it goes the same way.
func (c *Cluster) expireLocked(one *session) {
	one.closing = true
	epoch := c.epoch
	c.closings.push(c.slowClose, func() {
		c.commits.push(c.slowCommit, func() {
			// A new leader knows nothing of it: to it the session lives on.
			if c.leader != nil && c.epoch == epoch && c.sessions[one.id] == one {
				c.proposeLocked(request{op: opClose}, nil, one.id, nil)
			}
		})
	})
}

// closingLocked refuses what comes behind the end of a session, from the moment on at
// which the leader has taken that (PrepRequestProcessor, setSessionClosing).
func (c *Cluster) closingLocked(id int64) {
	if one := c.sessions[id]; one != nil {
		one.closing = true
	}
}

// reviveLocked gives every session its whole timeout, as a new leader does, who does not
// know when they were heard from.
func (c *Cluster) reviveLocked() {
	for _, one := range c.sessions {
		one.owner, one.closing, one.expiry = nil, false, c.expiryLocked(one.timeout)
	}
}

func (c *Cluster) sessionIDsLocked() []int64 {
	ids := make([]int64, 0, len(c.sessions))
	for id := range c.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// ExpireSession ends a session at once, as if it had not been heard from in time. It
// returns false if there is no such session, or no leader to end it.
func (c *Cluster) ExpireSession(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.sessions[id]
	if one == nil || one.closing || c.leader == nil {
		return false
	}
	c.expireLocked(one)
	return true
}

// Sessions returns the ids of all sessions that have not ended, sorted.
func (c *Cluster) Sessions() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(c.sessionIDsLocked(), func(id int64) bool {
		return c.sessions[id].closing
	})
}
