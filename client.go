package recipes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/dial"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/usercode"
)

const (
	// clientRetryPause is the pause between two tries of what Connect has to ask a server
	// for.
	clientRetryPause = 50 * time.Millisecond
	// clientLeaveTimeout bounds each wait of Close for a goroutine of the zk client. Such
	// a wait is long only where a dialer, a log handler or an observer of the user's does
	// not return; zk lets a dialer have one second.
	clientLeaveTimeout = 2 * time.Second
	// clientLeastReply is the least limit of replies. With less, not even a short queue
	// could be listed.
	clientLeastReply = 4096
	// clientFarewell is what the zk client's loop leaves Close to queue the request that
	// it then answers, see onEvent.
	clientFarewell = 10 * time.Millisecond
)

// errClientClosed is the cause of everything that ends because the Client was closed.
var errClientClosed = fmt.Errorf(
	"recipes: the client was closed: %w", zk.ErrConnectionClosed)

// Client is a ZooKeeper session, and a [Conn] and [SessionConn] whose paths are below the
// chroot of its connect string; only events and Unwrap have the server's paths. Like
// zk.Conn it keeps the session over lost connections and moves between the servers. When
// the server expires the session, the Client goes on with a new one; the ephemeral znodes
// of the old session, and thus its locks, are gone then. Its calls return the errors of
// zk.Conn; after Close these match zk.ErrConnectionClosed. They take no ctx: a call lasts
// until it is answered, the connection ends (when nothing arrives for two thirds of the
// session timeout), or a round of attempts to connect has failed. A server that answers
// only pings can delay a call without a bound; the ctx of a lock's Acquire or Release
// still bounds that.
type Client struct {
	zk     *zk.Conn
	dialer *dial.Dialer
	chroot string        // a valid path, "/" where there is none
	tick   time.Duration // of the servers, 0 where it was not told
	log    *slog.Logger
	// chrootACL is for the chroot and its parents, if they have to be created.
	chrootACL []zk.ACL
	existing  bool // the chroot is not to be created
	events    *clientEvents
	logged    *clientLog // by the goroutines that connect

	// closed is done as soon as Close was called, before anything else is closed, with
	// errClientClosed as its cause.
	closed    context.Context
	setClosed context.CancelCauseFunc
	closing   atomic.Bool   // set by the first Close
	gone      chan struct{} // closed by the first Close when it is through

	hooksMu sync.Mutex
	hooks   map[*func()]struct{} // guarded by hooksMu; see OnClose
	telling sync.Map             // the goroutines, by number, that call one

	ready     chan struct{} // closed by onEvent, at the first session
	readyOnce sync.Once
	zkEvents  <-chan zk.Event // onEvent has had each; closed when zk's loop has ended
}

// Connect opens a session, and returns when it is established and the credentials are
// sent. ctx bounds only Connect, not the life of the Client. If ctx is done first, the
// error wraps its cause and says why no server could be used so far. A failed Connect
// leaves nothing behind. Permanent errors are returned at once: a malformed argument, a
// chroot that may not be created (zk.ErrNoAuth), and an authentication scheme or
// credentials that the server rejects (zk.ErrAuthFailed). So are invalid certificates,
// and servers that do not talk TLS or ZooKeeper, once every server has failed like that.
//
// servers is a ZooKeeper connect string, "host1:2181,host2:2181/chroot". The default port
// is 2181. If the optional chroot does not exist, Connect creates it and its parents,
// logged at Info, as persistent znodes, open to anyone unless [WithChrootACL] sets
// another ACL; with [WithExistingChroot] it fails. sessionTimeout is requested from the
// servers, which grant 2 to 20 ticks of 2 s by default. The locks of a dead process
// remain for that long; a hold survives an outage of about half of it.
func Connect(
	ctx context.Context, servers string, sessionTimeout time.Duration,
	opts ...ClientOption,
) (*Client, error) {
	c, err := clientConnect(ctx, servers, sessionTimeout, opts)
	if err != nil {
		return nil, fmt.Errorf("recipes: Connect to %q: %w", servers, err)
	}
	return c, nil
}

func clientConnect(
	ctx context.Context, servers string, timeout time.Duration, opts []ClientOption,
) (*Client, error) {
	if err := notNil(ctx); err != nil {
		return nil, err
	}
	addresses, chroot, err := dial.ParseConnectString(servers)
	if err != nil {
		return nil, err
	}
	if err := checkSessionTimeout(timeout); err != nil {
		return nil, err
	}
	settings, err := newClientSettings(opts)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}

	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	log := newClientLog(settings.log)
	d, err := dial.New(ctx, addresses, dial.Config{
		Dial: settings.dialer, HostProvider: settings.hosts, TLS: settings.tls,
		SASL: settings.sasl, SessionTimeout: timeout, MaxReply: settings.maxReply,
		Log: slog.New(log), GiveUp: giveUp,
	})
	if err != nil {
		return nil, err
	}
	c := newClient(d, chroot, settings, timeout)
	c.logged = log
	conn, events, err := zk.Connect(addresses, timeout, zk.WithDialer(d.Dial),
		zk.WithHostProvider(d.HostProvider()), zk.WithEventCallback(c.onEvent),
		zk.WithLogger(clientZKLog{slog.New(log)}), zk.WithLogInfo(true))
	if err != nil {
		d.HangUp()
		return nil, err
	}
	c.zk, c.zkEvents = conn, events
	go c.events.notify()
	go log.pass()
	if err := c.establish(ctx, settings.auth); err != nil {
		return nil, err
	}
	return c, nil
}

// checkSessionTimeout returns an error for what zk cannot ask for.
func checkSessionTimeout(timeout time.Duration) error {
	if timeout < time.Millisecond || timeout > longestTimeout {
		return fmt.Errorf("session timeout %v: must be from 1ms to %v",
			timeout, longestTimeout)
	}
	return nil
}

// newClient returns a Client without a connection.
func newClient(
	d *dial.Dialer, chroot string, settings *clientSettings, timeout time.Duration,
) *Client {
	c := &Client{
		dialer: d, chroot: chroot, chrootACL: settings.chrootACL,
		existing: settings.existing,
		tick:     settings.tick, log: settings.log,
		events: newClientEvents(settings, timeout), hooks: map[*func()]struct{}{},
		ready: make(chan struct{}), gone: make(chan struct{}),
	}
	c.closed, c.setClosed = context.WithCancelCause(context.Background())
	return c
}

// establish waits for the session and prepares it, and closes c where that fails. ctx
// ends when the caller's does, or when the dialer gives up.
func (c *Client) establish(ctx context.Context, auth []clientAuth) error {
	prepared := make(chan error, 1)
	go func() { prepared <- c.prepare(ctx, auth) }()

	var err error
	select {
	case err = <-prepared:
		if err == nil && ctx.Err() == nil {
			return nil
		}
		c.Close()
	case <-ctx.Done():
		c.Close() // ends the call to ZooKeeper that prepare may be in
		err = <-prepared
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// prepare does what a session needs before it is handed out.
func (c *Client) prepare(ctx context.Context, auth []clientAuth) error {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return c.dialer.Explain(context.Cause(ctx))
	}
	for _, a := range auth {
		send := func() error { return c.zk.AddAuth(a.scheme, a.auth) }
		if err := c.insist(ctx, send); err != nil {
			return fmt.Errorf("authenticate with scheme %q: %w", a.scheme, err)
		}
	}
	if c.chroot == "/" {
		return nil
	}
	operation, unsure, missing := "create", false, false
	err := c.insist(ctx, func() (err error) {
		if !c.existing {
			return c.makeChroot(&unsure)
		}
		operation = "look for"
		missing, err = chrootIsMissing(c.zk, c.chroot)
		return err
	})
	switch {
	case errors.Is(err, zk.ErrAuthFailed):
		err = c.dialer.Explain(err)
	case missing:
		err = fmt.Errorf("%w; it has to exist, by WithExistingChroot", zk.ErrNoNode)
	}
	if err != nil {
		return fmt.Errorf("%s chroot %q: %w", operation, c.chroot, err)
	}
	return nil
}

// insist calls until the call succeeds, fails for good, or ctx is done.
func (c *Client) insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if err == nil || !clientMayRetry(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return c.dialer.Explain(context.Cause(ctx))
		case <-time.After(clientRetryPause):
		}
	}
}

// clientMayRetry reports whether err says no more than that the connection, the session
// or a parent znode went away under the call, or that the server could not answer it.
func clientMayRetry(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || !outcome.Final(err)
}

// unusable tells why nothing more goes through the client, or never has.
func (c *Client) unusable() error {
	switch {
	case c.isZero():
		return fmt.Errorf("recipes: the client: %w", errZero)
	case c.closed.Err() != nil:
		return errClientClosed
	}
	return nil
}

// isZero tells of a client that Connect has not made.
func (c *Client) isZero() bool { return c == nil || c.closed == nil }

// logger is the default of the locks that use the client.
func (c *Client) logger() *slog.Logger { return c.log }

// SessionTimeout returns what the server granted at the last handshake, for the life of
// the session. It can differ from what was requested (then that is logged at Warn), and
// change with the server.
func (c *Client) SessionTimeout() time.Duration {
	if c.isZero() {
		return 0
	}
	return c.dialer.LastHandshake().Timeout
}

// Unwrap returns the zk.Conn underneath, for what Conn does not offer. Do not close it:
// waiters through the Client would not learn of that.
func (c *Client) Unwrap() *zk.Conn {
	if c.isZero() {
		return nil
	}
	return c.zk
}

// Close ends the session, so that the server removes its ephemeral znodes: holds through
// this client are lost, and waiting calls return at once. If no server answers within
// about a second, the session ends with its timeout. When Close returns, after about two
// seconds at worst, the client's goroutines have ended, unless a custom dialer or log
// handler keeps one busy. It may be called again, concurrently too.
func (c *Client) Close() {
	if c.isZero() {
		return
	}
	// Not a sync.Once: whoever waits for its mutex keeps the time in a testing/synctest
	// bubble from passing.
	if c.closing.Swap(true) {
		if _, inHook := c.telling.Load(goroutineID()); !inHook {
			<-c.gone
		}
		return
	}
	defer close(c.gone)
	c.events.close()
	if panicked := c.tellClosed(); panicked != nil {
		defer panic(panicked)
	}
	if c.zk.SessionID() == 0 {
		// There is no session to end. zk would still wait a second for a server to
		// confirm that, except while it pauses between two rounds of dials, so it is sent
		// there.
		clientAwait(c.dialer.HangUp())
	}
	c.zk.Close()
	// A frozen server keeps zk reading for two thirds of the session timeout, and for ten
	// times that in a handshake.
	c.dialer.HangUp()
	clientAwait(clientDrained(c.zkEvents))
	c.events.end()
	close(c.logged.ended)
	clientAwait(c.logged.told, c.events.told)
}

func clientAwait(all ...<-chan struct{}) {
	timeout := time.After(clientLeaveTimeout)
	for _, done := range all {
		select {
		case <-done:
		case <-timeout:
			return
		}
	}
}

// LastHandshake implements SessionConn.
func (c *Client) LastHandshake() (session int64, began time.Time) {
	if c.isZero() {
		return 0, time.Time{}
	}
	last := c.dialer.LastHandshake()
	return last.Session, last.Began
}

// createdAt returns the zxid of the client's create of an ephemeral sequential znode, by
// the path that was asked for: 0 where it is not known. It tells it once.
func (c *Client) createdAt(path string) (zxid int64) {
	return c.dialer.CreatedAt(c.ServerPath(path))
}

// ServerTick implements SessionConn with the value of WithClientServerTick.
func (c *Client) ServerTick() time.Duration {
	if c.isZero() {
		return 0
	}
	return c.tick
}

// OnClose implements SessionConn: Close calls f before it does anything else.
func (c *Client) OnClose(f func()) (stop func()) {
	if c.isZero() {
		return func() {}
	}
	c.hooksMu.Lock()
	defer c.hooksMu.Unlock()
	if c.closed.Err() != nil {
		go f()
		return func() {}
	}
	hook := &f
	c.hooks[hook] = struct{}{}
	return func() {
		c.hooksMu.Lock()
		defer c.hooksMu.Unlock()
		delete(c.hooks, hook)
	}
}

// tellClosed makes c closed and calls what OnClose was given, each on a goroutine of its
// own: none keeps another from being called. It does not wait for long, and returns what
// one has panicked with.
func (c *Client) tellClosed() (panicked any) {
	c.setClosed(errClientClosed)
	c.hooksMu.Lock()
	hooks := c.hooks
	c.hooks = nil
	c.hooksMu.Unlock()
	var under sync.WaitGroup
	panics, told := make(chan any, len(hooks)), make(chan struct{})
	for f := range hooks {
		under.Go(func() {
			self := goroutineID()
			c.telling.Store(self, nil)
			defer func() {
				c.telling.Delete(self)
				if end := recover(); end != nil {
					panics <- end
				}
			}()
			(*f)()
		})
	}
	go func() {
		under.Wait()
		close(told)
	}()
	clientAwait(told)
	select {
	case panicked = <-panics:
	default:
	}
	return panicked
}

// onEvent is called by zk's own goroutines, which wait for it. Unlike the event channel,
// it misses no event.
func (c *Client) onEvent(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	slog.New(c.logged).Debug(
		"zookeeper: state changed", "state", e.State.String(), "server", e.Server)
	switch e.State {
	case zk.StateHasSession:
		last := c.dialer.LastHandshake() // this one: zk tells of it at once
		c.events.gotSession(e.Server, last.Session, last.Timeout)
		c.readyOnce.Do(func() { close(c.ready) })
	case zk.StateExpired:
		c.events.expired(e.Server)
	case zk.StateDisconnected:
		c.events.disconnected(c.dialer.TellCut())
		// In the pause between two rounds zk's Close first wakes the loop, which then
		// answers the queued requests for the last time, and only after that queues its
		// own, which then, about once in a thousand, is left to wait for a second. So the
		// loop is held back for a moment; were that too short, Close would just take that
		// second.
		if c.closed.Err() != nil && c.dialer.Pausing() {
			time.Sleep(clientFarewell)
		}
	}
}

// clientDrained returns what closes when events are closed. Before Close they lie:
// whoever received them would be woken by each watch.
func clientDrained(events <-chan zk.Event) <-chan struct{} {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for range events {
			continue
		}
	}()
	return drained
}

// clientZKLog passes the zk client's own log on. It tells every step, so it is for
// debugging only.
type clientZKLog struct{ log *slog.Logger }

func (l clientZKLog) Printf(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("zookeeper: " + fmt.Sprintf(format, args...))
	}
}

// A ClientOption changes how Connect connects. Only this package has such options.
type ClientOption interface{ set(s *clientSettings) error }

type clientAuth struct {
	scheme string
	auth   []byte
}

type clientSettings struct {
	tls    *tls.Config // nil for plain text; never written to
	auth   []clientAuth
	sasl   *dial.SASL      // nil: there is none
	dialer zk.Dialer       // nil for internal/dial's own
	hosts  zk.HostProvider // nil for internal/dial's own
	log    *slog.Logger
	tick   time.Duration

	maxReply int // 0 for internal/dial's own

	chrootACL []zk.ACL
	existing  bool // WithExistingChroot was given

	observers []func(SessionEvent)
}

func newClientSettings(opts []ClientOption) (*clientSettings, error) {
	s := &clientSettings{
		chrootACL: zk.WorldACL(zk.PermAll), log: slog.New(slog.DiscardHandler),
	}
	return s, apply(s, opts)
}

// WithTLS makes the client use TLS. cfg is copied. If it has no ServerName, a server's
// certificate must be valid for the host that was dialled: the one in the connect string,
// unless a host provider returns another.
func WithTLS(cfg *tls.Config) ClientOption {
	cfg = cfg.Clone()
	return setter[clientSettings](func(s *clientSettings) error {
		if cfg == nil {
			return errors.New("WithTLS: cfg is nil")
		}
		s.tls = cfg
		return nil
	})
}

// WithAuth authenticates the session at Connect and each reconnect. It can be given
// several times. The server does not check a digest on receipt: a wrong password shows as
// zk.ErrNoAuth from later calls. For sasl, use [WithSASL].
func WithAuth(scheme string, auth []byte) ClientOption {
	auth = append([]byte(nil), auth...)
	return setter[clientSettings](func(s *clientSettings) error {
		if scheme == "" {
			return errors.New("WithAuth: scheme is empty")
		}
		s.auth = append(s.auth, clientAuth{scheme, auth})
		return nil
	})
}

// WithChrootACL sets the ACL of the chroot and its parents if Connect or a later create
// has to create them; existing ones keep theirs. Use it if not all may create or delete
// locks there. Default: world:anyone.
func WithChrootACL(acl []zk.ACL) ClientOption {
	acl = slices.Clone(acl)
	return setter[clientSettings](func(s *clientSettings) error {
		if len(acl) == 0 {
			return errors.New("WithChrootACL: acl is empty")
		}
		s.chrootACL = acl
		return nil
	})
}

// WithExistingChroot keeps Connect and later creates from creating the chroot: if it does
// not exist, they fail with zk.ErrNoNode. Use it if a typing mistake in the connect
// string must not give a process locks of its own. WithChrootACL then has no effect.
func WithExistingChroot() ClientOption {
	return setter[clientSettings](func(s *clientSettings) error {
		s.existing = true
		return nil
	})
}

// WithDialer sets the function that opens connections. With WithTLS, TLS runs over them.
// It must respect its timeout: the client cannot cancel a dial.
func WithDialer(d zk.Dialer) ClientOption {
	return setter[clientSettings](func(s *clientSettings) error {
		if d == nil {
			return errors.New("WithDialer: dialer is nil")
		}
		s.dialer = d
		return nil
	})
}

// WithHostProvider sets what decides which server is dialled next. Connect initialises it
// with the connect string's servers. Clients must not share it.
func WithHostProvider(p zk.HostProvider) ClientOption {
	return setter[clientSettings](func(s *clientSettings) error {
		if isNil(p) {
			return errors.New("WithHostProvider: provider is nil")
		}
		s.hosts = p
		return nil
	})
}

// WithMaxReply sets the length in bytes of the longest reply that the client accepts,
// from 4096 to math.MaxInt32; default 64 MiB. A longer one is skipped, without memory for
// it. Its call fails with a permanent error that names this option and the length; so
// does Acquire if the list of its queue is too long. See docs/options.md.
func WithMaxReply(bytes int) ClientOption {
	return setter[clientSettings](func(s *clientSettings) error {
		if bytes < clientLeastReply || bytes > math.MaxInt32 {
			return fmt.Errorf("WithMaxReply: %d bytes: must be from %d to %d",
				bytes, clientLeastReply, math.MaxInt32)
		}
		s.maxReply = bytes
		return nil
	})
}

// WithClientServerTick sets the servers' tickTime for all locks that use the Client, as
// WithServerTick does for one lock.
func WithClientServerTick(d time.Duration) ClientOption {
	return setter[clientSettings](func(s *clientSettings) error {
		s.tick = d
		return checkServersTime("WithClientServerTick", d)
	})
}

// WithClientLogger sets the client's logger. Sessions are logged at Info; lost
// connections, expiry, failed attempts to connect, and a session timeout other than
// requested at Warn; single steps at Debug. It is also the default of all locks that use
// the Client; see [WithLogger]. Default: nothing is logged.
func WithClientLogger(l *slog.Logger) ClientOption {
	return setter[clientSettings](func(s *clientSettings) error {
		if l == nil {
			return errors.New("WithClientLogger: logger is nil")
		}
		s.log = usercode.Logger(l)
		return nil
	})
}
