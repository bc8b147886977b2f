package recipes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/lockcache"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// An Option changes how a lock is built.
type Option func(*settings)

type settings struct {
	data           []byte
	acl            []zk.ACL
	logger         *slog.Logger
	sessionTimeout *time.Duration
	serverTick     *time.Duration
	observer       func(context.Context, Event)
	observed       bool              // WithObserver was given
	keep           *lockcache.Policy // nil: no place is kept
	lossMargin     time.Duration
	maxHold        *time.Duration
	names          []string // of others' znodes, see WithNames
	look           *observe.Lookout
	exposure       *exposure // nil without WithACL
	restricted     bool      // WithACL was given
}

// WithData sets what the lock znodes hold, for people and programs that look at the
// queue. Default: an address of this host, as in Curator. With path and ACL it may come
// to nearly 1 MB, the default of the servers' jute.maxbuffer; a server where that is
// lower cuts the connection at the create, and Acquire gives up after the fifth time in a
// row.
func WithData(data []byte) Option {
	// not nil: the client would send a null, which Curator does not
	data = append([]byte{}, data...)
	return func(s *settings) { s.data = data }
}

// WithACL sets the ACL of the lock znodes and of the parents that are created. Default:
// all for world:anyone. The session needs create, delete and read on the parents, and
// read on the znodes of all participants.
//
// A parent znode that exists keeps its own ACL. If that gives CREATE, DELETE or ADMIN to
// somebody whom acl does not give it, the ACL of the lock znodes protects little: the
// permission to delete a znode is one on its parent. The lock writes a warning about that
// (WithLogger), once for each value and parent; a semaphore has two. For that it reads
// the parent's ACL, at its first use only. Every acquire goes on, also if the ACL cannot
// be read. Scheme auth stands for any account here, so only what anyone or an address may
// do is seen. A Conn that wraps neither a Client nor a *zk.Conn cannot read ACLs.
func WithACL(acl []zk.ACL) Option {
	acl = slices.Clone(acl)
	return func(s *settings) { s.acl, s.restricted = acl, true }
}

// WithLogger sets where the lock writes what it does on its own: places in the queue that
// were lost, znodes that could not be deleted, a session timeout that is not known. The
// first list that shows another recipe's znodes at the path is a warning, once for each
// value: recipes that do not see each other's znodes do not exclude each other. No list
// is made for that. So a semaphore, which lists two directories below its path, does not
// see a mutex there, but a mutex sees the semaphore. Default: nowhere.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// WithSessionTimeout tells the session timeout that a bare *zk.Conn has negotiated with
// the server (which may differ from the one asked for), so that Hold.Lost tells in time.
// The least of those given for one connection counts. A Client needs none.
//
// *zk.Conn does no more than log what it has negotiated ("authenticated: id=…,
// timeout=…" in milliseconds). It is what zk.Connect was asked for where that lies
// between the servers' limits, minSessionTimeout and maxSessionTimeout: by default 2 and
// 20 ticks, which is 4 s and 40 s with a tick of 2 s. If in doubt, give less: too little
// loses locks early, too much late.
//
// Where it is unknown, a lock is lost after a second without an answer to a sync, and
// five syncs are sent in a second while anything is held or waited for; a disconnect that
// is mended within the second loses nothing. That tells in time where the servers grant
// 3 s or more, and no less than two ticks (see WithServerTick). By default they grant at
// least 4 s. Below 3 s it has to be given.
func WithSessionTimeout(d time.Duration) Option {
	return func(s *settings) { s.sessionTimeout = &d }
}

// WithServerTick tells the servers' tickTime. Twice in a tick a follower reports to its
// leader which sessions it has heard from; what it has not reported when it dies does not
// count. Of several ticks given for one connection the longest counts. A Client can be
// told once for all that it is used for, with WithClientServerTick.
//
// It is needed where minSessionTimeout was lowered, so that a session timeout can be
// below two ticks; where ticks are longer than ten seconds; and where clients connect to
// observers that follow a follower (observerMasterPort): give twice the tickTime there,
// since a report takes two hops, each about half a tick. Elsewhere it makes a lock
// survive longer cuts, where a session lasts for many ticks: without it half of the
// session timeout, ten seconds at most, is taken for a tick. Where the session timeout is
// known, Acquire fails with one below 0.825 ticks, or below 1.5 × (tick/2 + 25 ms) if
// that is more.
func WithServerTick(d time.Duration) Option {
	return func(s *settings) { s.serverTick = &d }
}

// WithObserver sets a function that is told every step of every acquisition, for metrics,
// logs and traces. ctx is that of the call that makes the step: of Acquire up to
// EventAcquired, of Release after that; where the hold is lost that of Acquire, without
// its end. The steps of one acquisition are told one after the other, in their order;
// those of several at the same time.
//
// The goroutine that makes the step calls f, so f must be quick, and safe for concurrent
// use. It may call any method of the lock, as any owner. Only what waits behind the very
// acquisition whose step is told waits for f itself: an Acquire without a time limit in
// EventQueued, or by another owner in EventAcquired. The owner who queues is refused
// there.
//
// A panic in f, or a runtime.Goexit, ends the call of Acquire or Release that made the
// step, and leaves no lock held and nobody waiting: an Acquire that ends so has acquired
// nothing, a Release has released. f is told no more of that acquisition. Only EventLost
// is told on a goroutine of its own, where a panic ends the process.
func WithObserver(f func(ctx context.Context, e Event)) Option {
	return func(s *settings) { s.observer, s.observed = f, true }
}

// WithLossMargin is for what cannot stop at once. Where ZooKeeper is out of touch, Lost
// closes d earlier than it must, so that nobody else holds the lock within d of Lost: so
// much time is left to stop in. If the session turns out to live after all, the znode
// still goes, as that of any lost hold, but not before d is over. The same is left where
// WithMaxHold ends a hold.
//
// It does not hold for a loss that nobody could foresee: where somebody deletes the
// znode, an operator ends the session, or this process closes the connection, Lost closes
// at once, and others may follow at once. Nor where the process itself was stopped for
// longer than d (see Hold.Lost); the fencing token is for that.
//
// A margin shortens the outage that costs no lock, which is about half of the session
// timeout without one, by d. So Acquire fails at once where 4 d is more than the session
// timeout (or, with a server tick above 0.8 session timeouts, where a little less is).
// Where the session timeout is not known, d is 250 ms at most. And it grants nothing that
// would be lost a moment later with nothing amiss: on a connection that was idle before,
// an Acquire with a margin of more than a sixtieth of the session timeout can take up to
// 0.3 of it, and an AcquireTimeout that is over before that gives ErrUnavailable. Other
// locks in use on the connection prevent that, and a short WithServerTick shortens it to
// a little more than half a tick.
//
// Default: none. A negative d is refused. Each lock on a connection has its own margin,
// and so has each of the owners who share a place (WithCaching): when that of one begins,
// nobody else is let in, and the others keep their holds. Where it has begun, or would
// soon, an owner with a margin has to wait also for a place that readers are in.
func WithLossMargin(d time.Duration) Option {
	return func(s *settings) { s.lossMargin = d }
}

// WithMaxHold ends a hold by itself when it has lasted for d, so that no owner who hangs
// keeps the lock for ever: Lost closes, with an Err that matches ErrHoldExpired and
// ErrLockLost, and the znode is deleted, after the loss margin, if any. Release tells the
// same error. d is counted from when the lock is granted, by this process's monotonic
// clock, or its wall clock where that has moved farther. Re-entries do not renew it. Each
// lease has its own, and each member of a multi lock: an Acquire that does not get all
// members within d begins anew, so let d be much longer than that takes.
//
// It stops nobody: the owner who hangs may go on writing when he wakes up, if he does not
// look at Lost. Hold.Multi refuses then, and so does a store that looks at tokens. And it
// is this process that ends the hold: one that is stopped ends it when it runs again, or
// with its session.
//
// With WithCaching each owner has d for himself. The place is given up when one is over:
// other readers in it keep their holds, and nobody new is admitted.
//
// Default: none. A d of 0 or less is refused.
func WithMaxHold(d time.Duration) Option {
	return func(s *settings) { s.maxHold = &d }
}

// WithNames gives further names whose znodes stand in the same queue: those that end in
// one of the names and a sequence number, whoever made them. So processes that use
// another library share the lock, if that library counts our znodes, too. On a read/write
// lock such znodes count as writers.
//
// The Lock of kazoo, Python's client, makes znodes such as "…__lock__0000000007". Here
// WithNames("__lock__") counts them, and there extra_lock_patterns=["-lock-"] counts
// those of an InterProcessMutex (kazoo 2.7.1 or later). A kazoo WriteLock with
// extra_lock_patterns=["__WRIT__", "__READ__"] is a writer to an
// InterProcessReadWriteLock with the same name. All processes on a path must have it so;
// Curator cannot, and counts no other names: beside Java, kazoo's znodes need Curator's
// names (docs/migrating.md has the three lines of Python).
//
// What is promised of the other library's holds is what that promises. Nobody revokes
// them, and kazoo's owners are not told of a loss.
//
// It may be given several times. A name that is empty, has a "/", or ends in one of this
// library's own is refused, and so is the option by semaphores and the semaphore mutex,
// whose leases no other library counts. Default: none.
func WithNames(names ...string) Option {
	names = slices.Clone(names)
	return func(s *settings) { s.names = append(s.names, names...) }
}

// WithCaching lets all owners that use a lock through one connection share one place in
// its queue, one znode, and keep it between uses. For a lock that one process uses again
// and again, an Acquire that finds the place held and free asks nothing of ZooKeeper, and
// neither does one to which another owner of this process passes it on.
//
// Release leaves the znode where it is while nobody else is known to wait, for up to
// idle, and while an owner of this process waits. From the moment at which others are
// known to wait the place is passed on within this process for up to passes times more;
// then, or once nobody here waits, it is given up. A watch on the directory tells of
// them: so an owner of this process may come before one who joined the queue meanwhile,
// by passes hand-overs and the time of one notification at the most. Readers have the
// place together, until a writer is known to wait behind it; new readers then queue
// behind that writer. While readers of other processes come and go, the place looks for a
// writer at most ten times per second, with one list each, however many they are: a
// writer that joins in such a time can wait for up to 0.1 s longer. A place that is lost,
// or whose znode's data somebody changes, as for a revocation, is not kept either.
//
// All that a lock promises holds as without caching: exclusion, re-entry, order between
// processes, Lost in time. Owners that come one after the other through one place have
// the same Hold.Path and Hold.FencingToken: a store that refuses lower tokens keeps
// processes apart, and not owners of one of them. Hold.Multi refuses what was released,
// and Hold.Check does not while the place is kept. A Release that asks nothing cannot
// find out that the znode has gone, which nobody has told yet.
//
// All values for one path and connection that have this option share the place, by the
// settings of the value for which its znode was made; a value without it is one of the
// others. Participants shows the one znode, also while it is idle. Closing a Client gives
// up all places.
//
// It is for InterProcessMutex, InterProcessReadWriteLock and multi locks of mutexes; what
// is a semaphore refuses it, and so does an election, whose terms each begin at the tail
// of the queue. A negative idle and passes below 1 are refused. It costs a kept place two
// goroutines and two watches, and its first use two requests more.
func WithCaching(idle time.Duration, passes int) Option {
	return func(s *settings) {
		s.keep = &lockcache.Policy{Idle: idle, MaxHandovers: passes}
	}
}

// newSettings applies options to the defaults.
func newSettings(opts []Option) (settings, error) {
	s := settings{
		data:   []byte(hostAddress()),
		acl:    zk.WorldACL(zk.PermAll),
		logger: slog.New(slog.DiscardHandler),
	}
	for _, opt := range opts {
		if opt == nil {
			return s, errors.New("options: one is nil")
		}
		opt(&s)
	}
	switch {
	case len(s.acl) == 0:
		return s, errors.New("WithACL: the list is empty")
	case s.logger == nil:
		return s, errors.New("WithLogger: logger is nil")
	case s.observed && s.observer == nil:
		return s, errors.New("WithObserver: observer is nil")
	case s.sessionTimeout != nil && *s.sessionTimeout <= 0:
		return s, fmt.Errorf("WithSessionTimeout: %v is not positive", *s.sessionTimeout)
	case s.serverTick != nil && *s.serverTick <= 0:
		return s, fmt.Errorf("WithServerTick: %v is not positive", *s.serverTick)
	case s.lossMargin < 0:
		return s, fmt.Errorf("WithLossMargin: %v is negative", s.lossMargin)
	case s.maxHold != nil && *s.maxHold <= 0:
		return s, fmt.Errorf("WithMaxHold: %v is not positive", *s.maxHold)
	case s.keep != nil && s.keep.Idle < 0:
		return s, fmt.Errorf("WithCaching: idle: %v is negative", s.keep.Idle)
	case s.keep != nil && s.keep.MaxHandovers < 1:
		return s, fmt.Errorf(
			"WithCaching: passes: %d is less than 1", s.keep.MaxHandovers,
		)
	}
	return s, checkNames(s.names)
}

// checkNames refuses what no znode's name can end in, or what is a participant anyhow.
func checkNames(names []string) error {
	for _, name := range names {
		switch {
		case name == "":
			return errors.New("WithNames: one is empty")
		case strings.Contains(name, "/"):
			return fmt.Errorf("WithNames: %q: a znode's name has no \"/\"", name)
		}
		for own := range kindOf {
			if strings.HasSuffix(name, own) {
				return fmt.Errorf(
					"WithNames: %q: %q is a name of this library's own", name, own,
				)
			}
		}
	}
	return nil
}

const (
	// maxRequest is the server's jute.maxbuffer: it closes the connection on a longer
	// request, and would again at each retry.
	maxRequest = 0xfffff
	// restOfCreate is enough for what a create consists of besides path, data and ACL:
	// the header, the lengths, and the longest name of a znode below the path.
	restOfCreate = 200
)

// build checks what every constructor is given.
func build(conn Conn, path string, opts []Option) (settings, error) {
	s, err := newSettings(opts)
	if err != nil {
		return s, err
	}
	if err := checkConn(conn); err != nil {
		return s, err
	}
	if err := zkpath.Check(path); err != nil {
		return s, err
	}
	rest := len(serverPath(conn, path)) + restOfCreate
	for _, acl := range s.acl {
		rest += len(acl.Scheme) + len(acl.ID) + 12
	}
	if rest+len(s.data) > maxRequest {
		return s, fmt.Errorf("WithData: %d bytes are too many: ZooKeeper takes "+
			"requests of up to %d bytes, with path and ACL, which leaves %d",
			len(s.data), maxRequest, max(0, maxRequest-rest))
	}
	if s.restricted {
		s.exposure = &exposure{conn: conn, acl: s.acl, log: s.logger}
	}
	if advice := s.advice(conn); advice != "" {
		s.logger.Warn("zookeeper lock: the session timeout is not known, so a second "+
			"without an answer loses the lock", "path", path, "advice", advice)
	}
	return s, nil
}

// checkConn refuses what cannot be a key of the per-connection state.
func checkConn(conn Conn) error {
	v := reflect.ValueOf(conn)
	switch {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		return errors.New("conn: is nil")
	case isZeroClient(conn):
		return fmt.Errorf("conn: %w; see Connect", errZero)
	case !v.Comparable():
		return fmt.Errorf(
			"conn: the type %T is not comparable; use a pointer to it", conn,
		)
	}
	return nil
}

func isZeroClient(conn Conn) bool {
	c, ok := wrapped[*Client](conn)
	return ok && c.isZero()
}

// sessionConfig is what the session room needs to know of conn.
func (s *settings) sessionConfig(conn Conn) zkconn.Config {
	c := zkconn.Config{Timeout: func() time.Duration {
		if s.sessionTimeout != nil {
			return *s.sessionTimeout
		}
		return 0
	}}
	if s.serverTick != nil {
		c.ServerTick = *s.serverTick
	}
	_, c.Plain = conn.(*zk.Conn)
	c.Advice = s.advice(conn)
	if sc, ok := wrapped[SessionConn](conn); ok {
		c.Timeout, c.WhenClosed = sc.SessionTimeout, sc.OnClose
		c.ServerTick = max(c.ServerTick, sc.ServerTick())
		c.LastHandshake = func(session int64) (time.Time, bool) {
			last, began := sc.LastHandshake()
			return began, last == session && !began.IsZero()
		}
	}
	if plain, ok := wrapped[*zk.Conn](conn); ok {
		c.Server = plain.Server
	}
	if c.InOrder = keepsOrder(conn); c.InOrder {
		if client, ok := wrapped[*Client](conn); ok {
			c.CreatedAt = client.createdAt
		}
	}
	return c
}

// advice is what to do about a conn whose session timeout is not known, "" where it is.
func (s *settings) advice(conn Conn) string {
	const option = "see WithSessionTimeout"
	if _, tells := wrapped[SessionConn](conn); tells || s.sessionTimeout != nil {
		return ""
	}
	if _, plain := wrapped[*zk.Conn](conn); plain {
		return option
	}
	return fmt.Sprintf("give %T a method Unwrap() recipes.Conn, or %s", conn, option)
}

// queue is a queue of what is held, whose order is rule, and whose names are kinds and
// those that WithNames has given.
func (s *settings) queue(
	dir, kind string, kinds []string, rule order.Excludes,
) *seqnode.Queue {
	return &seqnode.Queue{
		Spec: s.spec(dir, kind), Kinds: slices.Concat(kinds, s.names), Excludes: rule,
		Lookout: s.look,
	}
}

// spec is what the options say of the znodes of one kind in a directory.
func (s *settings) spec(dir, kind string) znode.Spec {
	spec := znode.Spec{
		Dir: dir, Kind: kind, Data: s.data, ACL: s.acl, Log: s.logger,
		Terms: znode.Terms{LossMargin: s.lossMargin},
	}
	if s.exposure != nil {
		spec.Joined = func(on *zkconn.Conn) { s.exposure.joined(on, dir) }
	}
	if s.maxHold != nil {
		spec.MaxHold = *s.maxHold
	}
	return spec
}

// hostAddress returns an address of this host, without asking DNS, which may take
// seconds: the first one that is not a loopback address, else 127.0.0.1.
var hostAddress = sync.OnceValue(func() string {
	addresses, _ := net.InterfaceAddrs() // without them: 127.0.0.1
	var found string
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		switch {
		case !ok || !ip.IP.IsGlobalUnicast():
		case ip.IP.To4() != nil:
			return ip.IP.String()
		case found == "":
			found = ip.IP.String()
		}
	}
	if found == "" {
		return "127.0.0.1"
	}
	return found
})
