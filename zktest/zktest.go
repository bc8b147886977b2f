// Package zktest is an in-process ZooKeeper for tests: it speaks the wire protocol, so that any client of the operations
// below can use it, and it fails on demand.
//
//	server := zktest.Start(t)
//	conn, _, err := zk.Connect(server.Addrs(), 4*time.Second)
//
// In a testing/synctest bubble, where hours of session timeouts pass in milliseconds, there is no network. There a client
// connects through a pipe, by names that nobody has to look up:
//
//	conn, _, err := zk.Connect(server.Names(), 4*time.Second, zk.WithDialer(server.Dial), zk.WithHostProvider(server.HostProvider()))
//
// # What it serves
//
// Connect with negotiation of the session timeout, reconnect and expiry; create in all modes, create2, delete, exists, get and
// set data, both kinds of get children, get and set ACL, sync, check, multi, multi read, auth, set watches, ping, close. ACL schemes: world,
// digest, auth, ip. Answers, errors, stats, zxids, events and the sequence counter with its limit are those of ZooKeeper 3.8 with
// its default settings, but that TTL znodes are enabled; the package's tests compare both, request by request. Where
// other settings matter to clients there are options: [WithMinSessionTimeout], [WithMaxSession], [WithEagerACLCheck].
//
// # The ensemble
//
// With [WithServers] it is an ensemble: one committed log, and servers each at its own position in it. A server that lags behind
// answers reads from the past; sync catches it up; it refuses a client that has seen more. A request that was under way through a server
// when its session moved to another one is refused. A follower tells the leader which sessions it has heard from only every half tick,
// and a server cut off from the others goes on to answer reads for five ticks. The loss of the leader costs all clients
// their connections and gives all sessions their whole timeout anew.
//
// # Limits
//
// Nothing is persisted, and the log grows for as long as the service lives. Not served, but answered as a server that does not know them:
// persistent watches, removal of watches, reconfig, SASL. Of the four-letter words only ruok, srvr, conf, wchs and wchp. No TLS, no observers,
// no quotas, no throttling but by [Link.Throttle]. A network keeps the order of packets, as TCP does. Elections take a fixed time, and there are never two
// leaders at once, as in a real ensemble for a moment. Requests are judged one at a time, so that what a real server does to
// several that are in flight together can differ near the sequence counter's limit.
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

// A Server is a ZooKeeper service: one server, or an ensemble. All its methods are safe for concurrent use.
type Server struct {
	settings
	peers   []*Peer
	began   time.Time
	running sync.WaitGroup // goroutines of connections and listeners

	// mu guards all below, and the state of peers, links, connections and lanes. It is never held while a connection is
	// read or written.
	mu          sync.Mutex
	log         []txn // what was committed
	zxid        int64 // of the newest transaction
	epoch       int64
	leader      *Peer     // nil in an election
	leaderless  time.Time // since when, if so
	sessions    map[int64]*session
	lastSession int64
	commits     *lane // what the leader has judged, and a quorum has not got yet
	closings    *lane // the ends of expired sessions, on their way into the log
	reaped      time.Time
	nextBeat    time.Time
	links       map[string]*Link
	listeners   []net.Listener // by peer, once Addrs was called outside of a bubble
	timers      map[*time.Timer]struct{}
	closed      bool
}

// Start starts a service that ends with the test.
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(s.Close)
	return s
}

// New starts a service, unless an option makes no sense. Close it.
func New(opts ...Option) (*Server, error) {
	settings, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{
		settings: settings, began: time.Now(),
		sessions: map[int64]*session{}, links: map[string]*Link{}, timers: map[*time.Timer]struct{}{},
	}
	for id := range s.servers {
		s.peers = append(s.peers, newPeer(s, id+1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := func() bool { return s.leader == nil || !s.leader.inContactLocked() }
	s.commits, s.closings = newLane(&s.mu, idle), newLane(&s.mu, idle)
	s.lastSession = s.began.UnixMilli() << 16
	s.reaped = s.began
	s.electLocked()
	s.settleLocked()
	phase := s.phase()
	s.nextBeat = s.began.Add(phase)
	s.afterLocked(phase, func() {
		s.beatLocked()
		s.everyLocked(s.tick/2, s.beatLocked)
	})
	if s.seed != 0 { // else there is a beat at each tick
		s.everyLocked(s.tick, s.expireDueLocked)
	}
	return s, nil
}

// phase is when the first beat is. Sessions end at ticks that are counted from the start; in
// a real ensemble the two have nothing to do with each other (SessionTrackerImpl.run).
func (s *Server) phase() time.Duration {
	if s.seed == 0 {
		return s.tick / 2
	}
	return 1 + time.Duration(s.random("phase").Int64N(int64(s.tick/2)))
}

// random returns what is drawn from the seed for one purpose.
func (s *Server) random(purpose string) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(purpose))                 // never fails
	return rand.New(rand.NewPCG(s.seed, sum.Sum64())) //nolint:gosec // it must replay
}

// Close ends the service and all connections to it, and returns when its goroutines have ended. Only the first call does anything.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for t := range s.timers {
		t.Stop()
	}
	s.closings.close()
	s.commits.close()
	for _, p := range s.peers {
		p.up = false
		p.leaveLocked()
		p.fromLeader.close()
		p.toLeader.close()
	}
	for _, l := range s.listeners {
		_ = l.Close() // nobody could use an error
	}
	for _, l := range s.links {
		l.wakeLocked()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Peer returns one of the servers, counted from 0. It panics if there is no such server.
func (s *Server) Peer(i int) *Peer { return s.peers[i] }

// Peers returns all servers.
func (s *Server) Peers() []*Peer { return slices.Clone(s.peers) }

// Names returns the names by which Dial and HostProvider know the servers. They are no addresses of a network.
func (s *Server) Names() []string {
	var names []string
	for _, p := range s.peers {
		names = append(names, p.Addr())
	}
	return names
}

// Leader returns the server that leads the others; nil while there is none.
func (s *Server) Leader() *Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader
}

// NextPing is when the leader, if there is one, pings its followers next. What a follower
// has heard from its clients since the last ping dies with it: the worst moment for that is
// right before the next.
func (s *Server) NextPing() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextBeat
}

// Watches counts the watches that have not fired, over all servers.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.peers {
		n += p.watches.count()
	}
	return n
}

// Znodes returns the paths of all znodes but the root and /zookeeper, as the newest transaction left them, sorted.
func (s *Server) Znodes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.peers[0]
	for _, p := range s.peers {
		if p.applied > newest.applied {
			newest = p
		}
	}
	paths := slices.Sorted(maps.Keys(newest.tree.nodes))
	return slices.DeleteFunc(paths, func(path string) bool {
		return path == "" || path == "/" || strings.HasPrefix(path+"/", "/zookeeper/")
	})
}

// SetSequence sets the counter of a znode from which its sequential children get their numbers: the next one gets n. It fails if
// there is no such znode, or while a server lags behind.
func (s *Server) SetSequence(path string, n int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		// Creates that are on their way to it would overwrite the counter there, and only there.
		if p.applied < len(s.log) {
			return fmt.Errorf("zktest: set sequence of %s to %d: %s lags behind", path, n, p.Addr())
		}
	}
	for _, p := range s.peers {
		if p.tree.setSequence(path, n) != codeOK {
			return fmt.Errorf("zktest: set sequence of %s to %d: %w", path, n, zk.ErrNoNode)
		}
	}
	return nil
}

// everyLocked calls f, with the mutex held, at intervals until the service is closed.
func (s *Server) everyLocked(d time.Duration, f func()) {
	s.afterLocked(d, func() {
		f()
		s.everyLocked(d, f)
	})
}

// afterLocked calls f once, with the mutex held.
func (s *Server) afterLocked(d time.Duration, f func()) {
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.timers, t)
		if !s.closed {
			f()
		}
	})
	s.timers[t] = struct{}{}
}
