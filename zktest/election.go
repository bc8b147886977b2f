package zktest

import (
	"slices"
	"time"
)

const (
	// syncLimit is how many ticks without contact pass until leader and follower give
	// each other up.
	syncLimit = 5
	// lateShare is the share of a tick by which a ping of the leader's can be late. It
	// waits for half a tick at least, and then works (Leader.lead).
	lateShare = 20
	// electionTime is what passes without a leader, at least: the real election waits
	// that long for better votes. A server on its own holds none.
	electionTime = 200 * time.Millisecond
)

// pingAfterLocked has the leader ping after d, and from then on by its period: half a
// tick, and as much more as the seed says.
func (c *Cluster) pingAfterLocked(d time.Duration) {
	c.nextPing = time.Now().Add(d)
	c.afterLocked(d, func() {
		period := c.tick / 2
		if c.seed != 0 {
			period += time.Duration(c.lateness.Int64N(int64(c.tick / lateShare)))
		}
		c.pingAfterLocked(period)
		c.pingLocked()
	})
}

// pingLocked is the leader's ping. One that does not get through arrives as soon as the
// path is whole again, as on any TCP connection.
func (c *Cluster) pingLocked() {
	now := time.Now()
	for _, s := range c.servers {
		s.pinged = s.serving
		s.pongLocked()
	}
	c.settleLocked()
	c.expireDueLocked()
	if c.leader != nil && c.leader.inContactLocked() && now.Sub(c.reaped) >= c.reapEvery {
		c.reaped = now
		c.reapLocked(now)
	}
	for _, s := range c.servers {
		s.dropIdleLocked(now)
	}
}

// pongLocked answers a ping of the leader that has got through.
func (s *Server) pongLocked() {
	if s.pinged && s.inContactLocked() {
		s.pinged, s.contact = false, time.Now()
		s.reportLocked()
	}
}

// settleLocked brings the ensemble into the state that follows from which servers run and
// who reaches whom. It is called whenever that changes, and at every ping since some of
// it takes time.
func (c *Cluster) settleLocked() {
	now := time.Now()
	for _, s := range c.servers {
		s.pongLocked()
		if s.serving && s != c.leader && !s.inContactLocked() {
			s.partLocked(now)
		}
	}
	if c.leader != nil && !c.ledLocked(now) {
		c.deposeLocked(now)
	}
	elected := len(c.servers) == 1 || now.Sub(c.leaderless) >= electionTime
	if c.leader == nil && c.quorumLocked() && elected {
		c.electLocked()
	}
	if c.leader != nil && c.leader.runningLocked() && c.quorumLocked() {
		for _, s := range c.servers {
			if s.runningLocked() && !s.serving {
				s.joinLocked()
			}
		}
	}
	for _, s := range c.servers {
		s.lookLocked(now)
	}
	c.pumpLocked()
}

// partLocked has a server out of contact and its leader give each other up, when nothing
// came from the other for too long, or when that leader has been replaced and the new one
// is within reach. A frozen server learns of it when it goes on.
func (s *Server) partLocked(now time.Time) {
	overdue := now.Sub(s.contact) >= syncLimit*s.cluster.tick
	if overdue {
		s.epoch = 0
	}
	replaced := s.runningLocked() && s.cluster.leader != nil && s.epoch != s.cluster.epoch
	if !s.frozen && (overdue || replaced) {
		s.leaveLocked()
	}
}

// quorumLocked: a majority of the servers can talk to each other.
func (c *Cluster) quorumLocked() bool { return c.majorityLocked((*Server).runningLocked) }

func (c *Cluster) majorityLocked(is func(*Server) bool) bool {
	n := 0
	for _, s := range c.servers {
		if is(s) {
			n++
		}
	}
	return n > len(c.servers)/2
}

// ledLocked: the servers still have a leader, as far as they know. The end of a process
// they notice at once.
func (c *Cluster) ledLocked(now time.Time) bool {
	l := c.leader
	if !l.up || !c.majorityLocked(func(s *Server) bool { return s.up }) {
		return false
	}
	return len(c.servers) == 1 || l.inContactLocked() ||
		now.Sub(l.contact) < syncLimit*c.tick
}

// deposeLocked makes the servers look for another leader: they drop their clients. An
// isolated leader finds out by itself, up to half a tick later.
func (c *Cluster) deposeLocked(now time.Time) {
	c.leader, c.leaderless = nil, now
	c.closings.clear()
	c.commits.clear()
	for _, s := range c.servers {
		if s.runningLocked() {
			s.leaveLocked()
		}
	}
	c.afterLocked(electionTime, c.settleLocked)
}

// electLocked takes the running server with the longest log, of two the one with the
// greater id. All that was committed is known to a quorum, so it gets what it lacks.
func (c *Cluster) electLocked() {
	var best *Server
	for _, s := range c.servers {
		if s.runningLocked() && (best == nil || s.applied >= best.applied) {
			best = s
		}
	}
	c.leader = best
	best.leaveLocked() // as an isolated leader of before it may have clients still
	if len(c.servers) > 1 {
		c.epoch++
		c.zxid = c.epoch << 32
	}
	best.joinLocked()
	// At once: so the others are behind whoever has been its client, until there is a
	// transaction.
	best.zxid = c.zxid
	c.reviveLocked()
}

// pumpLocked lets go what waited for a contact or for a process to go on.
func (c *Cluster) pumpLocked() {
	c.commits.pump()
	c.closings.pump()
	for _, s := range c.servers {
		s.fromLeader.pump()
		s.toLeader.pump()
		for _, conn := range slices.Clone(s.conns) {
			conn.in.pump()
			conn.out.pump()
		}
	}
	for _, l := range c.links {
		l.wakeLocked()
	}
	c.admitLocked()
}

// dropIdleLocked ends connections that nothing came from for a whole session timeout.
func (s *Server) dropIdleLocked(now time.Time) {
	if s.frozen {
		return
	}
	for _, c := range slices.Clone(s.conns) {
		if c.timeout > 0 && now.Sub(c.heard) > c.timeout {
			c.dropLocked()
		}
	}
}
