// Package session keeps what all locks on one ZooKeeper connection share: the clock that tells how long the session can
// be relied on, the watches that are pending, the znodes of this process that live in the session, and the calls that
// outlast their callers. It knows no queue and no lock.
package session

import (
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Conn is the part of a ZooKeeper client that is used here and in the packages above.
type Conn interface {
	Children(path string) ([]string, *zk.Stat, error)
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Delete(path string, version int32) error
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Sync(path string) (string, error)
	SessionID() int64
	State() zk.State
}

// Why a session, or a hold in it, can no longer be relied on.
var (
	ErrSessionEnded = errors.New("the ZooKeeper session has ended")
	ErrSuspended    = errors.New("out of touch with ZooKeeper")
	ErrClosed       = errors.New("the connection was closed by its owner")
	// ErrTooShort says that no session with these servers can be relied on; see
	// Config.ServerTick.
	ErrTooShort = errors.New("the session timeout is too short to hold a lock")
)

// closedError is the end of a closed connection: it matches zk.ErrConnectionClosed too,
// which is what callers know.
type closedError struct{}

func (closedError) Error() string   { return ErrClosed.Error() }
func (closedError) Unwrap() []error { return []error{ErrClosed, zk.ErrConnectionClosed} }

// Config is what a user of a connection knows about it.
type Config struct {
	Timeout func() time.Duration // the negotiated session timeout, 0 where it is unknown; not nil
	// ServerTick is the servers' tick, 0 where it is unknown.
	ServerTick time.Duration
	// Plain tells that the connection is a *zk.Conn, and so how one looks that was
	// closed.
	Plain bool
	// LastHandshake tells when the last handshake of that session began; nil where the connection does not tell.
	LastHandshake func(session int64) (time.Time, bool)
	// WhenClosed calls f when the connection's owner closes it, before the session ends, unless stop was called; at once, on
	// another goroutine, where it was closed before. It is nil where the connection does not tell.
	WhenClosed func(f func()) (stop func())
}

// An Ephemeral is a znode of this process that lives in the session.
type Ephemeral interface {
	// SessionEnded tells that the znode's session ended or, of a held one only, that it cannot be relied on any more. It may be
	// called more than once, and from any goroutine.
	SessionEnded(cause error)
}

type tracked struct {
	ephemeral Ephemeral
	session   int64
	held      bool
}

// A Session is the shared state of one connection, over all the ZooKeeper sessions that the connection goes through. Get
// one with Use; safe for concurrent use.
type Session struct {
	conn          Conn
	closed        chan struct{}                         // closed by ConnClosed, once
	creating      chan struct{}                         // has a place for each create under way, see BeginCreate
	lastHandshake func(session int64) (time.Time, bool) // nil where the connection does not tell
	plain         bool                                  // see Config.Plain

	users       int         // guarded by registry.mu: waiters, holders, unfinished deletes, calls under way
	idle        *time.Timer // guarded by registry.mu: looks whether an entry without users can go
	stopOnClose func()      // guarded by registry.mu

	// mu guards what follows. It is not held across a call to ZooKeeper or to an Ephemeral.
	mu            sync.Mutex
	timeout       func() time.Duration
	serverTick    time.Duration // the longest that a user knows of
	heartbeat     heartbeat
	touch         touch
	handshakeSeen time.Time           // when the last handshake began, as far as the connection tells
	ephemerals    map[string]*tracked // by path
	watches       map[watchKey]*watch
	sweepAt       int
	noContainers  bool
	reconnected   chan struct{} // closed, and replaced, when the connection was away and is back
	suspectedAt   time.Time     // since when calls have failed as on a closed connection; zero: they do not
}

// registry finds the Session of a connection. An entry goes with its last user, unless dropIfIdleLocked has a reason to keep it
// for the next one, so that nothing global outlives its use.
var registry = struct {
	mu       sync.Mutex
	sessions map[Conn]*Session
}{sessions: map[Conn]*Session{}}

const (
	creatingAtMost = 64
	idleCheck      = 10 * time.Second
)

// Use returns the Session of conn and counts the caller as one of its users, until it calls Release.
func Use(conn Conn, cfg Config) *Session {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s := registry.sessions[conn]
	if s == nil {
		s = &Session{
			conn: conn, plain: cfg.Plain, lastHandshake: cfg.LastHandshake,
			timeout: cfg.Timeout,
			closed:  make(chan struct{}), reconnected: make(chan struct{}),
			creating:   make(chan struct{}, creatingAtMost),
			ephemerals: map[string]*tracked{}, watches: map[watchKey]*watch{},
			heartbeat: heartbeat{wall: wallClock},
		}
		registry.sessions[conn] = s
		if cfg.WhenClosed != nil {
			s.stopOnClose = cfg.WhenClosed(s.ConnClosed)
		}
	}
	s.learn(cfg)
	s.addUserLocked()
	return s
}

// learn keeps the shortest timeout and the longest tick that the connection's users know:
// to be told too early is the lesser evil.
func (s *Session) learn(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, told := s.timeout(), cfg.Timeout()
	if told > 0 && (known <= 0 || told < known) {
		s.timeout = cfg.Timeout
	}
	s.serverTick = max(s.serverTick, cfg.ServerTick)
}

// Retain counts one user more of a Session that has one.
func (s *Session) Retain() {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s.addUserLocked()
}

func (s *Session) addUserLocked() {
	if s.users++; s.users == 1 {
		stop(&s.idle)
		s.firstUser()
		s.startHeartbeat()
	}
}

// Release undoes one Use or Retain.
func (s *Session) Release() {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if s.users--; s.users == 0 {
		s.stopHeartbeat()
		s.dropIfIdleLocked()
	}
}

// dropIfIdleLocked forgets a Session without users, unless that would lose something: a pending watch would be set a second
// time, and a server without containers be asked again, which costs the connection.
func (s *Session) dropIfIdleLocked() {
	if s.users > 0 || registry.sessions[s.conn] != s {
		return
	}
	if s.isClosed() || !s.hasMemory() {
		stop(&s.idle)
		if s.stopOnClose != nil {
			s.stopOnClose()
		}
		delete(registry.sessions, s.conn)
		return
	}
	if s.idle == nil {
		s.idle = time.AfterFunc(idleCheck, func() {
			registry.mu.Lock()
			defer registry.mu.Unlock()
			s.idle = nil
			s.dropIfIdleLocked()
		})
	}
}

// hasMemory is false where the connection looks closed: a StateDisconnected that an outage shows is momentary.
func (s *Session) hasMemory() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLocked()
	return len(s.watches) > 0 || s.noContainers && s.conn.State() != zk.StateDisconnected
}

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// ConnClosed takes note that the connection was closed: every ephemeral is lost, every wait ends.
func (s *Session) ConnClosed() {
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return
	}
	close(s.closed)
	s.mu.Unlock()
	s.lose(func(t *tracked) error { return s.lossLocked(closedError{}, t.session) })
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s.dropIfIdleLocked()
}

// Closed is closed once the connection is known to be closed by its owner.
func (s *Session) Closed() <-chan struct{} { return s.closed }

func (s *Session) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Reconnected is closed when the connection, seen to be away after this call, is back.
func (s *Session) Reconnected() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconnected
}

// Track takes note that the znode at path is t's, in the given ZooKeeper session; Untrack ends that.
func (s *Session) Track(path string, session int64, t Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ephemerals[path] = &tracked{ephemeral: t, session: session}
}

// Untrack is documented at Track.
func (s *Session) Untrack(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ephemerals, path)
}

// Ephemeral returns the znode at path, nil where it is none of this process.
func (s *Session) Ephemeral(path string) Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ephemerals[path]; t != nil {
		return t.ephemeral
	}
	return nil
}

// lose tells those ephemerals for which why, called with mu held, has a cause.
func (s *Session) lose(why func(*tracked) error) {
	type lost struct {
		ephemeral Ephemeral
		cause     error
	}
	var found []lost
	s.mu.Lock()
	for _, t := range s.ephemerals {
		if cause := why(t); cause != nil {
			found = append(found, lost{t.ephemeral, cause})
		}
	}
	s.mu.Unlock()
	for _, l := range found {
		l.ephemeral.SessionEnded(l.cause)
	}
}
