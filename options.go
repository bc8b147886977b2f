package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

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

// An Option changes how a lock is built. Only this package has options.
type Option interface{ set(s *settings) error }

// A setter is an option, as a function.
type setter[S any] func(s *S) error

func (f setter[S]) set(s *S) error { return f(s) }

// apply applies options in order.
func apply[S any, O interface{ set(s *S) error }](s *S, opts []O) error {
	for i, opt := range opts {
		if any(opt) == nil {
			return fmt.Errorf("option %d is nil", i+1)
		}
		if err := opt.set(s); err != nil {
			return err
		}
	}
	return nil
}

type settings struct {
	data           []byte
	acl            []zk.ACL
	logger         *slog.Logger  // nil: the connection's
	sessionTimeout time.Duration // 0: unknown
	serverTick     time.Duration // 0: unknown
	observer       func(context.Context, Event)
	caching        *lockcache.Policy // nil: no queue entry is cached
	lossMargin     time.Duration
	maxHold        time.Duration // 0: no limit
	names          []string      // of others' znodes, see WithNames
	lint           *observe.Lint
	value          uint64    // the same in the queues of one lock value, and in no others
	exposure       *exposure // nil without WithACL
	restricted     bool      // WithACL was given
	ofLocks        []string  // options that were given and are for locks alone
}

// WithData sets the data of the lock znodes, for readers of the queue. Default: "HOST
// (pid PID, PROGRAM)", with the program's name and none of its arguments. With path and
// ACL it can be nearly 1 MB, the default of the servers' jute.maxbuffer. If a server's is
// lower, it breaks the connection; Acquire fails after five breaks in a row.
func WithData(data []byte) Option {
	// not nil: the client would send a null, which Curator does not
	data = append([]byte{}, data...)
	return setter[settings](func(s *settings) error {
		s.data, s.ofLocks = data, append(s.ofLocks, "WithData")
		return nil
	})
}

// WithACL sets the ACL of the lock znodes and of the parents that are created. Default:
// all permissions for world:anyone. An empty list is an error. The session needs CREATE,
// DELETE and READ on the parents, and READ on the znodes of all participants. An existing
// parent that is open to others is logged (WithLogger), once for each value and parent:
// see docs/security.md.
func WithACL(acl []zk.ACL) Option {
	acl = slices.Clone(acl)
	return setter[settings](func(s *settings) error {
		if len(acl) == 0 {
			return errors.New("WithACL: acl is empty")
		}
		s.acl, s.restricted = acl, true
		return nil
	})
}

// WithLogger sets the logger for what the lock does by itself: znodes that could not be
// deleted, an unknown session timeout, answers so slow that holds may be lost. Each hold
// that is lost is a warning, with path, znode, cause, time held and token. The first list
// that shows another recipe's znodes at the path is a warning, once for each value:
// recipes that do not see each other's znodes do not exclude each other. No list is sent
// for that. A mutex sees a semaphore's znodes; a semaphore, which lists two znodes below
// its path, does not see a mutex's. Default: that of the Client ([WithClientLogger]).
func WithLogger(l *slog.Logger) Option {
	return setter[settings](func(s *settings) error {
		if l == nil {
			return errors.New("WithLogger: logger is nil")
		}
		s.logger = l
		return nil
	})
}

// WithSessionTimeout sets the session timeout that a plain *zk.Conn negotiated, so that
// Hold.Lost closes in time. A Client needs none. If in doubt, give less: too little loses
// locks early, too much notifies late. Of several for one connection the least counts.
// Without it, a second without a response loses a lock; that is in time if the servers
// grant at least 3 s and two ticks, as by default. Below 3 s it must be set. See
// docs/connections.md.
func WithSessionTimeout(d time.Duration) Option {
	return setter[settings](func(s *settings) error {
		s.sessionTimeout = d
		return checkServersTime("WithSessionTimeout", d)
	})
}

// WithServerTick sets the servers' tickTime. Of several values for one connection the
// longest counts. Use it if a session timeout can be below two ticks, because
// minSessionTimeout was lowered; if ticks are longer than ten seconds; or, with twice the
// tickTime, if clients connect to observers that follow a follower (observerMasterPort).
// It also makes a lock survive longer outages if a session lasts for many ticks. Acquire
// fails if the known session timeout is too short: see docs/options.md.
func WithServerTick(d time.Duration) Option {
	return setter[settings](func(s *settings) error {
		s.serverTick = d
		return checkServersTime("WithServerTick", d)
	})
}

// WithObserver sets a function that is called with every step of every acquisition, for
// metrics, logs and traces. ctx is that of the call that makes the step: of Acquire up to
// EventAcquired, of Release after that, and at EventLost that of Acquire, without its
// cancellation. Steps of one acquisition are reported in order, one at a time; those of
// several, and the ends of leases that were acquired together, concurrently. The
// goroutine that makes the step calls f, or else the one that still reports the step
// before. So f must be quick, and safe for concurrent use: see
// docs/appendix/observers.md. If it is given several times, all are called, in that
// order, before the next step is reported.
func WithObserver(f func(ctx context.Context, e Event)) Option {
	return setter[settings](func(s *settings) error {
		if f == nil {
			return errors.New("WithObserver: observer is nil")
		}
		s.observer = both(s.observer, f)
		return nil
	})
}

// lockObserver returns the observer of a lock, which also logs each loss. A registration
// logs its own: it is no end there.
func (s *settings) lockObserver() func(context.Context, Event) {
	if s.logger.Handler() == slog.DiscardHandler {
		return s.observer
	}
	log := usercode.Logger(s.logger)
	logLoss := func(ctx context.Context, e Event) {
		if e.Kind == EventLost {
			log.WarnContext(ctx, "zookeeper lock: the lock was lost", "recipe", e.Recipe,
				"path", e.Path, "node", e.Node, "held", e.Elapsed, "token", e.Token,
				"error", e.Err)
		}
	}
	if s.observer == nil {
		return logLoss
	}
	return both(logLoss, s.observer)
}

// both returns what calls first, which may be nil, and then second.
func both(first, second func(context.Context, Event)) func(context.Context, Event) {
	if first == nil {
		return second
	}
	return func(ctx context.Context, e Event) {
		first(ctx, e)
		second(ctx, e)
	}
}

// WithLossMargin makes Hold.Lost close d earlier than it must: nobody else holds the lock
// within d of Lost. Use it if the work cannot stop at once. It applies when ZooKeeper is
// unreachable and when WithMaxHold ends the hold, but not if somebody deletes the znode,
// an operator ends the session, this process closes the connection, or was suspended for
// longer than d. It makes the outage that a hold survives d shorter, and can delay an
// Acquire on an idle connection. A negative d is an error. Default: none. See
// docs/options.md.
func WithLossMargin(d time.Duration) Option {
	return setter[settings](func(s *settings) error {
		if d < 0 {
			return fmt.Errorf("WithLossMargin: %v is negative", d)
		}
		s.lossMargin, s.ofLocks = d, append(s.ofLocks, "WithLossMargin")
		return checkLongest("WithLossMargin", d)
	})
}

// WithMaxHold ends each hold after d. Use it so that a stuck owner cannot keep the lock
// forever. Lost closes, Err and Release match ErrHoldExpired and ErrLockLost, and the
// znode is deleted, after the loss margin if any. d counts from the grant; re-entry does
// not renew it. It stops nobody: an owner that ignores Lost may go on writing, which
// Hold.Multi and stores that check tokens reject. Default: none; 0 or less is an error.
// See docs/options.md.
func WithMaxHold(d time.Duration) Option {
	return setter[settings](func(s *settings) error {
		s.maxHold, s.ofLocks = d, append(s.ofLocks, "WithMaxHold")
		return positive("WithMaxHold", d)
	})
}

// WithNames adds names whose znodes are in the same queue: those that end in one of the
// names and a sequence number, whatever created them. Use it to share a lock with a
// library that counts this library's znodes too, such as kazoo, by WithNames("__lock__"):
// see docs/migrating-kazoo.md. On a read/write lock such znodes count as writers. A name
// that is empty, has a "/", or ends in one of this library's own is an error. It may be
// given several times. Semaphores do not accept it.
func WithNames(names ...string) Option {
	names = slices.Clone(names)
	return setter[settings](func(s *settings) error {
		s.names, s.ofLocks = append(s.names, names...), append(s.ofLocks, "WithNames")
		return checkNames(names)
	})
}

// WithCaching makes all owners that use a lock through one connection share one queue
// entry (a znode), and keeps it between uses. Use it if one process acquires the lock far
// more often than others: an Acquire that finds the entry held and free, or gets it from
// another owner of this process, sends no requests. An entry is kept unused for up to
// idle; once others are known to wait, at most passes more local hand-overs follow.
// Exclusion, re-entry, order between processes, and Lost are unchanged; owners of one
// entry share Hold.Path and FencingToken: see docs/caching.md. Values that differ in
// WithLossMargin, WithMaxHold or WithNames do not share an entry; of other settings,
// those of the value count for which the entry was created. Semaphores and elections do
// not accept it. A negative idle or passes below 1 is an error.
func WithCaching(idle time.Duration, passes int) Option {
	return setter[settings](func(s *settings) error {
		switch {
		case idle < 0:
			return fmt.Errorf("WithCaching: idle: %v is negative", idle)
		case passes < 1:
			return fmt.Errorf("WithCaching: passes: %d is less than 1", passes)
		}
		s.ofLocks = append(s.ofLocks, "WithCaching")
		s.caching = &lockcache.Policy{Idle: idle, MaxHandovers: passes}
		return nil
	})
}

// positive returns an error for a duration that an option cannot use.
func positive(option string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s: %v is not positive", option, d)
	}
	return nil
}

// longestTimeout is the longest session timeout: the servers and zk count it in an int32
// of milliseconds, as the servers do their tick.
const longestTimeout = math.MaxInt32 * time.Millisecond

// checkLongest returns an error for a duration that no session lasts for.
func checkLongest(option string, d time.Duration) error {
	if d > longestTimeout {
		return fmt.Errorf("%s: %v exceeds %v, the longest session timeout",
			option, d, longestTimeout)
	}
	return nil
}

// checkServersTime returns an error for a duration that no server has.
func checkServersTime(option string, d time.Duration) error {
	return cmp.Or(positive(option, d), checkLongest(option, d))
}

var values atomic.Uint64 // how many lock values there are in this process

// newSettings applies options to the defaults.
func newSettings(opts []Option) (settings, error) {
	s := settings{
		data:  []byte(processName()),
		acl:   zk.WorldACL(zk.PermAll),
		value: values.Add(1),
	}
	return s, apply(&s, opts)
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
		for _, own := range observe.Names("") {
			if !isForeign(own) && strings.HasSuffix(name, own) {
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
	if s.logger == nil {
		s.logger = loggerOf(conn)
	}
	if err := s.checkData("WithData", conn, path, s.data); err != nil {
		return s, err
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

// checkData refuses data, and a path, that no request can carry.
func (s *settings) checkData(what string, conn Conn, path string, data []byte) error {
	rest := len(serverPath(conn, path)) + restOfCreate
	for _, acl := range s.acl {
		rest += len(acl.Scheme) + len(acl.ID) + 12
	}
	switch {
	case rest > zkconn.MaxRequest:
		return fmt.Errorf("path: %d bytes: ZooKeeper accepts requests of up to %d "+
			"bytes: %w", len(path), zkconn.MaxRequest, zk.ErrInvalidPath)
	case rest+len(data) > zkconn.MaxRequest:
		return fmt.Errorf("%s: %d bytes exceed the maximum of %d: "+
			"ZooKeeper accepts requests of up to %d bytes, with path and ACL",
			what, len(data), max(0, zkconn.MaxRequest-rest), zkconn.MaxRequest)
	}
	return nil
}

// checkConn refuses what cannot be a key of the per-connection state.
func checkConn(conn Conn) error {
	switch {
	case isNil(conn):
		return errors.New("conn is nil")
	case isZeroClient(conn):
		return fmt.Errorf("conn: %w; see Connect", errZero)
	case !reflect.ValueOf(conn).Comparable():
		return fmt.Errorf(
			"conn: the type %T is not comparable; use a pointer to it", conn,
		)
	}
	return nil
}

func isZeroClient(conn Conn) bool {
	c, ok := wrapped[interface{ isZero() bool }](conn)
	return ok && c.isZero()
}

// loggerOf returns the logger of a Client, also of one that is embedded or wrapped.
func loggerOf(conn Conn) *slog.Logger {
	if c, ok := wrapped[interface{ logger() *slog.Logger }](conn); ok {
		return c.logger()
	}
	return slog.New(slog.DiscardHandler)
}

// sessionConfig is what package zkconn needs to know of conn.
func (s *settings) sessionConfig(conn Conn) zkconn.Config {
	timeout := s.sessionTimeout
	c := zkconn.Config{
		Timeout:    func() time.Duration { return timeout },
		ServerTick: s.serverTick,
	}
	_, c.Plain = conn.(*zk.Conn)
	c.Advice = s.advice(conn)
	if s.logger != nil {
		c.Log = usercode.Logger(s.logger)
	}
	if sc, ok := wrapped[SessionConn](conn); ok {
		c.Timeout, c.WhenClosed = sc.SessionTimeout, sc.OnClose
		c.ServerTick = max(c.ServerTick, sc.ServerTick())
		c.LastHandshake = func(session int64) (time.Time, bool) {
			last, began := sc.LastHandshake()
			return began, last == session && !began.IsZero()
		}
	}
	switch known := asItIs(conn).(type) {
	case *zk.Conn:
		c.InOrder, c.Server = true, known.Server
	case *Client:
		c.InOrder, c.CreatedAt = true, known.createdAt
	default:
		c.Foreign = true
	}
	return c
}

// advice is what to do about a conn whose session timeout is not known, "" where it is.
func (s *settings) advice(conn Conn) string {
	const option = "see WithSessionTimeout"
	if _, tells := wrapped[SessionConn](conn); tells || s.sessionTimeout > 0 {
		return ""
	}
	if _, plain := wrapped[*zk.Conn](conn); plain {
		return option
	}
	return fmt.Sprintf("give %T a method Unwrap() recipes.Conn, or %s", conn, option)
}

// queue is the queue in dir for znodes of a kind. Those of kinds stand in it, and those
// that WithNames has given; rule says who has to go before whom.
func (s *settings) queue(
	dir, kind string, kinds []string, rule order.Excludes,
) *seqnode.Queue {
	return &seqnode.Queue{
		Spec: s.spec(dir, kind), Kinds: slices.Concat(kinds, s.names), Excludes: rule,
		Lint: s.lint, Value: s.value,
	}
}

// spec is what the options say of the znodes of one kind in a parent znode, dir.
func (s *settings) spec(dir, kind string) znode.Spec {
	spec := znode.Spec{
		Dir: dir, Kind: kind, Data: s.data, ACL: s.acl, Log: usercode.Logger(s.logger),
		Terms: znode.Terms{LossMargin: s.lossMargin, MaxHold: s.maxHold},
	}
	if s.exposure != nil {
		spec.Joined = func(use *zkconn.Conn) { s.exposure.joined(use, dir) }
	}
	return spec
}

// processName is "HOST (pid PID, PROGRAM)", one line of text whatever the two are called:
// people read it in any tool that shows data.
var processName = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	program := "unknown program"
	if len(os.Args) > 0 { // a parent may give none
		program = filepath.Base(os.Args[0])
	}
	return fmt.Sprintf("%s (pid %d, %s)", oneLine(host), os.Getpid(), oneLine(program))
})

// oneLine replaces what cannot be printed.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// isNil tells of nil, and of a nil pointer in an interface.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
