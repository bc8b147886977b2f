package zkconn

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/reliance"
	"github.com/zkrecipes/recipes/internal/watches"
)

// A Conn is the shared state of one connection, over all the ZooKeeper sessions that
// the connection goes through. Get one with Use; safe for concurrent use.
type Conn struct {
	// Set by Use, before anybody else has the Conn.
	requests // the calls of the Client
	brought
	creating chan struct{} // see BeginCreate

	usage // guarded by registry.mu

	// mu guards knowledge; see the lock order in the package's documentation.
	mu sync.Mutex
	knowledge

	*watches.Shared // set by Use; it has a mutex of its own

	// Closed by ConnClosed, once, with mu held.
	closed chan struct{}
}

// What the first user of a Conn has brought; see Config.
type brought struct {
	plain         bool
	whenClosed    func(f func()) (stop func())          // may be nil
	lastHandshake func(session int64) (time.Time, bool) // may be nil
	inOrder       bool
	server        func() string
	createdAt     func(path string) (zxid int64) // may be nil
}

// The usage of a Conn is who needs it, and what is done when nobody does.
type usage struct {
	users       int         // waiters, holders, unfinished deletes, calls under way
	idle        *time.Timer // looks whether a Conn without users can be forgotten
	rested      bool        // it has, and nobody has used it since it looked
	stopOnClose func()      // takes back Config.WhenClosed; nil: nothing to take back
}

// The knowledge of a Conn is what it has learned, and who is told of it.
type knowledge struct {
	ledger       reliance.Ledger // who relies on a session, and how long that can be
	heartbeat    heartbeat       // what keeps it so
	reconnects   reconnects      // when the connection was away and is back
	availability availability    // whether ZooKeeper answers
	suspicion    suspicion       // whether the connection was closed
	notes        notes           // what its users have learned
	cuts         cuts            // what the servers may not accept
	noContainers bool            // the server has said that it knows none
	quietUntil   time.Time       // until when no request is sent (HoldBack)

	wall func(now time.Time) time.Time // the wall clock of a reading
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

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// Closed is closed once the connection is known to be closed by its owner.
func (s *Conn) Closed() <-chan struct{} { return s.closed }

func (s *Conn) isClosed() bool { return isDone(s.closed) }

// Use returns the Conn of a client and counts the caller as one of its users, until it
// calls Release.
func Use(client Client, cfg Config) *Conn {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s := registry.conns[client]
	if s == nil {
		s = newConn(client, cfg)
		registry.conns[client] = s
	}
	s.mu.Lock()
	s.ledger.Learn(cfg.Timeout, cfg.ServerTick) // each user knows what its options tell
	s.ledger.Tell(cfg.Log)
	s.mu.Unlock()
	s.retainLocked()
	return s
}

func newConn(client Client, cfg Config) *Conn {
	if cfg.Server == nil {
		cfg.Server = func() string { return "" }
	}
	s := &Conn{
		brought: brought{
			plain: cfg.Plain, whenClosed: cfg.WhenClosed,
			lastHandshake: cfg.LastHandshake, inOrder: cfg.InOrder,
			server: cfg.Server, createdAt: cfg.CreatedAt,
		},
		creating: make(chan struct{}, creatingAtMost),
		knowledge: knowledge{
			reconnects: reconnects{next: make(chan struct{})},
			notes:      notes{values: map[any]any{}},
			wall:       wallClock,
		},
		closed: make(chan struct{}),
	}
	s.requests = requests{conn: client, s: s}
	s.ledger = reliance.New(reliance.Config{
		SessionID: client.SessionID, Timeout: cfg.Timeout, Advice: cfg.Advice,
		LastHandshake: cfg.LastHandshake,
		Wall:          func(now time.Time) time.Time { return s.wall(now) },
	})
	s.Shared = watches.New(s)
	s.heartbeat.s = s
	return s
}

// Retain counts one user more, also of a Conn that was forgotten: a hold can be released
// long after its loss, and its znode may have to be deleted then.
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
		if s.stopOnClose == nil && s.whenClosed != nil {
			s.stopOnClose = s.whenClosed(s.ConnClosed)
		}
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

// wallClock is what a reading of the clock says without its monotonic part.
func wallClock(now time.Time) time.Time { return now.Round(0) }

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

// Track takes note that the znode at path is e's, in the given ZooKeeper session, until
// Untrack.
func (s *Conn) Track(path string, session int64, e reliance.Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Track(path, session, e)
}

// Untrack is documented at Track.
func (s *Conn) Untrack(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Untrack(path)
}

// Ephemeral returns the znode at path, nil where it is none of this process.
func (s *Conn) Ephemeral(path string) reliance.Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Ephemeral(path)
}

// EphemeralsAt returns the znode at path and those below it, as far as they are of this
// process.
func (s *Conn) EphemeralsAt(path string) []reliance.Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.EphemeralsAt(path)
}

// Hold is [reliance.Ledger.Hold].
func (s *Conn) Hold(path string, margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, err := s.ledger.Hold(path, margin)
	s.heartbeat.lookBy(until)
	return err
}

// Rely is [reliance.Ledger.Rely].
func (s *Conn) Rely(path string, e reliance.Ephemeral, margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, err := s.ledger.Rely(path, e, margin)
	s.heartbeat.lookBy(until)
	return err
}

// Forgo undoes Rely.
func (s *Conn) Forgo(e reliance.Ephemeral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Forgo(e)
}

// Waive takes the margin off the ephemeral at path: those who rely on it have their own.
func (s *Conn) Waive(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Waive(path)
}

// CheckMargin returns an error, which says what to do, if a hold with a loss margin can
// never be relied on.
func (s *Conn) CheckMargin(margin time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.CheckMargin(margin)
}

// After calls f once, when d has passed, with no mutex held, unless stop was called
// before. A call that is under way is not waited for by stop. f is called by the tick, so
// it must not wait for anything. Whoever calls After has the Conn in use until then:
// without users there is no tick.
func (s *Conn) After(d time.Duration, f func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.ledger.Set(d, f)
	s.heartbeat.lookBy(a.At())
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ledger.Stop(a)
	}
}

// tellLosses tells each ephemeral that is lost. That is judged anew for each: what the
// tick has seen may be of a session, or of an outage, that has ended since. Whose session
// has ended comes first: no contact can save it.
func (s *Conn) tellLosses() {
	s.tell((*reliance.Ledger).Ended)
	s.tell((*reliance.Ledger).Suspended)
}

// tell gives those notices.
func (s *Conn) tell(which func(*reliance.Ledger) []reliance.Notice) {
	s.mu.Lock()
	notices := which(&s.ledger)
	s.mu.Unlock()
	for _, n := range notices { // without mu: an Ephemeral has locks of its own
		n.Of.SessionEnded(n.Cause)
	}
}

// ConnClosed takes note that the connection was closed: every ephemeral is lost, every
// wait ends. When it returns they have been told. So a Client that calls it before it
// ends its session (Config.WhenClosed) lets no other have a lock before its holder here
// knows.
func (s *Conn) ConnClosed() {
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return
	}
	close(s.closed)
	s.ledger.Close()
	s.mu.Unlock()
	s.tell((*reliance.Ledger).Closed)
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s.forgetIfIdleLocked()
}

// creatingAtMost is how many creates may be under way on a connection.
const creatingAtMost = 64

// BeginCreate waits for a place among the creates under way, until EndCreate. Every
// waiter needs a create of its own, so without it as many goroutines as there are
// callers, who come and leave, would hang at a mute server.
func (s *Conn) BeginCreate(ctx context.Context) error {
	select {
	case s.creating <- struct{}{}:
		return nil
	case <-ctx.Done():
		return outcome.Cancelled(ctx)
	case <-s.closed:
		return outcome.ClosedError{}
	}
}

// EndCreate is documented at BeginCreate.
func (s *Conn) EndCreate() { <-s.creating }

// notes are what the users of a connection have learned and may want to know again, the
// latest of it. Any of it can be forgotten at any time. They are guarded by Conn.mu.
type notes struct {
	values map[any]any
	keys   []any // in a ring
	next   int   // the index of the key that is forgotten next, once there are many
}

const notesAtMost = 1000

func (n *notes) keep(key, value any) {
	if _, ok := n.values[key]; !ok {
		if len(n.keys) < notesAtMost {
			n.keys = append(n.keys, nil)
		}
		delete(n.values, n.keys[n.next])
		n.keys[n.next] = key
		n.next = (n.next + 1) % notesAtMost
	}
	n.values[key] = value
}

// Note keeps a value for whoever asks for that key.
func (s *Conn) Note(key, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.keep(key, value)
}

// Noted returns the last value that was kept for a key; nil where it is not known.
func (s *Conn) Noted(key any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes.values[key]
}

// status returns what the connection shows just now.
func (s *Conn) status() connState {
	server := s.server() // first: it may change from now on
	now := connState{
		session:   s.conn.SessionID(),
		connected: s.conn.State() == zk.StateHasSession,
	}
	if s.lastHandshake == nil {
		if now.connected {
			now.server = server
		}
		return now
	}
	if at, ok := s.lastHandshake(now.session); ok {
		now.handshake = at
	}
	return now
}

// Reconnected is closed when the connection, seen to be away after this call, is back. It
// looks: that the connection is back already need not have been seen before.
func (s *Conn) Reconnected() <-chan struct{} {
	now := s.status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawLocked(now)
	return s.reconnects.next
}

// sawLocked takes note of what a look has shown.
func (s *Conn) sawLocked(now connState) {
	s.reconnects.observe(now)
	s.lookDown()
}

// AwaySince looks at the connection and tells whether it was away since reconnected, of
// [Conn.Reconnected], was got. What was missed meanwhile the client tells in any
// order, and before the next tick: so who draws a conclusion from one event and not
// another asks here first. A *zk.Conn that lost no request does not tell.
func (s *Conn) AwaySince(reconnected <-chan struct{}) bool {
	now := s.status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawLocked(now)
	return isDone(reconnected)
}

// Epoch looks at the connection and returns how often it has been away. What was learned
// in one epoch from watches that are pending counts in that one only; see
// [Conn.AwaySince].
func (s *Conn) Epoch() uint64 {
	now := s.status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawLocked(now)
	return s.reconnects.epoch
}

// Reconnects is how often the connection was seen to be away. What only counts as a
// reconnect does not count here; see reconnects.blind.
func (s *Conn) Reconnects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconnects.times
}

// lookDown looks at the connection. It is called with mu held, so that what is seen is
// in order: a *zk.Conn reads its state without a lock. Another Client may play an outage,
// after which there is no handshake.
func (s *Conn) lookDown() {
	if !s.plain {
		return
	}
	now := s.ledger.Now() // before the state, which may change
	switch s.conn.State() {
	case zk.StateDisconnected, zk.StateConnecting:
		s.ledger.SawDown(now)
	case zk.StateHasSession:
		s.ledger.SawUp(s.conn.SessionID())
	}
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
