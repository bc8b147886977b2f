package recipes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/dial"
)

// A server that was dialled has a third of the session timeout for the handshake, TLS and ZooKeeper's own together,
// within these bounds. zk would give it almost seven session timeouts, and a server that is frozen or just starting
// accepts connections and says nothing; with a third there is time to reach another server within the session. The
// lower bound is for the quorum that must agree on a new session, the upper one for a user who asks for an hour where
// servers grant less than a minute.
const (
	handshakeShortest = time.Second
	handshakeLongest  = 15 * time.Second
)

// clientDialer opens the connections of one Client. It also stands between zk and the host provider, to know whether zk
// dials or pauses.
type clientDialer struct {
	zk.HostProvider // the user's or the default; after initHosts used only by zk's goroutine that connects

	open   func(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error)
	tls    *tls.Config // nil for plain text
	log    *slog.Logger
	asked  time.Duration           // the session timeout that Connect was given
	giveUp context.CancelCauseFunc // ends Connect

	last atomic.Pointer[handshake] // the last one that gave a session, nil before the first

	ctx  context.Context // done once the Client has hung up
	stop context.CancelFunc

	mu       sync.Mutex    // guards what follows; not held while dialling
	conn     net.Conn      // the last one opened
	trying   string        // the server that was dialled last, "" once it answered
	lastErr  error         // why the last attempt failed, nil once one succeeded
	refusals int           // attempts in a row that failed for good
	pausing  bool          // zk pauses before it dials again
	paused   chan struct{} // closed by the first that finds that zk pauses and the Client has hung up
}

// A handshake that gave a session, or took it up again.
type handshake struct {
	session int64
	began   time.Time
	granted time.Duration // the negotiated session timeout
}

func newClientDialer(s *clientSettings, asked time.Duration, giveUp context.CancelCauseFunc) *clientDialer {
	d := &clientDialer{
		HostProvider: s.hosts,
		open:         dial.NewHosts().Connect,
		tls:          s.tls,
		log:          s.log,
		asked:        asked,
		giveUp:       giveUp,
		paused:       make(chan struct{}),
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	if s.dialer != nil {
		d.open = func(_ context.Context, network, address string, timeout time.Duration) (net.Conn, error) {
			return s.dialer(network, address, timeout)
		}
	}
	return d
}

// initHosts initialises the host provider in zk's stead: it may look names up, and zk would wait for that without
// regard to ctx.
func (d *clientDialer) initHosts(ctx context.Context, addresses []string) error {
	done := make(chan error, 1)
	go func() { done <- d.HostProvider.Init(addresses) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("host provider: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("host provider: %w", context.Cause(ctx))
	}
}

// Init does nothing: initHosts did it.
func (d *clientDialer) Init([]string) error { return nil }

// Next returns the server to dial next. With retryStart zk answers the calls that wait for a connection, and pauses
// before it dials; after hangUp it is always led there.
func (d *clientDialer) Next() (server string, retryStart bool) {
	server, retryStart = d.HostProvider.Next()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pausing = retryStart || d.ctx.Err() != nil
	d.tellPausedLocked()
	return server, d.pausing
}

func (d *clientDialer) isPausing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pausing
}

func (d *clientDialer) tellPausedLocked() {
	if !d.pausing || d.ctx.Err() == nil {
		return
	}
	select {
	case <-d.paused:
	default:
		close(d.paused)
	}
}

// hangUp cuts the connection and lets no other be opened.
func (d *clientDialer) hangUp() {
	d.mu.Lock()
	d.stop()
	d.tellPausedLocked()
	conn := d.conn
	d.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// dial is the zk.Dialer.
func (d *clientDialer) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	d.mu.Lock()
	d.pausing, d.trying = false, address
	d.mu.Unlock()
	if d.ctx.Err() != nil {
		return nil, errClientClosed
	}
	conn, err := d.connect(network, address, timeout)
	if err != nil {
		d.failed(address, err)
		return nil, err
	}

	d.mu.Lock()
	last := d.conn
	d.conn = conn
	d.mu.Unlock()
	if last != nil {
		last.Close() // zk forgets to, when the server has expired the session
	}
	if d.ctx.Err() != nil {
		conn.Close() // hangUp may have come too early to see conn
	}
	return conn, nil
}

func (d *clientDialer) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	raw, err := d.open(d.ctx, network, address, timeout)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, errors.New("the dialer returned neither a connection nor an error")
	}
	conn := &clientConn{Conn: raw, raw: raw, dialer: d, address: address, began: time.Now()}
	conn.until = conn.began.Add(d.patience())
	if d.tls == nil {
		return conn, nil
	}
	secured, err := d.secure(raw, address, conn.until)
	if err != nil {
		raw.Close()
		if hungUp(err) {
			err = fmt.Errorf("the server hung up, is it serving, and with TLS? (%w)", err)
		}
		return nil, fmt.Errorf("TLS: %w", err)
	}
	conn.Conn = secured
	return conn, nil
}

func (d *clientDialer) secure(raw net.Conn, address string, until time.Time) (net.Conn, error) {
	cfg := d.tls
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	ctx, cancel := context.WithDeadline(d.ctx, until)
	defer cancel()
	conn := tls.Client(raw, cfg)
	return conn, conn.HandshakeContext(ctx)
}

// patience is the time that a server has for the handshake.
func (d *clientDialer) patience() time.Duration {
	timeout := d.sessionTimeout()
	if timeout == 0 {
		timeout = d.asked
	}
	return min(max(timeout/3, handshakeShortest), handshakeLongest)
}

func (d *clientDialer) sessionTimeout() time.Duration {
	if last := d.last.Load(); last != nil {
		return last.granted
	}
	return 0
}

// failed takes note of an attempt to connect that failed. It is called by zk's goroutine that connects.
func (d *clientDialer) failed(address string, err error) {
	if d.ctx.Err() != nil {
		return
	}
	err = fmt.Errorf("%s: %w", address, err)
	d.log.Warn("zookeeper: cannot connect", "error", err)
	servers := max(d.Len(), 1)
	d.mu.Lock()
	d.lastErr = err
	if dialRefused(err) {
		d.refusals++
	} else {
		d.refusals = 0
	}
	hopeless := d.refusals >= servers
	d.mu.Unlock()
	if hopeless {
		d.giveUp(err)
	}
}

// succeeded takes note of a handshake that came to its end.
func (d *clientDialer) succeeded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trying, d.lastErr, d.refusals = "", nil, 0
}

// explain adds to cause, for which an attempt to connect ended, what kept it waiting.
func (d *clientDialer) explain(cause error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case errors.Is(cause, d.lastErr): // giveUp's
		return cause
	case d.lastErr != nil:
		// As text: a dial that timed out would pass for context.DeadlineExceeded where the cause is another.
		return fmt.Errorf("%w; last attempt: %s", cause, d.lastErr.Error())
	case d.trying != "":
		return fmt.Errorf("%w; still waiting for %s", cause, d.trying)
	}
	return cause
}

// dialRefused reports whether an attempt failed in a way that is no different at the next: for a certificate, or
// because the server does not talk TLS, or ZooKeeper.
func dialRefused(err error) bool {
	// An alert of TLS has no exported type. One that is about the client's certificate comes with TLS 1.3 only at the
	// first read.
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") {
		return true
	}
	var (
		verification *tls.CertificateVerificationError
		plain        tls.RecordHeaderError
		invalid      x509.CertificateInvalidError
		name         x509.HostnameError
		authority    x509.UnknownAuthorityError
	)
	return errors.Is(err, errNotZooKeeper) || errors.As(err, &verification) || errors.As(err, &plain) ||
		errors.As(err, &invalid) || errors.As(err, &name) || errors.As(err, &authority)
}

// hungUp reports whether err says no more than that the server ended the connection. It does so when it is not serving,
// for want of a quorum, say, and also when only one of the two talks TLS; what of these it is cannot be told.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}
