package zktest

import (
	"encoding/binary"
	"time"
)

// The session timeouts of a Keeper, unless an option sets others.
const (
	keeperShortest = 10 * time.Second
	keeperLongest  = 100 * time.Second
)

// keeperRejects is the protocol version by which a Keeper without a leader sends a client
// away.
const keeperRejects = 42

// WithKeeper makes the servers behave as those of ClickHouse Keeper where it differs from
// ZooKeeper in what matters to locks:
//
//   - Sessions are never resumed. A client that reconnects gets a new session, and is not
//     notified that the one before has expired. The ephemeral znodes of that one last
//     for its timeout. Passwords are zeros.
//   - A server that has no leader answers the handshake with protocol version 42 and
//     session -1, and hangs up.
//   - Only writes, syncs and pings keep a session of a follower's client alive.
//   - Session timeouts are between 10 s and 100 s, unless [WithMinSessionTimeout] or
//     [WithMaxSession] says otherwise.
//
// At a request that it does not know the server hangs up without an answer: unknown are
// those of the version that is meant. Versions before December 2025 do not know
// [OpSetWatches], versions before July 2026 do not know [OpCreateContainer].
func WithKeeper(unknown ...Op) Option {
	return option(func(s *settings) { s.keeper, s.unknown = true, unknown })
}

// keeperConnectLocked is the handshake of a Keeper. The session that the client had is
// read, and counts for nothing.
func (c *conn) keeperConnectLocked(asked connectRequest) {
	cluster := c.server.cluster
	timeout := cluster.negotiate(time.Duration(asked.timeout) * time.Millisecond)
	if !c.server.inContactLocked() {
		c.sendLocked(keeperRejection(timeout, asked.hasReadOnly))
		c.hangUpLocked()
		return
	}
	c.shakingLocked()
	c.beginSessionLocked(asked, timeout)
}

// keeperRejection is the answer to a handshake of a server that has no leader.
func keeperRejection(timeout time.Duration, hasReadOnly bool) []byte {
	frame := encodeConnectResponse(
		int32(timeout.Milliseconds()), -1, make([]byte, 16), hasReadOnly, false,
	)
	binary.BigEndian.PutUint32(frame[4:], keeperRejects)
	return frame
}

// touchesLocked tells whether a request keeps the session alive. A Keeper that follows
// answers reads by itself, and its leader never hears of them.
func (s *Server) touchesLocked(op opcode) bool {
	return !s.cluster.keeper || s.cluster.leader == s || op.isWrite() || op == opSync ||
		op == opPing
}
