package zktest

import (
	"bytes"
	"time"
)

// WithReadOnlyMode makes a server of an ensemble that has had no leader for two seconds,
// or for a tick if that is longer, answer the reads of clients that ask for it
// (readonlymode.enabled, with localSessionsEnabled, without which a real server has no
// clients in that state either). Their sessions end once there is a leader.
func WithReadOnlyMode() Option {
	return option(func(s *settings) { s.readOnlyMode = true })
}

// readOnlyAfter is how long a server looks for a leader first (QuorumPeer).
const readOnlyAfter = 2 * time.Second

// lookLocked makes a server that has looked for a leader for long read-only.
func (s *Server) lookLocked(now time.Time) {
	c := s.cluster
	switch {
	case s.serving || !s.up || s.frozen:
		s.looking = now
	case c.readOnlyMode && c.size > 1 && now.Sub(s.looking) >= max(readOnlyAfter, c.tick):
		s.readOnly = true
	}
}

// openReadOnlyLocked is a handshake with a server that is read-only. Its sessions are its
// own, and end with that state: it refuses those of the ensemble.
func (c *conn) openReadOnlyLocked(asked connectRequest) {
	id, s := asked.session, c.server
	s.dropOthersLocked(id)
	timeout := s.cluster.negotiate(time.Duration(asked.timeout) * time.Millisecond)
	switch {
	case id == 0:
		s.cluster.lastSession++
		id = s.cluster.lastSession
	case s.cluster.sessions[id] != nil:
		c.dropLocked()
		return
	case !bytes.Equal(asked.password, password(id)):
		id, timeout = 0, 0
	}
	c.welcomeLocked(asked, id, timeout)
}

// refuseWriteLocked answers what a server that is read-only does not do. The end of a
// session is no write to it.
func (a *call) refuseWriteLocked() {
	a.ready, a.zxid = true, a.conn.server.zxid
	if a.req.op != opClose {
		a.err = codeNotReadOnly
	}
}
