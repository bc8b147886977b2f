package recipes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// A SessionEventKind is a change of a Client's session.
type SessionEventKind int

// The changes. The client learns of an expiry when it is connected again: SessionExpired
// precedes SessionConnected with a new session.
const (
	SessionConnected    SessionEventKind = iota + 1 // with a new or the former session
	SessionDisconnected                             // the session lasts for its timeout
	SessionExpired                                  // the session and its locks ended
	SessionClosed                                   // Close was called; it is the last
)

// String returns the kind in words.
func (k SessionEventKind) String() string {
	return word(int(k), "connected", "disconnected", "expired", "closed")
}

// A SessionEvent is a change of a Client's session, for metrics and logs.
type SessionEvent struct {
	Kind    SessionEventKind
	Server  string        // as it was dialled: that of the connection, or the last one's
	Session int64         // whose change it is
	Timeout time.Duration // the session timeout that the server granted
	Err     error         // matches zk.ErrConnectionClosed or zk.ErrSessionExpired
}

// WithClientObserver sets a function that is called with each change of the session, once
// and in order, for metrics and logs: SessionConnected and SessionDisconnected in turn,
// SessionExpired between the two if the session has ended, finally SessionClosed. A
// separate goroutine makes the calls; Close waits at most two seconds for it. f may call
// any method of the Client, and must be safe for concurrent use if shared. Its panic ends
// the process. If it is given several times, all are called, in that order.
func WithClientObserver(f func(SessionEvent)) ClientOption {
	return setter[clientSettings](func(s *clientSettings) error {
		if f == nil {
			return errors.New("WithClientObserver: observer is nil")
		}
		s.observers = append(s.observers, f)
		return nil
	})
}

// clientEvents takes what changes from zk's own goroutine, which does not wait, and logs
// and tells it on another.
type clientEvents struct {
	// Set before anybody else has it.
	observers []func(SessionEvent)
	log       *slog.Logger
	asked     time.Duration // the session timeout that Connect was given
	told      chan struct{} // closed when the last one was told

	mu        sync.Mutex     // guards what follows; not held while anything is told
	last      SessionEvent   // of those in which the session has changed; zero before
	connected bool           // and not disconnected since
	queue     []SessionEvent // not told yet
	closing   bool           // nothing but the end is to come: last remains
	more      chan struct{}  // has room for one; closed at the end
}

func newClientEvents(s *clientSettings, asked time.Duration) *clientEvents {
	return &clientEvents{
		observers: s.observers, log: s.log, asked: asked,
		told: make(chan struct{}), more: make(chan struct{}, 1),
	}
}

// gotSession takes note of a handshake. zk tells of an end of the former session, but
// where the server has given another without a word.
func (c *clientEvents) gotSession(server string, id int64, timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	if c.last.Session != 0 && c.last.Session != id {
		c.expiredLocked(server)
	}
	c.last.Server, c.last.Session, c.last.Timeout = server, id, timeout
	c.connected = true
	c.addLocked(SessionConnected, nil)
}

// disconnected takes note that there is no connection; zk says so after each attempt,
// too. cut is why the client itself has cut it, or nil.
func (c *clientEvents) disconnected(cut error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || !c.connected {
		return
	}
	c.connected = false
	err := zk.ErrConnectionClosed
	if cut != nil {
		err = fmt.Errorf("%w: %w", err, cut)
	}
	c.addLocked(SessionDisconnected, err)
}

// expired takes note that a server says that the session has ended.
func (c *clientEvents) expired(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expiredLocked(server)
}

func (c *clientEvents) expiredLocked(server string) {
	if !c.closing && c.last.Session != 0 {
		c.last.Server = server
		c.addLocked(SessionExpired, zk.ErrSessionExpired)
		c.last.Session = 0
	}
}

func (c *clientEvents) addLocked(kind SessionEventKind, err error) {
	c.last.Kind, c.last.Err = kind, err
	c.queue = append(c.queue, c.last)
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// close begins the end: what else happens from now on is told no more.
func (c *clientEvents) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
}

// end tells the end, where there was a beginning. It is called once, after close.
func (c *clientEvents) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.Kind != 0 {
		c.last.Kind, c.last.Err = SessionClosed, nil
		c.queue = append(c.queue, c.last)
	}
	close(c.more)
}

// notify logs and tells what has changed, until the end was told.
func (c *clientEvents) notify() {
	defer close(c.told)
	granted := c.asked
	for open := true; open; {
		_, open = <-c.more
		c.mu.Lock()
		queue := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, e := range queue {
			c.logEvent(e)
			if e.Kind == SessionConnected && e.Timeout != granted {
				c.logGranted(e)
				granted = e.Timeout
			}
			c.observe(e)
		}
	}
}

// observe calls the observers, which may end their goroutine: they are told the next
// event all the same.
func (c *clientEvents) observe(e SessionEvent) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, f := range c.observers {
			f(e)
		}
	}()
	<-done
}

func (c *clientEvents) logEvent(e SessionEvent) {
	level, text := slog.LevelInfo, "zookeeper: connected"
	switch e.Kind {
	case SessionConnected:
	case SessionDisconnected:
		level, text = slog.LevelWarn, "zookeeper: connection lost"
	case SessionExpired:
		level, text = slog.LevelWarn, "zookeeper: session expired"
	case SessionClosed:
		text = "zookeeper: client closed"
	}
	c.log.Log(context.Background(), level, text, "server", e.Server,
		"session", sessionText(e.Session), "timeout", e.Timeout)
}

func (c *clientEvents) logGranted(e SessionEvent) {
	if e.Timeout != c.asked {
		c.log.Warn("zookeeper: server granted a different session timeout",
			"requested", c.asked, "granted", e.Timeout, "server", e.Server)
	}
}

// A clientLog passes on what the client's goroutines log while they connect, on another
// one: a handler that does not return, or takes long, keeps nothing from going on. It is
// the slog.Handler of those goroutines.
type clientLog struct {
	slog.Handler                   // the user's
	records      chan *slog.Record // few come: room for all would take 300 kB
	dropped      *atomic.Int64     // since the last that was passed on
	ended        chan struct{}     // closed when nothing more is to come
	told         chan struct{}     // closed when the last was passed on
}

// clientLogAtMost is how many records wait for a handler. Later ones are dropped.
const clientLogAtMost = 1024

func newClientLog(l *slog.Logger) *clientLog {
	return &clientLog{
		Handler: l.Handler(), records: make(chan *slog.Record, clientLogAtMost),
		dropped: new(atomic.Int64), ended: make(chan struct{}), told: make(chan struct{}),
	}
}

// Enabled implements slog.Handler. The user's is asked later, as it may not return.
func (l *clientLog) Enabled(context.Context, slog.Level) bool {
	return l.Handler != slog.DiscardHandler
}

// Handle implements slog.Handler.
func (l *clientLog) Handle(_ context.Context, r slog.Record) error {
	select {
	case l.records <- &r:
	default:
		l.dropped.Add(1)
	}
	return nil
}

// pass hands the records over, until the end.
func (l *clientLog) pass() {
	defer close(l.told)
	for {
		select {
		case r := <-l.records:
			l.handle(r)
			continue
		default:
		}
		select {
		case r := <-l.records:
			l.handle(r)
		case <-l.ended:
			return
		}
	}
}

func (l *clientLog) handle(r *slog.Record) {
	ctx := context.Background()
	if l.Handler.Enabled(ctx, r.Level) {
		_ = l.Handler.Handle(ctx, *r) // as package slog does with its errors
	}
	if n := l.dropped.Swap(0); n > 0 {
		slog.New(l.Handler).Warn("zookeeper: the log handler was too slow", "dropped", n)
	}
}
