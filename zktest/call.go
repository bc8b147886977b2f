package zktest

import (
	"bytes"
	"slices"
	"time"
)

// A call is one request of a client, until it is answered. Writes go to the leader as
// they come, so that several can be under way; reads wait at their server until those
// before them are answered (CommitProcessor). So a client gets its answers in the order
// in which it asked, and reads what it wrote.
type call struct {
	conn *conn
	req  request
	came time.Time
	lost bool // the connection breaks in the place of the answer
	// What is sent in the place of the answer, nil: the answer.
	instead []byte

	orphan bool // a write whose connection has gone

	welcome func() // not nil: the answer to a handshake

	// The answer below is known; reads, unless throttled, get theirs when their turn
	// comes.
	ready  bool
	zxid   int64 // of the newest transaction then: of a write, its own
	result reply
	err    code
}

// connectLocked is the handshake, up to where it goes to the leader.
func (c *conn) connectLocked(packet []byte) {
	s := c.server
	asked, err := decodeConnect(packet)
	// A server that is behind what the client has seen sends it on to another one.
	if err == nil && s.cluster.keeper {
		c.keeperConnectLocked(asked)
		return
	}
	takes := s.serving || s.readOnly && asked.readOnly
	if err != nil || !takes || asked.lastZxid > s.zxid {
		c.dropLocked()
		return
	}
	c.shakingLocked()
	if s.readOnly {
		c.openReadOnlyLocked(asked)
		return
	}
	timeout := s.cluster.negotiate(time.Duration(asked.timeout) * time.Millisecond)
	if asked.session == 0 {
		c.beginSessionLocked(asked, timeout)
		return
	}
	s.dropOthersLocked(asked.session)
	if !bytes.Equal(asked.password, password(asked.session)) {
		c.welcomeLocked(asked, 0, 0)
		return
	}
	s.askLocked(func() func() { return c.reopenLocked(asked, timeout) })
}

// shakingLocked: the handshake is on its way to the leader.
func (c *conn) shakingLocked() {
	c.shaking = true
	c.certifiedLocked()
	c.greeting = c.link.hostileLocked(opCreateSession, 0)
}

// beginSessionLocked asks the leader for a new session.
func (c *conn) beginSessionLocked(asked connectRequest, timeout time.Duration) {
	s := c.server
	s.cluster.lastSession++
	id := s.cluster.lastSession
	s.toLeader.push(s.delayLocked(), func() {
		c.createSessionLocked(asked, id, timeout)
	})
}

// dropOthersLocked ends the connections by which a session was used before.
func (s *Server) dropOthersLocked(session int64) {
	for _, other := range slices.Clone(s.conns) {
		if session != 0 && other.session == session {
			other.dropLocked()
		}
	}
}

// createSessionLocked runs at the leader.
func (c *conn) createSessionLocked(
	asked connectRequest, id int64, timeout time.Duration,
) {
	s := c.server
	s.cluster.trackLocked(id, timeout, s)
	s.cluster.commits.push(s.cluster.slowCommit, func() {
		s.cluster.commitLocked(s.cluster.nextLocked(opCreateSession, id), &call{
			conn: c, req: request{op: opCreateSession}, came: c.heard,
			welcome: func() { c.welcomeLocked(asked, id, timeout) },
		})
	})
}

// reopenLocked runs at the leader.
func (c *conn) reopenLocked(asked connectRequest, timeout time.Duration) (answer func()) {
	s, id := c.server, asked.session
	if s.cluster.touchLocked(id, timeout) {
		s.cluster.sessions[id].owner = s
	} else {
		id, timeout = 0, 0
	}
	return func() { c.welcomeLocked(asked, id, timeout) }
}

// welcomeLocked ends the handshake. Session 0 tells the client that the one it asked for
// has ended.
func (c *conn) welcomeLocked(asked connectRequest, id int64, timeout time.Duration) {
	if c.dropped {
		return
	}
	secret := make([]byte, 16)
	if id != 0 && !c.server.cluster.keeper {
		secret = password(id)
	}
	c.session, c.timeout, c.shaking = id, timeout, false
	greeting := c.greeting
	if greeting == nil {
		greeting = encodeConnectResponse(
			int32(timeout.Milliseconds()), id, secret, asked.hasReadOnly,
			c.server.readOnly,
		)
	}
	c.sendLocked(greeting)
	if id == 0 {
		c.hangUpLocked()
	}
	c.in.pump()
}

// requestLocked takes a request to where it is decided.
func (c *conn) requestLocked(asked *call) {
	s := c.server
	switch asked.req.op {
	case opSetAuth:
		c.authLocked(asked)
		return
	case opSASL:
		c.saslLocked(asked)
		return
	}
	// A server that knows the session to be over drops its requests, and leaves the rest
	// to the close (submitRequestNow).
	if s.touchesLocked(asked.req.op) && !s.hearLocked(c.session, c.timeout) {
		return
	}
	if err := s.eagerLocked(asked.req, c.who); err != codeOK {
		c.refuseLocked(asked, err)
		return
	}
	c.calls = append(c.calls, asked)
	switch op := asked.req.op; {
	case asked.ready: // throttled
	case s.readOnly && (op == opSync || op.isWrite()):
		asked.refuseWriteLocked()
	case op == opSync:
		c.syncLocked(asked)
	case op.isWrite():
		who := c.who
		s.toLeader.push(s.delayLocked(), func() { c.writeLocked(asked, who) })
	}
	c.flushLocked()
}

// writeLocked runs at the leader.
func (c *conn) writeLocked(asked *call, who []identity) {
	cluster, op := c.server.cluster, asked.req.op
	leader, remote := cluster.leader, cluster.leader != c.server
	// The leader's CommitProcessor has the writes that came through others, too.
	if remote {
		leader.orphans[c.session]++
	}
	commit := func() { cluster.proposeLocked(asked.req, who, c.session, asked) }
	if op == opClose { // whoever is in the session may ask for its end
		cluster.closingLocked(c.session)
	} else if err := cluster.checkLocked(c.session, c.server); err != codeOK {
		commit = func() { cluster.refuseLocked(err, c.session, asked) }
	}
	cluster.commits.push(cluster.slowCommit, func() {
		commit()
		if remote {
			leader.settledLocked(c.session)
		}
	})
}

// syncLocked has the leader answer behind all that it has committed. Only its own clients
// have to have their sessions still: what it finds wrong with a follower's sync is not
// passed on (ProposalRequestProcessor). But a session's end stands in the same line: who
// asks in one that the leader ends gets no answer any more.
func (c *conn) syncLocked(asked *call) {
	s := c.server
	if s.cluster.leader == s {
		asked.synced(s.cluster.checkLocked(c.session, s))
		return
	}
	s.toLeader.push(s.delayLocked(), func() {
		answer := func() {
			s.fromLeader.push(s.delayLocked(), func() { asked.synced(codeOK) })
		}
		behind := func() { s.cluster.commits.push(0, answer) }
		if one := s.cluster.sessions[c.session]; one != nil && one.closing {
			s.cluster.closings.push(0, behind)
		} else {
			behind()
		}
	})
}

func (a *call) synced(err code) {
	body, ok := a.req.body.(syncRequest)
	switch {
	case err != codeOK:
		a.answerLocked(nil, err)
	case !ok:
		a.answerLocked(nil, codeMarshalling)
	default:
		a.answerLocked(pathReply(body), codeOK)
	}
}

// answerLocked takes the outcome of a write or a sync.
func (a *call) answerLocked(result reply, err code) {
	a.ready, a.zxid, a.result, a.err = true, a.conn.server.zxid, result, err
	if a.welcome != nil {
		a.conn.answeredLocked(a)
		a.welcome()
		return
	}
	if a.orphan {
		a.conn.server.settledLocked(a.conn.session)
	}
	a.conn.flushLocked()
}

// orphanLocked leaves the writes that are still under way to the server. What the session
// asks through another connection to the same server waits until they are done
// (CommitProcessor).
func (c *conn) orphanLocked() {
	for _, a := range c.calls {
		if a.req.op.isWrite() && !a.ready {
			a.orphan = true
			c.server.orphans[c.session]++
		}
	}
	c.calls = nil
}

// settledLocked notes that an orphan of a session is done.
func (s *Server) settledLocked(session int64) {
	if s.orphans[session]--; s.orphans[session] > 0 {
		return
	}
	delete(s.orphans, session)
	for _, c := range slices.Clone(s.conns) {
		if c.session == session {
			c.flushLocked()
		}
	}
}

// flushLocked answers all whose turn it is.
func (c *conn) flushLocked() {
	for len(c.calls) > 0 && !c.dropped && c.server.orphans[c.session] == 0 {
		a := c.calls[0]
		switch op := a.req.op; {
		case a.ready:
		case op == opSync || op.isWrite():
			return
		default:
			a.zxid = c.server.zxid
			a.result, a.err = c.readLocked(a.req)
		}
		c.calls = c.calls[1:]
		if !c.replyLocked(a) {
			c.orphanLocked()
			c.hangUpLocked()
		}
	}
}

// replyLocked sends an answer; false if it is the last of the connection.
func (c *conn) replyLocked(a *call) bool {
	// A session that has moved is a matter of the connection: ZOOKEEPER-710.
	if a.lost || a.err == codeSessionMoved {
		return false
	}
	if !a.req.op.known() {
		a.zxid = -1 // UnimplementedRequestProcessor
	}
	c.answeredLocked(a)
	c.sendReplyLocked(a, a.zxid, a.err, a.result)
	return a.req.op != opClose && a.req.op.known()
}
