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
	"github.com/zkrecipes/recipes/internal/usercode"
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

// WithData sets the data of the lock znodes, for readers of the queue. Default: an
// address of this host, as in Curator. With path and ACL it can be nearly 1 MB, the
// default of the servers' jute.maxbuffer. If a server's is lower, it breaks the
// connection; Acquire fails after five breaks in a row.
func WithData(data []byte) Option {
	// not nil: the client would send a null, which Curator does not
	data = append([]byte{}, data...)
	return func(s *settings) { s.data = data }
}

// WithACL sets the ACL of the lock znodes and of the parents that are created. Default:
// all permissions for world:anyone. An empty list is an error. The session needs CREATE,
// DELETE and READ on the parents, and READ on the znodes of all participants. An existing
// parent that is open to others is logged (WithLogger), once for each value and parent:
// see docs/security.md.
func WithACL(acl []zk.ACL) Option {
	acl = slices.Clone(acl)
	return func(s *settings) { s.acl, s.restricted = acl, true }
}

// WithLogger sets the logger for what the lock does by itself: queue positions that were
// lost, znodes that could not be deleted, an unknown session timeout. The first list that
// shows another recipe's znodes at the path is a warning, once for each value: recipes
// that do not see each other's znodes do not exclude each other. No list is sent for
// that. A mutex sees a semaphore's znodes; a semaphore, which lists two znodes below its
// path, does not see a mutex's. Default: nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// WithSessionTimeout sets the session timeout that a plain *zk.Conn negotiated, so that
// Hold.Lost closes in time. A Client needs none. If in doubt, give less: too little loses
// locks early, too much notifies late. Of several for one connection the least counts.
// Without it, a second without a response loses a lock; that is in time if the servers
// grant at least 3 s and two ticks, as by default. Below 3 s it must be set. See
// docs/connections.md.
func WithSessionTimeout(d time.Duration) Option {
	return func(s *settings) { s.sessionTimeout = &d }
}

// WithServerTick sets the servers' tickTime. Of several values for one connection the
// longest counts. Use it if a session timeout can be below two ticks, because
// minSessionTimeout was lowered; if ticks are longer than ten seconds; or, with twice the
// tickTime, if clients connect to observers that follow a follower (observerMasterPort).
// It also makes a lock survive longer outages if a session lasts for many ticks. Acquire
// fails if the known session timeout is too short: see docs/options.md.
func WithServerTick(d time.Duration) Option {
	return func(s *settings) { s.serverTick = &d }
}

// WithObserver sets a function that is called with every step of every acquisition, for
// metrics, logs and traces. ctx is that of the call that makes the step: of Acquire up to
// EventAcquired, of Release after that, and at EventLost that of Acquire, without its
// cancellation. Steps of one acquisition are reported in order, those of several
// concurrently. The goroutine that makes the step calls f, so f must be quick, and safe
// for concurrent use: see docs/options.md.
func WithObserver(f func(ctx context.Context, e Event)) Option {
	return func(s *settings) { s.observer, s.observed = f, true }
}

// WithLossMargin makes Hold.Lost close d earlier than it must: nobody else holds the lock
// within d of Lost. Use it if the work cannot stop at once. It applies when ZooKeeper is
// unreachable and when WithMaxHold ends the hold, but not if somebody deletes the znode,
// an operator ends the session, this process closes the connection, or was suspended for
// longer than d. It makes the outage that a hold survives d shorter, and can delay an
// Acquire on an idle connection. A negative d is an error. Default: none. See
// docs/options.md.
func WithLossMargin(d time.Duration) Option {
	return func(s *settings) { s.lossMargin = d }
}

// WithMaxHold ends each hold after d. Use it so that a stuck owner cannot keep the lock
// forever. Lost closes, Err and Release match ErrHoldExpired and ErrLockLost, and the
// znode is deleted, after the loss margin if any. d counts from the grant; re-entry does
// not renew it. It stops nobody: an owner that ignores Lost may go on writing, which
// Hold.Multi and stores that check tokens reject. Default: none; 0 or less is an error.
// See docs/options.md.
func WithMaxHold(d time.Duration) Option {
	return func(s *settings) { s.maxHold = &d }
}

// WithNames adds names whose znodes are in the same queue: those that end in one of the
// names and a sequence number, whatever created them. Use it to share a lock with a
// library that counts this library's znodes too, such as kazoo, by WithNames("__lock__"):
// see docs/migrating-kazoo.md. On a read/write lock such znodes count as writers. A name
// that is empty, has a "/", or ends in one of this library's own is an error. It may be
// given several times. Semaphores do not accept it.
func WithNames(names ...string) Option {
	names = slices.Clone(names)
	return func(s *settings) { s.names = append(s.names, names...) }
}

// WithCaching makes all owners that use a lock through one connection share one queue
// entry (a znode), and keeps it between uses. Use it if one process acquires the lock far
// more often than others: an Acquire that finds the entry held and free, or gets it from
// another owner of this process, sends no requests. An entry is kept unused for up to
// idle; once others are known to wait, at most passes more local hand-overs follow.
// Exclusion, re-entry, order between processes, and Lost are unchanged; owners of one
// entry share Hold.Path and FencingToken: see docs/caching.md. Semaphores and elections
// do not accept it. A negative idle or passes below 1 is an error.
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
	for i, opt := range opts {
		if opt == nil {
			return s, fmt.Errorf("option %d is nil", i+1)
		}
		opt(&s)
	}
	switch {
	case len(s.acl) == 0:
		return s, errors.New("WithACL: acl is empty")
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
			return errors.New("WithNames: a name is empty")
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

// restOfCreate is enough for what a create consists of besides path, data and ACL: the
// header, the lengths, and the longest name of a znode below the path.
const restOfCreate = 200

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
	switch {
	case rest > zkconn.MaxRequest:
		return s, fmt.Errorf("path: %d bytes: ZooKeeper accepts requests of up to %d "+
			"bytes: %w", len(path), zkconn.MaxRequest, zk.ErrInvalidPath)
	case rest+len(s.data) > zkconn.MaxRequest:
		return s, fmt.Errorf("WithData: %d bytes exceed the maximum of %d: "+
			"ZooKeeper accepts requests of up to %d bytes, with path and ACL",
			len(s.data), max(0, zkconn.MaxRequest-rest), zkconn.MaxRequest)
	}
	if s.restricted {
		s.exposure = &exposure{conn: conn, acl: s.acl, log: usercode.Logger(s.logger)}
	}
	if advice := s.advice(conn); advice != "" {
		s.logger.Warn("zookeeper lock: session timeout unknown; 1s without a response "+
			"loses the lock", "path", path, "advice", advice)
	}
	return s, nil
}

// checkConn refuses what cannot be a key of the per-connection state.
func checkConn(conn Conn) error {
	v := reflect.ValueOf(conn)
	switch {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		return errors.New("conn is nil")
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
		Dir: dir, Kind: kind, Data: s.data, ACL: s.acl, Log: usercode.Logger(s.logger),
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
