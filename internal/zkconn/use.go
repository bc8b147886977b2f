package zkconn

import (
	"time"

	"github.com/zkrecipes/recipes/internal/reliance"
	"github.com/zkrecipes/recipes/internal/watches"
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
