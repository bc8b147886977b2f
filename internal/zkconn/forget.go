package zkconn

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// registry finds the Conn of a connection: what is shared must be found by all who use
// the connection, and they have nothing in common but the Client. So its dynamic type
// must be comparable.
var registry = struct {
	mu    sync.Mutex
	conns map[Client]*Conn
}{conns: map[Client]*Conn{}}

// idleCheck is how often a Conn without users is looked after, which is kept for what it
// knows.
const idleCheck = 10 * time.Second

// forgetIfIdleLocked forgets a Conn without users, unless that would lose something: a
// pending watch would be set a second time, a server without containers be asked again,
// which costs the connection, and notes are worth something for a while. It is called
// with registry.mu held.
func (s *Conn) forgetIfIdleLocked() {
	if s.users > 0 {
		return
	}
	known := registry.conns[s.conn] == s
	if !known || s.isClosed() || !s.worthKeeping() {
		stop(&s.idle)
		if s.stopOnClose != nil {
			s.stopOnClose()
			s.stopOnClose = nil
		}
		if known {
			delete(registry.conns, s.conn)
		}
		return
	}
	if s.idle == nil { // else it is looked after already
		var look *time.Timer
		look = time.AfterFunc(idleCheck, func() {
			registry.mu.Lock()
			defer registry.mu.Unlock()
			if s.idle == look { // else it was stopped as it began
				s.idle, s.rested = nil, true
				s.forgetIfIdleLocked()
			}
		})
		s.idle = look
	}
}

// worthKeeping tells whether the Conn knows something that the next user needs. What
// it knows of the server is worth nothing where the connection looks closed: a
// StateDisconnected that an outage shows is momentary.
func (s *Conn) worthKeeping() bool {
	if s.Sweep() > 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.notes.values) > 0 && !s.rested ||
		s.noContainers && s.conn.State() != zk.StateDisconnected
}
