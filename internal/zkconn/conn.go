package zkconn

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/reliance"
)

// A Conn is the shared state of one connection, over all the ZooKeeper sessions that
// the connection goes through. Get one with Use; it is safe for concurrent use.
type Conn struct {
	// Set by Use, before anybody else has the Conn.
	client   Client
	cfg      Config        // what the first user knew
	creating chan struct{} // see BeginCreate
	closed   chan struct{} // closed by ConnClosed, once, with mu held

	// Guarded by registry.mu.
	users       int         // waiters, holders, unfinished deletes, calls under way
	idle        *time.Timer // checks whether a Conn without users can be forgotten
	idleChecked bool        // it has checked, and nobody has used the Conn since
	stopOnClose func()      // takes back Config.WhenClosed; nil: nothing to take back

	// mu guards the rest; see the lock order in the package's documentation. Most events
	// concern several of these, and none of them takes more than some arithmetic.
	mu           sync.Mutex
	ledger       reliance.Ledger               // who relies on a session, and until when
	heartbeat    heartbeat                     // keeps the ledger's evidence fresh
	reconnects   reconnects                    // when the connection was away and is back
	availability availability                  // whether ZooKeeper answers
	suspicion    suspicion                     // whether the connection was closed
	notes        map[any]any                   // what users have learned; see Note
	cuts         cuts                          // requests that the servers may not accept
	noContainers bool                          // the server has said so
	quietUntil   time.Time                     // until when no request is sent (HoldBack)
	wall         func(now time.Time) time.Time // the wall clock of a reading
	Watches
}

// registry finds the Conn of a client. Users who share a connection have nothing in
// common but the client, so its dynamic type must be comparable.
var registry = struct {
	mu    sync.Mutex
	conns map[Client]*Conn
}{conns: map[Client]*Conn{}}

// Use returns the Conn of a client and counts the caller as one of its users, until it
// calls Release.
func Use(client Client, cfg Config) *Conn {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	c := registry.conns[client]
	if c == nil {
		c = newConn(client, cfg)
		registry.conns[client] = c
	}
	// The first user's Config stays, but each user may know more of the timeout, and may
	// bring a log.
	c.mu.Lock()
	c.ledger.Learn(cfg.Timeout, cfg.ServerTick)
	c.ledger.WarnTo(cfg.Log)
	c.mu.Unlock()
	c.retainLocked()
	return c
}

func newConn(client Client, cfg Config) *Conn {
	if cfg.Server == nil {
		cfg.Server = func() string { return "" }
	}
	c := &Conn{
		client:     client,
		cfg:        cfg,
		creating:   make(chan struct{}, creatingAtMost),
		closed:     make(chan struct{}),
		reconnects: reconnects{next: make(chan struct{})},
		notes:      map[any]any{},
		wall:       wallClock,
	}
	c.ledger = reliance.New(reliance.Config{
		SessionID: client.SessionID, Timeout: cfg.Timeout, Advice: cfg.Advice,
		LastHandshake: cfg.LastHandshake,
		Wall:          func(now time.Time) time.Time { return c.wall(now) },
	})
	c.heartbeat.conn = c
	c.Watches = Watches{conn: c, shared: map[watchKey]*watch{}}
	return c
}

// wallClock is what a reading of the clock says without its monotonic part.
func wallClock(now time.Time) time.Time { return now.Round(0) }

// Retain counts one more user, also of a Conn that was forgotten: a hold can be released
// long after its loss, and its znode may have to be deleted then.
func (c *Conn) Retain() {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	c.retainLocked()
}

// retainLocked is called with registry.mu held.
func (c *Conn) retainLocked() {
	if c.users++; c.users > 1 {
		return
	}
	stop(&c.idle)
	c.idleChecked = false
	// A Conn that is kept without users may still have its callback.
	if c.stopOnClose == nil && c.cfg.WhenClosed != nil {
		c.stopOnClose = c.cfg.WhenClosed(c.ConnClosed)
	}
	c.heartbeat.start()
}

// Release undoes one Use or Retain.
func (c *Conn) Release() {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if c.users--; c.users == 0 {
		c.heartbeat.stop()
		c.forgetIfIdleLocked()
	}
}

// idleCheck is how often a Conn is checked that is kept without users.
const idleCheck = 10 * time.Second

// forgetIfIdleLocked forgets a Conn without users, unless that would lose something. It
// is called with registry.mu held.
func (c *Conn) forgetIfIdleLocked() {
	if c.users > 0 {
		return
	}
	// A Conn that was forgotten can be used on by Retain. Its client may have another
	// Conn by now, which stays.
	known := registry.conns[c.client] == c
	if !known || c.isClosed() || !c.worthKeeping() {
		stop(&c.idle)
		if c.stopOnClose != nil {
			c.stopOnClose()
			c.stopOnClose = nil
		}
		if known {
			delete(registry.conns, c.client)
		}
		return
	}
	if c.idle != nil {
		return
	}
	var check *time.Timer
	check = time.AfterFunc(idleCheck, func() {
		registry.mu.Lock()
		defer registry.mu.Unlock()
		if c.idle == check { // otherwise it was stopped as it fired
			c.idle, c.idleChecked = nil, true
			c.forgetIfIdleLocked()
		}
	})
	c.idle = check
}

// worthKeeping reports whether the Conn knows something that the next user needs.
func (c *Conn) worthKeeping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sweepLocked() > 0 {
		return true // a second watch on the same path would leave this one to the client
	}
	if len(c.notes) > 0 && !c.idleChecked {
		return true // notes are worth something for idleCheck
	}
	// To ask a server again for containers costs the connection. If the connection looks
	// closed there is none to lose; an outage shows StateDisconnected for moments only.
	return c.noContainers && c.client.State() != zk.StateDisconnected
}

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// Closed is closed once the connection is known to be closed by its owner.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

func (c *Conn) isClosed() bool { return isDone(c.closed) }

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// ConnClosed records that the connection was closed: every ephemeral is lost, every wait
// ends. When it returns, all ephemerals have been notified. So if a client calls it
// before it ends its session (Config.WhenClosed), nobody else gets a lock before its
// holder here knows of the loss.
func (c *Conn) ConnClosed() {
	c.mu.Lock()
	if c.isClosed() {
		c.mu.Unlock()
		return
	}
	close(c.closed)
	c.ledger.Close()
	c.mu.Unlock()
	c.tellLosses()
	registry.mu.Lock()
	defer registry.mu.Unlock()
	c.forgetIfIdleLocked()
}

// InOrder reports whether events and answers arrive in the order in which the server sent
// them. Only then does a watch that has not fired prove anything about the time of an
// answer.
func (c *Conn) InOrder() bool { return c.cfg.InOrder }

// TellsCreates reports whether the connection knows when it has created what.
func (c *Conn) TellsCreates() bool { return c.cfg.CreatedAt != nil }

// CreatedAt is Config's; it returns 0 if that is nil.
func (c *Conn) CreatedAt(path string) (zxid int64) {
	if c.cfg.CreatedAt == nil {
		return 0
	}
	return c.cfg.CreatedAt(path)
}

// TellsClose reports whether the connection tells that its owner closes it, before it
// ends the session.
func (c *Conn) TellsClose() bool { return c.cfg.WhenClosed != nil }

// TellsReconnects reports whether a reconnect is always seen. If no handshake tells, one
// between two looks may not be.
func (c *Conn) TellsReconnects() bool { return c.cfg.LastHandshake != nil }

// creatingAtMost is how many creates may be under way on a connection.
const creatingAtMost = 64

// BeginCreate waits for one of the places for creates under way, until EndCreate. Each
// waiter needs a create of its own. Without the limit, callers who come and leave while a
// server is mute would each leave a goroutine behind.
func (c *Conn) BeginCreate(ctx context.Context) error {
	select {
	case c.creating <- struct{}{}:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ledger.BeginCreate()
		return nil
	case <-ctx.Done():
		return outcome.Cancelled(ctx)
	case <-c.closed:
		return outcome.ClosedError{}
	}
}

// EndCreate is documented at BeginCreate.
func (c *Conn) EndCreate() {
	c.mu.Lock()
	c.ledger.EndCreate()
	c.mu.Unlock()
	<-c.creating
}

// Track records that the znode at path is e's, in the given ZooKeeper session, until
// Untrack.
func (c *Conn) Track(path string, session int64, e reliance.Ephemeral) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.Track(path, session, e)
}

// Untrack is documented at Track.
func (c *Conn) Untrack(path string, e reliance.Ephemeral) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.Untrack(path, e)
}

// Rest says that the ephemeral at path is far from its turn: it needs no proof of its
// session until Approach, or Hold. While all ephemerals are, the heartbeat rests.
func (c *Conn) Rest(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.Rest(path)
}

// Approach undoes Rest. If a sync is due by now, it sends one, and returns it: its answer
// may be the proof that Hold needs. Otherwise it returns nil.
func (c *Conn) Approach(path string) (proof *calls.Pending[struct{}]) {
	c.mu.Lock()
	c.ledger.Approach(path)
	h := &c.heartbeat
	due := h.takeDueSyncLocked(c.ledger.NextSync(c.client.SessionID(), h.lastSync))
	c.mu.Unlock()
	if !due {
		return nil
	}
	return c.startSync()
}

func (c *Conn) startSync() *calls.Pending[struct{}] {
	return calls.Start(c, func() (none struct{}, err error) { return none, c.Sync("/") })
}

// AskAtRest sends a sync if the heartbeat rests, for one who has to know whether
// ZooKeeper answers (Unavailable). One that was sent just before does for all: the time
// of very many may be up together.
func (c *Conn) AskAtRest() {
	c.mu.Lock()
	h := &c.heartbeat
	due := false
	if c.ledger.Rests() {
		due = h.takeDueSyncLocked(h.lastSync.Add(tickEvery))
	}
	c.mu.Unlock()
	if due {
		c.startSync()
	}
}

// Ephemeral returns the znode at path; nil if it is not one of this process.
func (c *Conn) Ephemeral(path string) reliance.Ephemeral {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.Ephemeral(path)
}

// EphemeralsAt returns those znodes of this process that are at path or below it.
func (c *Conn) EphemeralsAt(path string) []reliance.Ephemeral {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.EphemeralsAt(path)
}

// Until is [reliance.Ledger.Until].
func (c *Conn) Until(path string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.Until(path)
}

// Hold is [reliance.Ledger.Hold], and has the tick look when that wants it.
func (c *Conn) Hold(path string, margin time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, err := c.ledger.Hold(path, margin)
	c.heartbeat.lookEarlierLocked(until)
	return err
}

// Judge is [reliance.Ledger.Judge].
func (c *Conn) Judge(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.Judge(path)
}

// CheckMargin returns an error, which says what to do, if a hold with a loss margin can
// never be relied on.
func (c *Conn) CheckMargin(margin time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.CheckMargin(margin)
}

// After calls f once, when d has passed, with no mutex held, unless stop was called
// before. stop does not wait for a call under way. f is called by the tick, so it must
// not wait for anything. The caller must keep the Conn in use until then: without users
// there is no tick.
func (c *Conn) After(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.ledger.Set(d, f)
	c.heartbeat.lookEarlierLocked(a.At())
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ledger.Stop(a)
	}
}

// tellLosses notifies each ephemeral that is lost. It judges each again: the tick may
// have seen a session, or an outage, that has ended since. Ephemerals whose session has
// ended come first: no contact can save them.
func (c *Conn) tellLosses() {
	c.tell((*reliance.Ledger).EndedNotices)
	c.tell((*reliance.Ledger).SuspendedNotices)
}

// tell gives the notices that the ledger has.
func (c *Conn) tell(which func(*reliance.Ledger) []reliance.Notice) {
	c.mu.Lock()
	notices := which(&c.ledger)
	c.mu.Unlock()
	for _, n := range notices { // without mu: an Ephemeral has locks of its own
		n.Of.Lose(n.Cause)
	}
}

const notesAtMost = 1000

// Note keeps a value, which Noted returns for that key. It can be forgotten at any time.
func (c *Conn) Note(key, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.notes[key]; !known && len(c.notes) >= notesAtMost {
		for one := range c.notes { // none is worth more than another
			delete(c.notes, one)
			break
		}
	}
	c.notes[key] = value
}

// Noted returns the last value that was kept for a key; nil if it is not known.
func (c *Conn) Noted(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notes[key]
}

// Reconnected returns a channel that is closed when the connection is back, if it is seen
// to be away after this call. The call looks at the connection, so that an absence which
// has ended does not count.
func (c *Conn) Reconnected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	return c.reconnects.next
}

// AwaySince looks at the connection and reports whether it was away since the call of
// [Conn.Reconnected] that returned reconnected. The client delivers the events that were
// missed meanwhile in any order, and before the next tick. So a caller that concludes
// something from one event and the absence of another asks here first. A *zk.Conn that
// lost no request does not tell.
func (c *Conn) AwaySince(reconnected <-chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	return isDone(reconnected)
}

// Epoch looks at the connection and returns how often it has been away. What pending
// watches have shown in one epoch counts in that one only; see [Conn.AwaySince].
func (c *Conn) Epoch() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	return c.reconnects.epoch
}

// lookLocked looks at the connection, records what it shows, and returns that. The order
// of the readings matters: the client changes them without our mutex.
func (c *Conn) lookLocked() connState {
	at := c.ledger.Now() // a handshake that follows on what is seen begins after this
	now := connState{state: c.client.State()}
	// Between two servers a *zk.Conn holds the mutex of Server while its host provider
	// chooses, for as long as that takes. No loss may wait for it. If the connection has
	// broken when the state is read again, this may be the server to be tried next.
	if c.cfg.LastHandshake == nil && now.connected() {
		server := c.cfg.Server()
		if now.state = c.client.State(); now.connected() {
			now.server = server
		}
	}
	// It is read after the state that it belongs to, so that no new session is missed.
	now.session = c.client.SessionID()
	if c.cfg.LastHandshake != nil {
		if began, ok := c.cfg.LastHandshake(now.session); ok {
			now.handshake = began
		}
	}
	c.reconnects.observe(now)
	// A *zk.Conn tells of no handshakes, so they are dated by when it was seen to be
	// down. A wrapper may simulate an outage, after which there is no handshake.
	if c.cfg.Plain {
		switch now.state {
		case zk.StateDisconnected, zk.StateConnecting:
			c.ledger.SawDown(at)
		case zk.StateHasSession:
			c.ledger.SawUp(now.session)
		}
	}
	return now
}
