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
)

const (
	// clientRetryPause is the pause between two tries of what Connect has to ask a server
	// for.
	clientRetryPause = 50 * time.Millisecond
	// clientLeaveTimeout bounds each wait of Close for a goroutine of the zk client. Such
	// a wait is long only where a dialer or a log handler of the user's does not return;
	// zk lets a dialer have one second.
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

// Client is a ZooKeeper session and a Conn whose paths are below the chroot of its
// connect string. Like zk.Conn it keeps the session over lost connections and moves
// between the servers. When the server expires the session, the Client goes on with a new
// one; what belonged to the old session, ephemeral znodes and thus locks, is gone then.
//
// A Client is safe for concurrent use. Its calls return the errors of zk.Conn as they
// are; after Close they fail with an error that matches zk.ErrConnectionClosed. Like
// zk.Conn's, they take no context: a call lasts until it is answered, the connection
// ends, or a round of attempts to connect has failed. The client ends a connection on
// which nothing arrives for two thirds of the session timeout. A server that answers
// pings, but not the call, can keep it waiting without a bound. The ctx of a lock's
// Acquire or Release bounds these all the same.
type Client struct {
	zk     *zk.Conn
	dialer *dial.Dialer
	chroot string        // a valid path, "/" where there is none
	tick   time.Duration // of the servers, 0 where it was not told
	log    *slog.Logger
	// chrootACL is for the chroot and its parents, if they have to be created.
	chrootACL []zk.ACL
	events    *clientEvents

	clientEnd

	hooksMu sync.Mutex
	hooks   map[*func()]struct{} // guarded by hooksMu; see OnClose

	ready     chan struct{} // closed by onEvent, at the first session
	readyOnce sync.Once
	drained   chan struct{} // closed by drain, when the zk client's loop has ended
}

// A clientEnd is the end of a Client, by Close.
type clientEnd struct {
	// closed is done as soon as Close was called, before anything else is closed, with
	// errClientClosed as its cause.
	closed    context.Context
	setClosed context.CancelCauseFunc
	closing   atomic.Bool   // set by the first Close
	gone      chan struct{} // closed by the first Close when it is through
}

// Connect opens a session. It returns when the session is established and the credentials
// are sent. If ctx is done before that, it returns ctx's cause, wrapped, and why no
// server could be used so far. A Connect that fails leaves nothing behind. ctx bounds
// only Connect, not the life of the Client; without a deadline, Connect waits for a
// server for as long as it takes.
//
// servers is a ZooKeeper connect string, "host1:2181,host2:2181/chroot". The default port
// is 2181. An IPv6 address is written in brackets. Names are looked up at each dial; when
// a lookup fails or is slow, the addresses of the last one that succeeded are used. The
// chroot is optional. If it does not exist, Connect creates it, and its parents, as
// persistent znodes, open to anyone unless WithChrootACL sets another ACL. That is logged
// at Info.
//
// sessionTimeout is what the servers are asked for. They grant what is within their
// limits, by default 2 to 20 ticks of 2 s. If that is something else, it is logged as a
// warning, and SessionTimeout returns it. It is how long the locks of a process that died
// remain, and about half of it is how long an outage can last that costs no lock.
//
// What no retry can mend is returned at once: a malformed argument, a chroot that may not
// be created (zk.ErrNoAuth), and an authentication scheme that the server does not know
// (zk.ErrAuthFailed). So are certificates that are not valid, and servers that do not
// talk TLS or ZooKeeper at all, when this was so for each server in turn.
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
	d, err := dial.New(ctx, addresses, dial.Config{
		Dial: settings.dialer, HostProvider: settings.hosts, TLS: settings.tls,
		SessionTimeout: timeout, MaxReply: settings.maxReply, Log: settings.log,
		GiveUp: giveUp,
	})
	if err != nil {
		return nil, err
	}
	c := newClient(d, chroot, settings, timeout)
	conn, events, err := zk.Connect(addresses, timeout, zk.WithDialer(d.Dial),
		zk.WithHostProvider(d.HostProvider()), zk.WithEventCallback(c.onEvent),
		zk.WithLogger(clientZKLog{settings.log}), zk.WithLogInfo(true))
	if err != nil {
		d.HangUp()
		return nil, err
	}
	c.zk = conn
	go c.drain(events)
	go c.events.tell()
	if err := c.establish(ctx, settings.auth); err != nil {
		return nil, err
	}
	return c, nil
}

// checkSessionTimeout returns an error for what zk, which counts in an int32 of
// milliseconds, cannot ask for.
func checkSessionTimeout(timeout time.Duration) error {
	if timeout < time.Millisecond || timeout.Milliseconds() > math.MaxInt32 {
		return fmt.Errorf("session timeout %v: must be from 1ms to %v",
			timeout, math.MaxInt32*time.Millisecond)
	}
	return nil
}

// newClient returns a Client without a connection.
func newClient(
	d *dial.Dialer, chroot string, settings *clientSettings, timeout time.Duration,
) *Client {
	c := &Client{
		dialer: d, chroot: chroot, chrootACL: settings.chrootACL,
		tick: settings.tick, log: settings.log,
		events: newClientEvents(settings, timeout), hooks: map[*func()]struct{}{},
		ready: make(chan struct{}), drained: make(chan struct{}),
	}
	c.gone = make(chan struct{})
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
	unsure := false
	makeChroot := func() error { return c.makeChroot(&unsure) }
	if err := c.insist(ctx, makeChroot); err != nil {
		return fmt.Errorf("create chroot %q: %w", c.chroot, err)
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
// or a parent znode went away under the call.
func clientMayRetry(err error) bool {
	for _, passing := range []error{
		zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved,
		zk.ErrClosing, zk.ErrNoNode,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// over tells why nothing more goes through the client, or never has.
func (c *Client) over() error {
	switch {
	case c.isZero():
		return fmt.Errorf("recipes: the client: %w", errZero)
	case c.closed.Err() != nil:
		return errClientClosed
	}
	return nil
}

// isZero tells of a client that Connect has not made.
func (c *Client) isZero() bool { return c.closed == nil }

// SessionTimeout returns the session timeout that the server granted at the last
// handshake. It applies for the life of the session, may differ from what Connect asked
// for, and may change when the client moves to another server.
func (c *Client) SessionTimeout() time.Duration {
	if c.isZero() {
		return 0
	}
	return c.dialer.LastHandshake().Timeout
}

// Unwrap returns the zk.Conn underneath, for what Conn does not offer. Its paths are the
// server's, above the chroot. It must not be closed directly: those who wait through the
// Client would not learn of it.
func (c *Client) Unwrap() *zk.Conn {
	return c.zk
}

// Close ends the session, so that the server removes its ephemeral znodes: holds through
// this client are lost, and calls that wait through it return at once. If no server
// answers within about a second, the session ends with its timeout. When Close returns,
// after two seconds or so at the worst, the client's goroutines have ended, unless a
// dialer or a log handler of the user's keeps one busy. Close may be called again, and by
// several goroutines at a time; each call returns when the client is closed.
func (c *Client) Close() {
	if c.isZero() {
		return
	}
	// Not a sync.Once: whoever waits for its mutex keeps the time in a testing/synctest
	// bubble from passing.
	if c.closing.Swap(true) {
		<-c.gone
		return
	}
	defer close(c.gone)
	c.events.close()
	c.tellClosed()
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
	clientAwait(c.drained)
	c.events.end()
	clientAwait(c.events.told)
}

func clientAwait(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(clientLeaveTimeout):
	}
}

// LastHandshake implements [SessionConn].
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

// ServerTick implements [SessionConn]. It returns what WithClientServerTick was given.
func (c *Client) ServerTick() time.Duration { return c.tick }

// OnClose implements [SessionConn]: f is called by Close, before it does anything else.
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

// tellClosed makes c closed and calls what OnClose was given.
func (c *Client) tellClosed() {
	c.setClosed(errClientClosed)
	c.hooksMu.Lock()
	hooks := c.hooks
	c.hooks = nil
	c.hooksMu.Unlock()
	for f := range hooks {
		(*f)()
	}
}

// onEvent is called by zk's own goroutines, which wait for it. Unlike the event channel,
// it misses no event.
func (c *Client) onEvent(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
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

// drain logs what the zk client does, for debugging, until its loop ends. It may miss
// some of it.
func (c *Client) drain(events <-chan zk.Event) {
	defer close(c.drained)
	for e := range events {
		if e.Type == zk.EventSession {
			c.log.Debug("zookeeper: state changed",
				"state", e.State.String(), "server", e.Server)
		}
	}
}

// clientZKLog passes the zk client's own log on. It tells every step, so it is for
// debugging only.
type clientZKLog struct{ log *slog.Logger }

func (l clientZKLog) Printf(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("zookeeper: " + fmt.Sprintf(format, args...))
	}
}

// ClientOption changes how Connect connects.
type ClientOption func(*clientSettings) error

type clientAuth struct {
	scheme string
	auth   []byte
}

type clientSettings struct {
	tls    *tls.Config // nil for plain text; never written to
	auth   []clientAuth
	dialer zk.Dialer       // nil for internal/dial's own
	hosts  zk.HostProvider // nil for internal/dial's own
	log    *slog.Logger
	tick   time.Duration

	maxReply int // 0 for internal/dial's own

	chrootACL []zk.ACL

	observer func(SessionEvent) // nil: there is none
}

func newClientSettings(opts []ClientOption) (*clientSettings, error) {
	s := &clientSettings{
		chrootACL: zk.WorldACL(zk.PermAll), log: slog.New(slog.DiscardHandler),
	}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("option %d is nil", i)
		}
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// WithTLS makes the client talk TLS. cfg is copied. If it has no ServerName, a server's
// certificate must be valid for the host that was dialled. That is the one in the connect
// string, unless a host provider returns another.
func WithTLS(cfg *tls.Config) ClientOption {
	cfg = cfg.Clone()
	return func(s *clientSettings) error {
		if cfg == nil {
			return errors.New("WithTLS: the config is nil")
		}
		s.tls = cfg
		return nil
	}
}

// WithAuth authenticates the session, at Connect and again at each reconnect. It can be
// given several times. The server does not check a digest when it receives it: a wrong
// password shows as zk.ErrNoAuth from the calls that it does not permit.
func WithAuth(scheme string, auth []byte) ClientOption {
	auth = append([]byte(nil), auth...)
	return func(s *clientSettings) error {
		if scheme == "" {
			return errors.New("WithAuth: the scheme is empty")
		}
		s.auth = append(s.auth, clientAuth{scheme, auth})
		return nil
	}
}

// WithChrootACL sets the ACL of the chroot, and of its parents, where Connect or a later
// create has to create them. Use it if not everybody may create locks there, or delete
// them: the permission to delete a znode is one on its parent. It applies to nothing that
// exists. Default: world:anyone. An empty list is an error.
func WithChrootACL(acl []zk.ACL) ClientOption {
	acl = slices.Clone(acl)
	return func(s *clientSettings) error {
		if len(acl) == 0 {
			return errors.New("WithChrootACL: the list is empty")
		}
		s.chrootACL = acl
		return nil
	}
}

// WithDialer sets the function that opens connections. With WithTLS, TLS runs over what
// it opens. It must respect its timeout: the client cannot cancel a dial.
func WithDialer(d zk.Dialer) ClientOption {
	return func(s *clientSettings) error {
		if d == nil {
			return errors.New("WithDialer: the dialer is nil")
		}
		s.dialer = d
		return nil
	}
}

// WithHostProvider sets what decides which server is dialled next. Connect initialises it
// with the servers of the connect string. It must not be shared between clients.
func WithHostProvider(p zk.HostProvider) ClientOption {
	return func(s *clientSettings) error {
		if p == nil {
			return errors.New("WithHostProvider: the provider is nil")
		}
		s.hosts = p
		return nil
	}
}

// WithMaxReply sets the length in bytes of the longest reply that the client accepts, by
// default 64 MiB; from 4096 to math.MaxInt32. The client cuts a connection on which a
// longer one is announced, before it allocates memory for it, and logs that at Warn. The
// call that the reply was for fails with zk.ErrConnectionClosed, and would fail again.
//
// Raise it if a list of children or the data of a znode is longer. Lower it where memory
// is scarce and the servers are not trusted: a reply costs its length and, decoded, at
// most five times as much, for a list of very short names.
//
// ZooKeeper's own setting of this kind is the system property jute.maxbuffer. A server
// uses it to refuse requests that are longer, by default 1 MiB, so it also bounds the
// data of a znode. It does not bound what a server sends: a list of many children can be
// longer. Java's client applies its own jute.maxbuffer to replies, as WithMaxReply does.
func WithMaxReply(bytes int) ClientOption {
	return func(s *clientSettings) error {
		if bytes < clientLeastReply || bytes > math.MaxInt32 {
			return fmt.Errorf("WithMaxReply: %d bytes: must be from %d to %d",
				bytes, clientLeastReply, math.MaxInt32)
		}
		s.maxReply = bytes
		return nil
	}
}

// WithClientServerTick sets the servers' tickTime for all locks that use the Client, as
// WithServerTick does for one lock.
func WithClientServerTick(d time.Duration) ClientOption {
	return func(s *clientSettings) error {
		if d <= 0 {
			return fmt.Errorf("WithClientServerTick: %v is not positive", d)
		}
		s.tick = d
		return nil
	}
}

// WithClientLogger sets the client's logger. Sessions are logged at Info; lost
// connections, expiry, failed attempts to connect, and a session timeout that is not the
// one asked for at Warn; single steps at Debug. By default nothing is logged.
func WithClientLogger(l *slog.Logger) ClientOption {
	return func(s *clientSettings) error {
		if l == nil {
			return errors.New("WithClientLogger: the logger is nil")
		}
		s.log = l
		return nil
	}
}
