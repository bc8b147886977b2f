package zkconn

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// A resumption dates the last handshake of a *zk.Conn, which does not tell of them: it
// began after the connection was seen to be down, and so without one under way. A gap
// that nobody sees dates nothing. It is guarded by Conn.mu.
type resumption struct {
	down    time.Time // when that was seen last, if no handshake was since; else zero
	session int64     // the last handshake's
	began   time.Time // at the earliest; zero: that is not known
}

// lookDown looks at the connection. It is called with mu held, so that what is seen is
// in order: a *zk.Conn reads its state without a lock. Another Client may play an outage,
// after which there is no handshake.
func (s *Conn) lookDown() {
	if !s.plain {
		return
	}
	r, now := &s.clock.resumption, s.clock.now() // before the state, which may change
	switch s.conn.State() {
	case zk.StateDisconnected, zk.StateConnecting:
		r.down = now
	case zk.StateHasSession:
		if !r.down.IsZero() {
			*r = resumption{session: s.conn.SessionID(), began: r.down}
		}
	}
}

// handshake is when the last handshake of a session began, zero where that is unknown.
func (c *clock) handshake(session int64) time.Time {
	if c.lastHandshake == nil {
		if c.resumption.session == session {
			return c.resumption.began
		}
		return time.Time{}
	}
	at, ok := c.lastHandshake(session)
	if !ok {
		return time.Time{}
	}
	return c.timeline.Before(at)
}
