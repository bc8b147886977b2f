package zkconn

import "github.com/zkrecipes/recipes/internal/watches"

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
		brought: brought{
			plain: cfg.Plain, tellsClose: cfg.WhenClosed != nil,
			lastHandshake: cfg.LastHandshake, inOrder: cfg.InOrder,
			server: cfg.Server, createdAt: cfg.CreatedAt,
		},
		creating: make(chan struct{}, creatingAtMost),
		knowledge: knowledge{
			clock: clock{
				wall: wallClock, timeout: cfg.Timeout,
				lastHandshake: cfg.LastHandshake, advice: cfg.Advice,
			},
			reconnects: reconnects{next: make(chan struct{})},
			ephemerals: ephemerals{}, reliers: reliers{}, alarms: alarms{},
			notes: notes{values: map[any]any{}},
		},
		closed: make(chan struct{}),
	}
	s.requests = requests{conn: client, s: s}
	s.Shared = watches.New(s)
	s.heartbeat.s = s
	return s
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
