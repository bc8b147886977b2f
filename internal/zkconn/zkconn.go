package zkconn

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Client is the part of a ZooKeeper client that is used here.
type Client interface {
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

// Config is what a user of a connection knows about it. It counts for all users, and
// stays when this one leaves, until the Conn is forgotten. What is to last as long as
// one hold belongs to its ephemeral (tracked).
type Config struct {
	// Timeout is the negotiated session timeout, 0 where it is unknown. It is not nil.
	Timeout func() time.Duration
	// Advice is what a loss says is to be done where Timeout is unknown.
	Advice string
	// ServerTick is the servers' tick, 0 where it is unknown.
	ServerTick time.Duration
	// Plain tells that the connection is a *zk.Conn, and so how one looks that was
	// closed.
	Plain bool
	// LastHandshake tells when the last handshake of that session began; nil where the
	// connection does not tell.
	LastHandshake func(session int64) (time.Time, bool)
	// InOrder: the event of a watch is in its channel before the answer to any later
	// request returns.
	InOrder bool
	// Server returns the server that the connection uses; nil where it does not tell.
	Server func() string
	// CreatedAt tells the zxid of the create of an ephemeral sequential znode, by the
	// path that was asked for, once: 0 where it is not known. It is nil where the
	// connection does not tell.
	CreatedAt func(path string) (zxid int64)
	// WhenClosed calls f when the connection's owner closes it, before the session ends,
	// unless stop was called; at once, on another goroutine, where it was closed before.
	// It is nil where the connection does not tell.
	WhenClosed func(f func()) (stop func())
}

// A Conn is the shared state of one connection, over all the ZooKeeper sessions that
// the connection goes through. Get one with Use; safe for concurrent use.
type Conn struct {
	// Set by Use, before anybody else has the Conn.
	requests                                            // the calls of the Client
	plain         bool                                  // see Config.Plain
	tellsClose    bool                                  // Config has a WhenClosed
	lastHandshake func(session int64) (time.Time, bool) // see Config; may be nil
	inOrder       bool                                  // see Config
	server        func() string                         // see Config
	createdAt     func(path string) (zxid int64)        // see Config; may be nil
	creating      chan struct{}                         // see BeginCreate

	// Guarded by registry.mu.
	users       int         // waiters, holders, unfinished deletes, calls under way
	idle        *time.Timer // looks whether a Conn without users can be forgotten
	rested      bool        // it has, and nobody has used it since it looked
	stopOnClose func()      // takes back Config.WhenClosed; nil where there is none

	// mu guards what follows; see the lock order in the package's documentation.
	mu           sync.Mutex
	clock        clock        // how long a session can be relied on
	heartbeat    heartbeat    // what keeps it so
	reconnects   reconnects   // when the connection was away and is back
	availability availability // whether ZooKeeper answers
	suspicion    suspicion    // whether the connection was closed
	ephemerals   ephemerals   // the znodes of this process
	reliers      reliers      // those who rely on them with a margin of their own
	alarms       alarms       // what is to be done at a time
	watches                   // the watches that are pending
	notes        notes        // what its users have learned
	noContainers bool         // the server has said that it knows none
	quietUntil   time.Time    // until when no request is sent (HoldBack)

	// Closed by ConnClosed, once, with mu held.
	closed chan struct{}
}

// registry finds the Conn of a connection: what is shared must be found by all who use
// the connection, and they have nothing in common but the Client. So its dynamic type
// must be comparable.
var registry = struct {
	mu    sync.Mutex
	conns map[Client]*Conn
}{conns: map[Client]*Conn{}}

const (
	// creatingAtMost is how many creates may be under way on a connection.
	creatingAtMost = 64
	// idleCheck is how often a Conn without users, which is kept for what it knows, is
	// looked after.
	idleCheck = 10 * time.Second
)

// Use returns the Conn of a client and counts the caller as one of its users, until it
// calls Release.
func Use(client Client, cfg Config) *Conn {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s := registry.conns[client]
	if s == nil {
		s = newConn(client, cfg)
		registry.conns[client] = s
		if cfg.WhenClosed != nil {
			s.stopOnClose = cfg.WhenClosed(s.ConnClosed)
		}
	}
	s.mu.Lock()
	s.clock.learn(cfg) // each user knows what its options tell
	s.mu.Unlock()
	s.retainLocked()
	return s
}

func newConn(client Client, cfg Config) *Conn {
	if cfg.Server == nil {
		cfg.Server = func() string { return "" }
	}
	s := &Conn{
		plain: cfg.Plain, tellsClose: cfg.WhenClosed != nil,
		lastHandshake: cfg.LastHandshake,
		inOrder:       cfg.InOrder, server: cfg.Server, createdAt: cfg.CreatedAt,
		creating: make(chan struct{}, creatingAtMost),
		clock: clock{
			wall: wallClock, timeout: cfg.Timeout, lastHandshake: cfg.LastHandshake,
			advice: cfg.Advice,
		},
		reconnects: reconnects{next: make(chan struct{})},
		ephemerals: ephemerals{}, reliers: reliers{}, alarms: alarms{},
		closed: make(chan struct{}),
	}
	s.requests = requests{conn: client, s: s}
	s.watches = watches{shared: map[watchKey]*watch{}, s: s}
	s.notes.values = map[any]any{}
	s.heartbeat.s = s
	return s
}

// InOrder reports whether events and answers arrive in the order in which the server sent
// them. Only then does a watch that has not fired prove anything about the time of an
// answer.
func (s *Conn) InOrder() bool { return s.inOrder }

// TellsCreates tells whether the connection knows when it has created what.
func (s *Conn) TellsCreates() bool { return s.createdAt != nil }

// CreatedAt is Config's; 0 where that is nil.
func (s *Conn) CreatedAt(path string) (zxid int64) {
	if s.createdAt == nil {
		return 0
	}
	return s.createdAt(path)
}

// Retain counts one user more of a Conn that has one.
func (s *Conn) Retain() {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s.retainLocked()
}

// retainLocked is called with registry.mu held.
func (s *Conn) retainLocked() {
	if s.users++; s.users == 1 {
		stop(&s.idle)
		s.rested = false
		s.heartbeat.start()
	}
}

// Release undoes one Use or Retain.
func (s *Conn) Release() {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if s.users--; s.users == 0 {
		s.heartbeat.stop()
		s.forgetIfIdleLocked()
	}
}

// forgetIfIdleLocked forgets a Conn without users, unless that would lose something: a
// pending watch would be set a second time, a server without containers be asked again,
// which costs the connection, and notes are worth something for a while. It is called
// with registry.mu held.
func (s *Conn) forgetIfIdleLocked() {
	if s.users > 0 || registry.conns[s.conn] != s {
		return
	}
	if s.isClosed() || !s.worthKeeping() {
		stop(&s.idle)
		if s.stopOnClose != nil {
			s.stopOnClose()
		}
		delete(registry.conns, s.conn)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sweepWatches() > 0 || len(s.notes.values) > 0 && !s.rested ||
		s.noContainers && s.conn.State() != zk.StateDisconnected
}

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}
