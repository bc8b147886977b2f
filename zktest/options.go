package zktest

import (
	"cmp"
	"fmt"
	"time"
)

// An Option of Start and New.
type Option func(*settings)

type settings struct {
	servers    int
	tick       time.Duration
	longest    time.Duration // session timeout; 0: 20 ticks
	slowClose  time.Duration
	slowCommit time.Duration
	seed       uint64
}

// WithServers makes the service an ensemble of n servers; at least 1, which is the default.
func WithServers(n int) Option { return func(s *settings) { s.servers = n } }

// WithTick sets the tick, by default two seconds as in a real server; at least a millisecond. Sessions last between 2 and 20 ticks.
func WithTick(d time.Duration) Option { return func(s *settings) { s.tick = d } }

// WithMaxSession sets the longest session timeout that is granted (maxSessionTimeout), by default 20 ticks; at least 2.
func WithMaxSession(d time.Duration) Option { return func(s *settings) { s.longest = d } }

// WithSlowClose makes d pass between the end of an expired session and that of its ephemeral znodes. Its client can have a new
// session by then, and see them. In a real ensemble that takes moments, or as long as the leader is busy.
func WithSlowClose(d time.Duration) Option { return func(s *settings) { s.slowClose = d } }

// WithSlowCommit makes d pass between the moment at which the leader takes a write and that at which it takes effect, as when the
// disks of the servers are slow.
func WithSlowCommit(d time.Duration) Option { return func(s *settings) { s.slowCommit = d } }

// WithSeed sets what the delays of links are drawn from, and when between two ticks the leader pings its followers.
func WithSeed(n uint64) Option { return func(s *settings) { s.seed = n } }

func newSettings(opts []Option) (settings, error) {
	s := settings{servers: 1, tick: 2 * time.Second}
	for _, o := range opts {
		o(&s)
	}
	switch {
	case s.servers < 1:
		return s, fmt.Errorf("zktest: WithServers(%d): want 1 at least", s.servers)
	case s.tick < time.Millisecond:
		return s, fmt.Errorf("zktest: WithTick(%v): want a millisecond at least", s.tick)
	case s.longest != 0 && s.longest < 2*s.tick:
		return s, fmt.Errorf("zktest: WithMaxSession(%v): want two ticks of %v at least", s.longest, s.tick)
	case s.slowCommit < 0:
		return s, fmt.Errorf("zktest: WithSlowCommit(%v): want 0 at least", s.slowCommit)
	case s.slowClose < 0:
		return s, fmt.Errorf("zktest: WithSlowClose(%v): want 0 at least", s.slowClose)
	}
	s.longest = cmp.Or(s.longest, 20*s.tick)
	return s, nil
}
