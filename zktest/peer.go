package zktest

import (
	"fmt"
	"slices"
	"time"
)

// A Peer is one server of the service. Its methods inject faults and may be called at any time.
type Peer struct {
	s  *Server
	id int // from 1, as in server.1

	// All below is guarded by the service's mutex.

	tree    *tree
	applied int   // how many transactions of the log its tree contains
	zxid    int64 // of the newest of them
	watches watchTable[*conn]
	conns   []*conn

	up       bool // false: killed
	frozen   bool
	isolated bool
	serving  bool  // takes clients: it leads, or has caught up with a leader and not given it up
	epoch    int64 // of that leader; 0 of none: it has given up a frozen server, which does not know that yet
	lag      time.Duration
	pinged   bool      // by its leader, whom it has not answered yet
	contact  time.Time // when it was last in touch with a leader, or with a quorum if it leads itself

	toLeader   *lane // what its clients ask of the leader
	fromLeader *lane // committed transactions, and the leader's answers, in one order
	waiting    map[int64]*call
	orphans    map[int64]int           // writes under way, by session, whose connection has gone
	touched    map[int64]time.Duration // sessions heard from since the last report to the leader, with their timeouts
}

func newPeer(s *Server, id int) *Peer {
	p := &Peer{
		s: s, id: id, up: true,
		tree: newTree(), watches: newWatchTable[*conn](),
		waiting: map[int64]*call{}, orphans: map[int64]int{}, touched: map[int64]time.Duration{},
	}
	apart := func() bool { return !p.inContactLocked() }
	p.toLeader, p.fromLeader = newLane(&s.mu, apart), newLane(&s.mu, apart)
	return p
}

// Addr is the name under which the service's HostProvider and Dial know this server. It is no address of a network.
func (p *Peer) Addr() string { return fmt.Sprintf("zktest-%d:2181", p.id) }

// Stop kills the server, as kill -9 does: its connections break at once. What it has committed is not lost.
func (p *Peer) Stop() {
	p.change(func() {
		p.up, p.frozen = false, false
		p.leaveLocked()
	})
}

// Start starts a stopped server again.
func (p *Peer) Start() { p.change(func() { p.up = true }) }

// Freeze stops the server's process (SIGSTOP): connections stay open, and nothing is answered until Thaw. No effect on a
// stopped server.
func (p *Peer) Freeze() { p.change(func() { p.frozen = p.up }) }

// Thaw lets a frozen server go on. What it has missed arrives now; if the others gave it up meanwhile it joins them again.
func (p *Peer) Thaw() { p.change(func() { p.frozen = false }) }

// Isolate cuts the server off from the others, not from its clients: for five ticks (syncLimit) it goes on to answer
// reads and pings from what it knows, while a leader elsewhere may end the sessions of these clients. An isolated leader
// ends those of the others' clients. No effect on a server that is the only one.
func (p *Peer) Isolate() { p.change(func() { p.isolated = len(p.s.peers) > 1 }) }

// Rejoin ends Isolate.
func (p *Peer) Rejoin() { p.change(func() { p.isolated = false }) }

// Lag makes everything between this server and its leader take d, each way: it answers reads from a past d ago, what its
// clients write takes effect d later, and d later the leader learns that they were heard from. No effect on the leader.
func (p *Peer) Lag(d time.Duration) { p.change(func() { p.lag = d }) }

// Leading reports whether this server leads the others, which the only one always does.
func (p *Peer) Leading() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.s.leader == p
}

// Zxid is the last transaction that the server has applied. That of a new leader begins with a new epoch, and those of the
// others only with its first transaction.
func (p *Peer) Zxid() int64 {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.zxid
}

func (p *Peer) change(f func()) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	f()
	p.s.settleLocked()
}

// runningLocked: it can talk to the other servers.
func (p *Peer) runningLocked() bool { return p.up && !p.frozen && !p.isolated }

// inContactLocked: what it tells its leader gets there, and the other way round. A leader is in contact with its quorum.
func (p *Peer) inContactLocked() bool {
	leader := p.s.leader
	return p.serving && p.epoch == p.s.epoch && p.runningLocked() && leader != nil && leader.runningLocked() && p.s.quorumLocked()
}

// delayLocked is how long it takes to tell the leader something, or to hear from it.
func (p *Peer) delayLocked() time.Duration {
	if p.s.leader == p {
		return 0
	}
	return p.lag
}

// askLocked takes a question to the leader, and the answer back behind what it has committed before. The leader knows by
// itself, also while nobody follows it.
func (p *Peer) askLocked(question func() (answer func())) {
	if p.s.leader == p {
		question()()
		return
	}
	p.toLeader.push(p.delayLocked(), func() { p.fromLeader.push(p.delayLocked(), question()) })
}

// leaveLocked gives up the leader, and with it the clients.
func (p *Peer) leaveLocked() {
	p.serving = false
	p.toLeader.clear()
	p.fromLeader.clear()
	clear(p.waiting)
	clear(p.touched)
	for _, c := range slices.Clone(p.conns) {
		c.dropLocked()
	}
	clear(p.orphans)
}

// joinLocked catches up with the leader, and takes clients from then on.
func (p *Peer) joinLocked() {
	p.fromLeader.clear()
	for p.applied < len(p.s.log) {
		p.applyLocked(p.s.log[p.applied])
	}
	p.serving, p.epoch, p.contact = true, p.s.epoch, time.Now()
}

// applyLocked takes the next transaction of the log over: watchers are told before the requester.
func (p *Peer) applyLocked(x txn) {
	result, err, events := p.tree.apply(x)
	p.applied++
	p.zxid = x.zxid
	p.watches.trigger(events, func(c *conn, e event) { c.notifyLocked(e) })
	if asked := p.waiting[x.zxid]; asked != nil {
		delete(p.waiting, x.zxid)
		asked.answerLocked(result, err)
	}
	if x.op != opClose {
		return
	}
	for _, c := range slices.Clone(p.conns) {
		if c.session == x.session {
			c.hangUpLocked()
		}
	}
}

// forgetLocked takes a connection off the list, and its watches.
func (p *Peer) forgetLocked(c *conn) {
	p.conns = slices.DeleteFunc(p.conns, func(other *conn) bool { return other == c })
	p.watches.drop(c)
}

// hearLocked notes that a session's client was heard from; false if the session is known to be over. A follower does not know
// that, and reports whom it has heard when the leader pings it.
func (p *Peer) hearLocked(id int64, timeout time.Duration) bool {
	if p.s.leader == p {
		return p.s.touchLocked(id, timeout)
	}
	p.touched[id] = timeout
	return true
}

// reportLocked tells the leader which sessions were heard from.
func (p *Peer) reportLocked() {
	if len(p.touched) == 0 {
		return
	}
	heard := p.touched
	p.touched = map[int64]time.Duration{}
	p.toLeader.push(p.delayLocked(), func() {
		for id, timeout := range heard {
			p.s.touchLocked(id, timeout)
		}
	})
}
