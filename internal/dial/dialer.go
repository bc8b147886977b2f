package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/usercode"
	"github.com/zkrecipes/recipes/internal/wire"
)

// A server that was dialled has a third of the session timeout for the handshake, TLS and
// ZooKeeper's own together, within these bounds. A server that is frozen or just starting
// accepts connections and says nothing; with a third there is time to reach another one
// within the session. The lower bound is for the quorum that must agree on a new session,
// the upper one for a user who asks for an hour where servers grant less than a minute.
// If no server has done in that time, as where disks are slow and a new session is a
// commit, the next attempts have more, up to the session timeout.
const (
	handshakeShare    = 3
	handshakeShortest = time.Second
	handshakeLongest  = 15 * time.Second

	// longestGranted is the longest session timeout that counts before one is granted.
	longestGranted = handshakeShare * handshakeLongest
	// connectShare bounds the time for a TCP connection; zk wants a second. A lost packet
	// is sent again less and less often, so that after an outage a long attempt may end
	// later than one that starts over.
	connectShare = 2
)

// errHungUp is the error for a zk that dials after HangUp. It only logs it.
var errHungUp = errors.New("no connection is opened any more: the client was closed")

// DefaultMaxReply is the length of the longest reply where [Config].MaxReply is 0.
const DefaultMaxReply = 64 << 20

// A Config says how to dial. Log, GiveUp and SessionTimeout must be set.
type Config struct {
	// Dial opens connections; with TLS it opens what TLS runs over. Where it is nil, the
	// package looks names up and connects by TCP.
	Dial zk.Dialer
	// HostProvider decides which server is dialled next. Where it is nil, all are dialled
	// in turn, in random order.
	HostProvider zk.HostProvider
	// TLS is nil for plain text, and never written to.
	TLS *tls.Config
	// SASL is nil for connections that are not authenticated by it.
	SASL *SASL

	// SessionTimeout is the one that the client asks for.
	SessionTimeout time.Duration
	// MaxReply bounds the length of a reply, in bytes; 0 stands for DefaultMaxReply. The
	// request of a longer one fails with an error that outcome.Named explains.
	MaxReply int
	// Log receives at Warn failed attempts and malformed replies; at Error, that servers
	// have hung up for long, see hungUp.
	Log *slog.Logger
	// GiveUp is called when as many attempts in a row as there are servers were refusals,
	// with the last one's error, and again after each further one. It must not block.
	GiveUp func(why error)
}

// A Dialer opens the connections of one client, to which its Dial and its HostProvider
// are given. The methods but Dial are safe for concurrent use.
type Dialer struct {
	// Set by New.
	config  Config
	connect func(
		ctx context.Context, network, address string, timeout time.Duration,
	) (net.Conn, error)
	ctx  context.Context // done once HangUp was called
	stop context.CancelFunc

	rounds   *rounds
	attempts attempts
	creates  creates
	last     atomic.Pointer[Handshake] // nil before the first

	mu   sync.Mutex // guards conn; not held while dialling
	conn net.Conn   // the last one opened
}

// New returns a Dialer for servers, each of which has a port. It initialises the host
// provider, and returns its error, or why ctx is done before it is through.
func New(ctx context.Context, servers []string, config Config) (*Dialer, error) {
	if config.HostProvider == nil {
		config.HostProvider = &shuffled{}
	}
	config.MaxReply = cmp.Or(config.MaxReply, DefaultMaxReply)
	d := &Dialer{
		config:  config,
		connect: newHosts().Connect,
		rounds:  newRounds(config.HostProvider),
		creates: creates{zxids: map[string]int64{}},
	}
	if config.Dial != nil {
		d.connect = func(
			_ context.Context, network, address string, timeout time.Duration,
		) (conn net.Conn, err error) {
			failed := usercode.Contain("the dialer", func() {
				conn, err = config.Dial(network, address, timeout)
			})
			return conn, cmp.Or(failed, err)
		}
	}
	if err := d.rounds.start(ctx, servers); err != nil {
		return nil, err
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d, nil
}

// HostProvider is for zk.WithHostProvider, with d.Dial for zk.WithDialer.
func (d *Dialer) HostProvider() zk.HostProvider { return d.rounds }

// Pausing reports whether the zk client pauses between two rounds, or is about to.
func (d *Dialer) Pausing() bool { return d.rounds.isPausing() }

// LastHandshake returns the last handshake that gave a session or resumed one, and the
// zero value before the first.
func (d *Dialer) LastHandshake() Handshake {
	if last := d.last.Load(); last != nil {
		return *last
	}
	return Handshake{}
}

// CreatedAt returns the zxid of the client's last create of an ephemeral sequential znode
// with that path, as it was asked for, without the number, if it is answered; 0 if that
// is not known. It returns it once, and not after hundreds of other creates.
func (d *Dialer) CreatedAt(path string) (zxid int64) { return d.creates.take(path) }

// Explain adds to cause, for which nobody waits for a session any more, what kept it
// away: why the last attempt failed, or that a server has not answered yet. A cause that
// came from Config.GiveUp says so already.
func (d *Dialer) Explain(cause error) error { return d.attempts.explain(cause) }

// TellCut returns why a connection was cut for a malformed reply since the last call; nil
// if none was. It is known before zk says that the connection is gone.
func (d *Dialer) TellCut() error { return d.attempts.tellCut() }

// HangUp cuts the connection and lets no other be opened. It sends the zk client to its
// pause; what it returns is closed once it is there. It may be called again.
func (d *Dialer) HangUp() (paused <-chan struct{}) {
	d.stop()
	paused = d.rounds.end()
	d.mu.Lock()
	conn := d.conn
	d.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	return paused
}

// Dial is a zk.Dialer. timeout bounds it without TLS's handshake, and more than that if
// that was too little before; not so for a dialer of the user's, which nothing ends.
func (d *Dialer) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	d.rounds.dialing()
	d.attempts.began(address)
	if d.ctx.Err() != nil {
		return nil, errHungUp
	}
	conn, err := d.open(network, address, timeout)
	if err != nil {
		d.failed(address, err)
		return nil, err
	}

	d.mu.Lock()
	last := d.conn
	d.conn = conn
	d.mu.Unlock()
	if last != nil {
		last.Close() // zk does not, if the server has expired the session
	}
	if d.ctx.Err() != nil {
		conn.Close() // HangUp may have come too early to see conn
	}
	return conn, nil
}

// open connects, and does TLS's handshake.
func (d *Dialer) open(network, address string, timeout time.Duration) (net.Conn, error) {
	if err := d.rounds.failed; err != nil {
		return nil, fmt.Errorf("host provider: %w", err)
	}
	if d.config.Dial == nil {
		most := max(timeout, d.sessionTimeout()/connectShare)
		timeout = d.attempts.grown(timeout, most, d.rounds.Len())
	}
	raw, err := d.connect(d.ctx, network, address, timeout)
	if wire.IsHangUp(err) { // sooner than connect looked
		return nil, hungUp("is it serving?", err)
	}
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, errors.New("the dialer returned neither a connection nor an error")
	}
	c := &conn{
		Conn: raw, raw: raw, dialer: d, server: address, began: time.Now(),
	}
	c.until = c.began.Add(d.handshakeTimeout())
	if d.config.TLS == nil {
		return c, nil
	}
	secured, err := d.secure(raw, address, c.until)
	if err != nil {
		raw.Close()
		if wire.IsHangUp(err) {
			err = hungUp("is it serving, and with TLS?", err)
		}
		return nil, fmt.Errorf("TLS: %w", err)
	}
	c.Conn = secured
	return c, nil
}

func (d *Dialer) secure(
	raw net.Conn, address string, until time.Time,
) (net.Conn, error) {
	config := d.config.TLS
	if config.ServerName == "" { // the name as it was dialled, not an address of it
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config = config.Clone()
		config.ServerName = host
	}
	ctx, cancel := context.WithDeadline(d.ctx, until)
	defer cancel()
	conn := tls.Client(raw, config)
	var err error
	failed := usercode.Contain("a callback of the TLS configuration", func() {
		err = conn.HandshakeContext(ctx)
	})
	return conn, cmp.Or(failed, err)
}

// within calls code of the user's that may not respect ctx, as Kerberos, which asks its
// own servers. A call that takes too long is left behind.
func within(ctx context.Context, what string, call func() error) error {
	returned := make(chan error, 1)
	go func() {
		var err error
		failed := usercode.Contain(what, func() { err = call() })
		returned <- cmp.Or(failed, err)
	}()
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handshakeTimeout is the time that a server has for the handshake.
func (d *Dialer) handshakeTimeout() time.Duration {
	timeout := d.sessionTimeout()
	least := min(max(timeout/handshakeShare, handshakeShortest), handshakeLongest)
	return d.attempts.grown(least, max(least, timeout), d.rounds.Len())
}

// sessionTimeout is the one that was granted last or, before one was, what a server would
// most likely grant.
func (d *Dialer) sessionTimeout() time.Duration {
	if granted := d.LastHandshake().Timeout; granted > 0 {
		return granted
	}
	return min(d.config.SessionTimeout, longestGranted)
}

// failed records an attempt that failed.
func (d *Dialer) failed(server string, err error) {
	if d.ctx.Err() != nil { // most likely since HangUp cut it
		return
	}
	err = fmt.Errorf("%s: %w", server, err)
	refusals := d.attempts.failed(err)
	unauthenticated := errors.Is(err, zk.ErrAuthFailed)
	if unauthenticated {
		d.config.Log.Error("zookeeper: authentication failed", "error", err)
	} else {
		d.config.Log.Warn("zookeeper: connection attempt failed", "error", err)
	}
	// All servers reject a login alike. Of other refusals each may have its own reason.
	if unauthenticated || refusals >= max(d.rounds.Len(), 1) {
		d.config.GiveUp(err)
	}
}

// hungUp records that a server has hung up at a handshake. Servers do that without a word
// while they have no quorum, and to a client that has seen a later zxid than theirs: see
// conn.compare. So it is logged once it has lasted for a session timeout, and an attempt
// of a client that has seen nothing has failed as well; then not until a handshake
// succeeds.
func (d *Dialer) hungUp() {
	if d.LastHandshake().Timeout == 0 || d.ctx.Err() != nil {
		return
	}
	if since, tell := d.attempts.hungUp(time.Now()); tell {
		d.config.Log.Error("zookeeper: the servers hang up at each handshake",
			"since", since,
			"cause", "they have no quorum, or those in reach lag behind the others",
			"advice", "see the servers' logs")
	}
}

// compares reports whether an attempt to resume a session is to compare histories.
func (d *Dialer) compares() bool {
	timeout := d.LastHandshake().Timeout
	return timeout > 0 && d.attempts.compares(time.Now(), timeout)
}

// succeeded records an attempt that ended with an answer, and the session that it gave; h
// is nil if the server said that the session has expired.
func (d *Dialer) succeeded(h *Handshake) {
	if h != nil {
		d.last.Store(h)
	}
	d.attempts.succeeded()
}
