package zktest

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// TB is what Start needs of a testing.TB.
type TB interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

// A Cluster is a ZooKeeper service: one server, or an ensemble. All its methods are safe
// for concurrent use.
type Cluster struct {
	settings
	servers []*Server
	began   time.Time
	running sync.WaitGroup // goroutines of connections and listeners

	// mu guards all below, and the state of servers, links, connections and lanes. It is
	// never held while a connection is read or written.
	mu          sync.Mutex
	log         txnLog
	zxid        int64 // of the newest transaction
	epoch       int64
	leader      *Server   // nil in an election
	leaderless  time.Time // since when, if so
	sessions    map[int64]*session
	lastSession int64
	commits     *lane // what the leader has judged, and a quorum has not got yet
	closings    *lane // the ends of expired sessions, on their way to commits
	reaped      time.Time
	nextPing    time.Time
	lateness    *rand.Rand // of pings
	orders      *rand.Rand // of children
	links       map[string]*Link
	doors       []door // by server, once they listen
	timers      map[*time.Timer]struct{}
	closed      bool
}

// Start starts a Cluster that ends with the test.
func Start(tb TB, opts ...Option) *Cluster {
	tb.Helper()
	c, err := New(opts...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(c.Close)
	return c
}

// New starts a Cluster, or returns an error if an option makes no sense or a port is in
// use. Close it.
func New(opts ...Option) (*Cluster, error) {
	settings, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	var listeners []net.Listener
	if len(settings.listen) > 0 {
		if listeners, err = settings.openListeners(); err != nil {
			return nil, err
		}
	}
	c := &Cluster{
		settings: settings, began: time.Now(),
		sessions: map[int64]*session{}, links: map[string]*Link{},
		timers: map[*time.Timer]struct{}{},
	}
	c.orders = c.random("orders of children")
	for id := range c.size {
		c.servers = append(c.servers, newServer(c, id+1))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := func() bool { return c.leader == nil || !c.leader.inContactLocked() }
	c.commits, c.closings = newLane(&c.mu, idle), newLane(&c.mu, idle)
	c.lastSession = c.began.UnixMilli() << 16
	c.reaped = c.began
	c.electLocked()
	c.settleLocked()
	c.lateness = c.random("late pings")
	c.pingAfterLocked(c.phase())
	if c.seed != 0 { // else there is a ping at each tick
		c.everyLocked(c.tick, c.expireDueLocked)
	}
	c.limitLocked()
	c.serveLocked(listeners)
	return c, nil
}

// phase is when the first ping is. Sessions end at ticks that are counted from the start;
// in a real ensemble the two have nothing to do with each other (SessionTrackerImpl.run).
func (c *Cluster) phase() time.Duration {
	if c.seed == 0 {
		return c.tick / 2
	}
	return 1 + time.Duration(c.random("phase").Int64N(int64(c.tick/2)))
}

// random returns what is drawn from the seed for one purpose.
func (c *Cluster) random(purpose string) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(purpose))                 // never fails
	return rand.New(rand.NewPCG(c.seed, sum.Sum64())) // it must replay
}

func (c *Cluster) shuffleLocked(children []string) {
	c.orders.Shuffle(len(children), func(i, j int) {
		children[i], children[j] = children[j], children[i]
	})
}

// Close ends the Cluster and all connections to it, and returns when its goroutines have
// ended. Only the first call does anything.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true
	for t := range c.timers {
		t.Stop()
	}
	c.closings.close()
	c.commits.close()
	for _, s := range c.servers {
		s.up = false
		s.leaveLocked()
		s.fromLeader.close()
		s.toLeader.close()
	}
	c.admitLocked()
	for _, l := range c.links {
		l.wakeLocked()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Server returns one of the servers, counted from 0. It panics if there is no such
// server.
func (c *Cluster) Server(i int) *Server { return c.servers[i] }

// Servers returns all servers.
func (c *Cluster) Servers() []*Server { return slices.Clone(c.servers) }

// Names returns the names by which Dial and HostProvider know the servers. They are not
// network addresses.
func (c *Cluster) Names() []string {
	var names []string
	for _, s := range c.servers {
		names = append(names, s.Addr())
	}
	return names
}

// Leader returns the server that leads the others, or nil if there is none.
func (c *Cluster) Leader() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// NextPing returns when the leader, if there is one, pings its followers next. What a
// follower has heard from its clients since the last ping is lost with it: the worst
// moment to stop it is right before the next ping.
func (c *Cluster) NextPing() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nextPing
}

// Watches counts the watches that are set, over all servers. A persistent one, which is a
// watch on data and on children, counts as two.
func (c *Cluster) Watches() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, s := range c.servers {
		n += s.watches.count()
	}
	return n
}

// Znodes returns the paths of all znodes but the root and /zookeeper, as the newest
// transaction left them, sorted.
func (c *Cluster) Znodes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	paths := slices.Sorted(maps.Keys(c.newestLocked().tree.nodes))
	return slices.DeleteFunc(paths, func(path string) bool {
		return path == "" || path == "/" || strings.HasPrefix(path+"/", "/zookeeper/")
	})
}

// SetSequence sets the counter of a znode from which its sequential children get their
// numbers: the next one gets n. It returns an error if there is no such znode, or while a
// server lags behind.
func (c *Cluster) SetSequence(path string, n int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		// Creates that are on their way to it would overwrite the counter there, and only
		// there.
		if s.applied < c.log.end() {
			return fmt.Errorf(
				"zktest: set sequence of %s to %d: %s lags behind", path, n, s.Addr(),
			)
		}
	}
	for _, s := range c.servers {
		if s.tree.setSequence(path, n) != codeOK {
			return fmt.Errorf(
				"zktest: set sequence of %s to %d: %w", path, n, zk.ErrNoNode,
			)
		}
	}
	return nil
}

// everyLocked calls f, with the mutex held, at intervals until the Cluster is closed.
func (c *Cluster) everyLocked(d time.Duration, f func()) {
	c.afterLocked(d, func() {
		f()
		c.everyLocked(d, f)
	})
}

// afterLocked calls f once, with the mutex held.
func (c *Cluster) afterLocked(d time.Duration, f func()) {
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
		if !c.closed {
			f()
		}
	})
	c.timers[t] = struct{}{}
}
