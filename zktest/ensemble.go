package zktest

import (
	"slices"
	"time"
)

const (
	syncLimit    = 5                      // ticks without contact after which leader and follower give each other up
	electionTime = 200 * time.Millisecond // without a leader, at least: the real election waits that long for better votes
	reapEvery    = time.Minute            // between two looks for empty containers and TTL znodes past their time
)

// beatLocked is the leader's ping, every half tick. One that does not get through arrives as soon as the path is whole again, as on
// any TCP connection.
func (s *Server) beatLocked() {
	now := time.Now()
	s.nextBeat = now.Add(s.tick / 2)
	for _, p := range s.peers {
		p.pinged = p.serving
		p.pongLocked()
	}
	s.settleLocked()
	s.expireDueLocked()
	if s.leader != nil && s.leader.inContactLocked() && now.Sub(s.reaped) >= reapEvery {
		s.reaped = now
		s.reapLocked(now)
	}
	for _, p := range s.peers {
		p.dropIdleLocked(now)
	}
}

// pongLocked answers a ping of the leader that has got through.
func (p *Peer) pongLocked() {
	if p.pinged && p.inContactLocked() {
		p.pinged, p.contact = false, time.Now()
		p.reportLocked()
	}
}

// settleLocked brings the ensemble into the state that follows from which servers run and who reaches whom. It is called
// whenever that changes, and at every beat since some of it takes time.
func (s *Server) settleLocked() {
	now := time.Now()
	for _, p := range s.peers {
		p.pongLocked()
		if p.serving && p != s.leader && !p.inContactLocked() {
			p.partLocked(now)
		}
	}
	if s.leader != nil && !s.ledLocked(now) {
		s.deposeLocked(now)
	}
	if s.leader == nil && s.quorumLocked() && now.Sub(s.leaderless) >= electionTime {
		s.electLocked()
	}
	if s.leader != nil && s.leader.runningLocked() && s.quorumLocked() {
		for _, p := range s.peers {
			if p.runningLocked() && !p.serving {
				p.joinLocked()
			}
		}
	}
	s.pumpLocked()
}

// partLocked has a server out of contact and its leader give each other up, when nothing came from the other for too long, or
// when that leader has been replaced and the new one is within reach. A frozen server learns of it when it goes on.
func (p *Peer) partLocked(now time.Time) {
	overdue := now.Sub(p.contact) >= syncLimit*p.s.tick
	if overdue {
		p.epoch = 0
	}
	replaced := p.runningLocked() && p.s.leader != nil && p.epoch != p.s.epoch
	if !p.frozen && (overdue || replaced) {
		p.leaveLocked()
	}
}

// quorumLocked: a majority of the servers can talk to each other.
func (s *Server) quorumLocked() bool { return s.majorityLocked((*Peer).runningLocked) }

func (s *Server) majorityLocked(is func(*Peer) bool) bool {
	n := 0
	for _, p := range s.peers {
		if is(p) {
			n++
		}
	}
	return n > len(s.peers)/2
}

// ledLocked: the servers still have a leader, as far as they know. The end of a process they notice at once.
func (s *Server) ledLocked(now time.Time) bool {
	l := s.leader
	if !l.up || !s.majorityLocked(func(p *Peer) bool { return p.up }) {
		return false
	}
	return len(s.peers) == 1 || l.inContactLocked() || now.Sub(l.contact) < syncLimit*s.tick
}

// deposeLocked makes the servers look for another leader: they drop their clients. An isolated leader finds out by
// itself, up to a beat later.
func (s *Server) deposeLocked(now time.Time) {
	s.leader, s.leaderless = nil, now
	s.closings.clear()
	s.commits.clear()
	for _, p := range s.peers {
		if p.runningLocked() {
			p.leaveLocked()
		}
	}
	s.afterLocked(electionTime, s.settleLocked)
}

// electLocked takes the running server with the longest log, of two the one with the greater id. All that was committed
// is known to a quorum, so it gets what it lacks.
func (s *Server) electLocked() {
	var best *Peer
	for _, p := range s.peers {
		if p.runningLocked() && (best == nil || p.applied >= best.applied) {
			best = p
		}
	}
	s.leader = best
	best.leaveLocked() // as an isolated leader of before it may have clients still
	if len(s.peers) > 1 {
		s.epoch++
		s.zxid = s.epoch << 32
	}
	best.joinLocked()
	best.zxid = s.zxid // at once: so the others are behind whoever has been its client, until there is a transaction
	s.reviveLocked()
}

// pumpLocked lets go what waited for a contact or for a process to go on.
func (s *Server) pumpLocked() {
	s.commits.pump()
	s.closings.pump()
	for _, p := range s.peers {
		p.fromLeader.pump()
		p.toLeader.pump()
		for _, c := range slices.Clone(p.conns) {
			c.in.pump()
			c.out.pump()
		}
	}
	for _, l := range s.links {
		l.wakeLocked()
	}
}

// proposeLocked has the leader judge a write and commit what comes of it: also a refusal takes a zxid. asked, if not nil,
// is the call that is answered when the server that took it has applied the transaction.
func (s *Server) proposeLocked(req request, who []identity, id int64, asked *call) {
	s.zxid++
	x := s.leader.tree.prepare(req, who, id, s.zxid, time.Now().UnixMilli())
	s.commitLocked(x, asked)
}

// refuseLocked commits an error in the place of a write.
func (s *Server) refuseLocked(err code, id int64, asked *call) {
	x := s.nextLocked(opError, id)
	x.code = err
	s.commitLocked(x, asked)
}

// nextLocked makes a transaction that needs no judgement.
func (s *Server) nextLocked(op opcode, id int64) txn {
	s.zxid++
	return txn{zxid: s.zxid, time: time.Now().UnixMilli(), session: id, op: op}
}

func (s *Server) commitLocked(x txn, asked *call) {
	if x.op == opClose {
		delete(s.sessions, x.session)
	}
	s.log = append(s.log, x)
	if asked != nil {
		asked.conn.peer.waiting[x.zxid] = asked
	}
	s.leader.applyLocked(x)
	for _, p := range s.peers {
		if p != s.leader && p.serving {
			p.fromLeader.push(p.delayLocked(), func() { p.applyLocked(x) })
		}
	}
}

// reapLocked deletes what ContainerManager would.
func (s *Server) reapLocked(now time.Time) {
	for _, path := range s.leader.tree.containers(now.UnixMilli()) {
		s.proposeLocked(request{op: opDeleteContainer, body: deleteRequest{path: path, version: -1}}, nil, 0, nil)
	}
}

// dropIdleLocked ends connections that nothing came from for a whole session timeout.
func (p *Peer) dropIdleLocked(now time.Time) {
	if p.frozen {
		return
	}
	for _, c := range slices.Clone(p.conns) {
		if c.timeout > 0 && now.Sub(c.heard) > c.timeout {
			c.dropLocked()
		}
	}
}
