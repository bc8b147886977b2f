package zktest

import (
	"fmt"
	"slices"
	"time"
)

// A Server is one server of a Cluster. Its methods inject faults and are safe for
// concurrent use.
type Server struct {
	cluster *Cluster
	id      int // from 1, as in server.1

	// All below is guarded by the Cluster's mutex.

	tree    *tree
	applied int   // how many transactions of the log its tree contains
	zxid    int64 // of the newest of them
	watches watchTable
	conns   []*conn
	traffic traffic

	up       bool // false: killed
	frozen   bool
	isolated bool
	// Takes clients: it leads, or has caught up with a leader and not given it up.
	serving  bool
	readOnly bool      // takes clients that only read, for want of a leader
	looking  time.Time // for a leader, since then
	// Of that leader; 0 of none: it has given up a frozen server, which does not know
	// that yet.
	epoch  int64
	lag    time.Duration
	pinged bool // by its leader, whom it has not answered yet
	// When it was last in touch with a leader, or with a quorum if it leads itself.
	contact time.Time

	toLeader   *lane // what its clients ask of the leader
	fromLeader *lane // committed transactions, and the leader's answers, in one order
	waiting    map[int64]*call
	// Writes under way, by session, whose connection has gone.
	orphans map[int64]int
	// Sessions heard from since the last report to the leader, with their timeouts.
	touched map[int64]time.Duration
}

func newServer(c *Cluster, id int) *Server {
	s := &Server{
		cluster: c, id: id, up: true,
		watches: newWatchTable(),
		waiting: map[int64]*call{}, orphans: map[int64]int{},
		touched: map[int64]time.Duration{},
	}
	s.emptyLocked()
	apart := func() bool { return !s.inContactLocked() }
	s.toLeader, s.fromLeader = newLane(&c.mu, apart), newLane(&c.mu, apart)
	return s
}

// emptyLocked gives the server what it has without a disk.
func (s *Server) emptyLocked() {
	c := s.cluster
	s.tree = newTree()
	s.tree.sasl, s.tree.x509 = c.saslUsers != nil, c.tls != nil
	c.configureLocked(s)
	if c.shuffle {
		s.tree.shuffle = c.shuffleLocked
	}
}

// Addr returns the name by which the Cluster's HostProvider and Dial know this server. It
// is not a network address.
func (s *Server) Addr() string { return fmt.Sprintf("zktest-%d:2181", s.id) }

// Stop kills the server, as kill -9 does: its connections break at once, and its port
// rejects new ones. What it has committed is not lost.
func (s *Server) Stop() {
	s.change(func() {
		s.up, s.frozen = false, false
		s.traffic = traffic{}
		s.leaveLocked()
	})
}

// Start starts a stopped server again, at the same address. If another program has taken
// its port meanwhile, it listens there once that program has left it.
func (s *Server) Start() { s.change(func() { s.up = true }) }

// Freeze stops the server's process (SIGSTOP): connections stay open, and nothing is
// answered until Thaw. No effect on a stopped server.
func (s *Server) Freeze() { s.change(func() { s.frozen = s.up }) }

// Thaw makes a frozen server continue. What it has missed arrives now; if the others
// dropped it meanwhile, it rejoins them.
func (s *Server) Thaw() { s.change(func() { s.frozen = false }) }

// Isolate cuts the server off from the others, not from its clients: for five ticks
// (syncLimit) it goes on to answer reads and pings from what it knows, while a leader
// elsewhere may end the sessions of these clients. An isolated leader ends those of the
// others' clients. No effect on a server that is the only one.
func (s *Server) Isolate() {
	s.change(func() { s.isolated = len(s.cluster.servers) > 1 })
}

// Rejoin ends Isolate.
func (s *Server) Rejoin() { s.change(func() { s.isolated = false }) }

// Lag makes everything between this server and its leader take d, each way: it answers
// reads from a past d ago, what its clients write takes effect d later, and d later the
// leader learns that they were heard from. No effect on the leader.
func (s *Server) Lag(d time.Duration) { s.change(func() { s.lag = d }) }

// Leading reports whether this server leads the others, which the only one always does.
func (s *Server) Leading() bool {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return s.cluster.leader == s
}

// Zxid returns the last transaction that the server has applied. That of a new leader
// begins with a new epoch, and those of the others only with its first transaction.
func (s *Server) Zxid() int64 {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return s.zxid
}

func (s *Server) change(f func()) {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	f()
	s.cluster.settleLocked()
}

// runningLocked: it can talk to the other servers.
func (s *Server) runningLocked() bool { return s.up && !s.frozen && !s.isolated }

// inContactLocked: what it tells its leader gets there, and the other way round. A leader
// is in contact with its quorum.
func (s *Server) inContactLocked() bool {
	leader := s.cluster.leader
	return s.serving && s.epoch == s.cluster.epoch && s.runningLocked() &&
		leader != nil && leader.runningLocked() && s.cluster.quorumLocked()
}

// delayLocked is how long it takes to tell the leader something, or to hear from it.
func (s *Server) delayLocked() time.Duration {
	if s.cluster.leader == s {
		return 0
	}
	return s.lag
}

// askLocked takes a question to the leader, and the answer back behind what it has
// committed before. The leader knows by itself, also while nobody follows it.
func (s *Server) askLocked(question func() (answer func())) {
	if s.cluster.leader == s {
		question()()
		return
	}
	s.toLeader.push(s.delayLocked(), func() {
		s.fromLeader.push(s.delayLocked(), question())
	})
}

// leaveLocked gives up the leader, and with it the clients.
func (s *Server) leaveLocked() {
	s.serving, s.readOnly = false, false
	s.toLeader.clear()
	s.fromLeader.clear()
	clear(s.waiting)
	clear(s.touched)
	for _, c := range slices.Clone(s.conns) {
		c.dropLocked()
	}
	clear(s.orphans)
}

// joinLocked catches up with the leader, and takes clients from then on.
func (s *Server) joinLocked() {
	if s.readOnly {
		s.leaveLocked()
	}
	s.fromLeader.clear()
	s.catchUpLocked()
	s.serving, s.epoch, s.contact = true, s.cluster.epoch, time.Now()
}

// applyLocked takes the next transaction of the log over: watchers are told before the
// requester.
func (s *Server) applyLocked(x txn) {
	result, err, events := s.tree.apply(x)
	s.applied++
	s.zxid = x.zxid
	s.watches.trigger(events, func(c *conn, e event) { c.notifyLocked(e) })
	if asked := s.waiting[x.zxid]; asked != nil {
		delete(s.waiting, x.zxid)
		asked.answerLocked(result, err)
	}
	if x.op != opClose {
		return
	}
	for _, c := range slices.Clone(s.conns) {
		if c.session == x.session {
			c.hangUpLocked()
		}
	}
}

// forgetLocked takes a connection off the list, and its watches.
func (s *Server) forgetLocked(c *conn) {
	s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
	s.watches.drop(c)
}

// hearLocked notes that a session's client was heard from; false if the session is known
// to be over. A follower does not know that, and reports whom it has heard when the
// leader pings it.
func (s *Server) hearLocked(id int64, timeout time.Duration) bool {
	if s.cluster.leader == s {
		return s.cluster.touchLocked(id, timeout)
	}
	s.touched[id] = timeout
	return true
}

// reportLocked tells the leader which sessions were heard from.
func (s *Server) reportLocked() {
	if len(s.touched) == 0 {
		return
	}
	heard := s.touched
	s.touched = map[int64]time.Duration{}
	s.toLeader.push(s.delayLocked(), func() {
		for id, timeout := range heard {
			s.cluster.touchLocked(id, timeout)
		}
	})
}
