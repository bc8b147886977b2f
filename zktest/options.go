package zktest

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"
)

// An Option changes what Start and New start. Only this package has options.
type Option interface{ set(s *settings) }

type option func(s *settings)

func (o option) set(s *settings) { o(s) }

type settings struct {
	size       int
	tick       time.Duration
	shortest   time.Duration // session timeout; 0: 2 ticks
	longest    time.Duration // likewise; 0: 20 ticks
	slowClose  time.Duration
	slowCommit time.Duration
	eagerACL   bool
	shuffle    bool
	keeper     bool
	unknown    []Op          // to a Keeper
	timeLimit  time.Duration // of a bubble
	reapEvery  time.Duration
	seed       uint64
	listen     []string // none: on free ports, and not before somebody asks for them
	// nil: no SASL
	saslUsers    map[string]string
	tls          *tls.Config // nil: none
	reconfig     bool
	readOnlyMode bool
	super        string            // user:password, "": nobody is
	committed    func(Transaction) // may be nil
	optionErr    error             // of an argument that makes no sense
}

// WithServers makes the Cluster an ensemble of n servers; at least 1, the default.
func WithServers(n int) Option { return option(func(s *settings) { s.size = n }) }

// WithTick sets the tick, at least a millisecond. Default: two seconds, as in a real
// server. Sessions last between 2 and 20 ticks, unless WithMinSessionTimeout or
// WithMaxSession sets another limit.
func WithTick(d time.Duration) Option { return option(func(s *settings) { s.tick = d }) }

// WithMinSessionTimeout sets the shortest session timeout that is granted
// (minSessionTimeout), at least a millisecond. Default: 2 ticks. Below that a session can
// be shorter than the time between two reports of a follower.
func WithMinSessionTimeout(d time.Duration) Option {
	return option(func(s *settings) { s.shortest = d })
}

// WithMaxSession sets the longest session timeout that is granted (maxSessionTimeout), at
// least the shortest. Default: 20 ticks.
func WithMaxSession(d time.Duration) Option {
	return option(func(s *settings) { s.longest = d })
}

// WithSlowClose lets d pass between the end of an expired session and that of its
// ephemeral znodes. Its client can have a new session by then, and see them. In a real
// ensemble that takes moments, or as long as the leader is busy.
func WithSlowClose(d time.Duration) Option {
	return option(func(s *settings) { s.slowClose = d })
}

// WithSlowCommit lets d pass from when the leader accepts a write until it takes effect,
// as when the disks of the servers are slow.
func WithSlowCommit(d time.Duration) Option {
	return option(func(s *settings) { s.slowCommit = d })
}

// WithEagerACLCheck makes the servers of an ensemble reject writes that an ACL forbids,
// or whose own ACL is invalid, by themselves and without their leader
// (zookeeper.enableEagerACLCheck), as 3.8 does. A server that is cut off does so until it
// has noticed. It has no effect on a single server.
func WithEagerACLCheck() Option { return option(func(s *settings) { s.eagerACL = true }) }

// WithContainerCheck sets the time between two checks for empty containers and expired
// TTL znodes (znode.container.checkIntervalMs). Default: a minute; at least a
// millisecond. The checks come with the leader's pings, two in each tick.
func WithContainerCheck(d time.Duration) Option {
	return option(func(s *settings) { s.reapEvery = d })
}

// WithShuffle gives the children of a znode in an order by chance, another one each time.
// Without it they are sorted, and a program that forgets to sort them passes: a real
// server has the order of a hash table. The orders are drawn from the seed of the
// Cluster, so that a test in a bubble replays. If the environment variable ZKTEST_SHUFFLE
// is set, every Cluster does so.
func WithShuffle() Option { return option(func(s *settings) { s.shuffle = true }) }

// WithSuperUser lets a client that authenticates with scheme digest as "user:password" do
// what no ACL permits (zookeeper.DigestAuthenticationProvider.superDigest). Without it
// nobody can.
func WithSuperUser(user, password string) Option {
	return option(func(s *settings) {
		s.super = user + ":" + password
		if user == "" {
			s.optionErr = errors.New("zktest: WithSuperUser: user is empty")
		}
	})
}

// WithSeed sets what the delays of links are drawn from, and when the leader pings its
// followers: its first ping comes within half a tick, and each other one half a tick
// after the one before, or up to a twentieth of the tick later, as those of a real leader
// do. Without a seed, or with 0, pings come exactly every half tick.
func WithSeed(n uint64) Option { return option(func(s *settings) { s.seed = n }) }

// WithListen makes the servers listen from the start. Give it one address for each
// server, "host:port", or one for an ensemble: then each further server listens on the
// port after that of the one before. Port 0 is a free one. New returns an error if a port
// is in use. Do not use it in a testing/synctest bubble.
func WithListen(addrs ...string) Option {
	return option(func(s *settings) { s.listen = addrs })
}

// WithLog calls f for each transaction that changes the tree or ends a session, in the
// order of the log, when the leader commits it: a multi gives one call for each part. Use
// it to check what clients saw against what happened. f must return soon, and must not
// call the Cluster, which waits for it.
func WithLog(f func(Transaction)) Option {
	return option(func(s *settings) { s.committed = f })
}

func newSettings(opts []Option) (settings, error) {
	s := settings{
		size: 1, tick: 2 * time.Second, reapEvery: time.Minute,
		timeLimit: 7 * 24 * time.Hour,
		shuffle:   os.Getenv("ZKTEST_SHUFFLE") != "",
	}
	for i, o := range opts {
		if o == nil {
			return s, fmt.Errorf("zktest: option %d is nil", i+1)
		}
		o.set(&s)
	}
	if s.optionErr != nil {
		return s, s.optionErr
	}
	switch {
	case s.size < 1:
		return s, fmt.Errorf("zktest: WithServers(%d): want 1 at least", s.size)
	case s.tick < time.Millisecond:
		return s, fmt.Errorf("zktest: WithTick(%v): want a millisecond at least", s.tick)
	case s.reapEvery < time.Millisecond:
		return s, fmt.Errorf(
			"zktest: WithContainerCheck(%v): want a millisecond at least", s.reapEvery)
	case s.timeLimit <= 0:
		return s, fmt.Errorf("zktest: WithTimeLimit(%v): want more than 0", s.timeLimit)
	case s.slowCommit < 0:
		return s, fmt.Errorf("zktest: WithSlowCommit(%v): want 0 at least", s.slowCommit)
	case s.slowClose < 0:
		return s, fmt.Errorf("zktest: WithSlowClose(%v): want 0 at least", s.slowClose)
	}
	if s.keeper {
		s.shortest = cmp.Or(s.shortest, keeperShortest)
		s.longest = cmp.Or(s.longest, max(keeperLongest, s.shortest))
	}
	s.shortest = cmp.Or(s.shortest, 2*s.tick)
	s.longest = cmp.Or(s.longest, 20*s.tick)
	switch {
	case s.shortest < time.Millisecond:
		return s, fmt.Errorf(
			"zktest: WithMinSessionTimeout(%v): want a millisecond at least", s.shortest)
	case s.longest < s.shortest:
		return s, fmt.Errorf(
			"zktest: WithMaxSession(%v): want %v at least, the shortest timeout",
			s.longest, s.shortest)
	}
	_, err := s.addresses()
	return s, err
}
