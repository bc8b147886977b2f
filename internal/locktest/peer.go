package locktest

import (
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Session timeouts.
const (
	// Lasting is one that no test outlasts: no session ends by itself. It is also far
	// beyond [Patience], so that a lock which waits for the znode of an abandoned session
	// to go is found out.
	Lasting = time.Minute

	// Short is for tests that wait for the server to end the session. It leaves a busy
	// machine time enough not to end it before its turn.
	Short = 3 * time.Second
)

// SessionExpired is the code that answers a connect for a session that is over.
const SessionExpired = -112

// A Peer is one ZooKeeper session with its locks, as another process would have it.
type Peer struct {
	TB      testing.TB
	Conn    *zk.Conn
	Tap     *wiretap.Tap
	Timeout time.Duration // as negotiated
}

// NewPeer opens a session to servers, with every packet going through a tap.
func NewPeer(tb testing.TB, servers string, timeout time.Duration) *Peer {
	tb.Helper()
	return NewPeerOver(tb, servers, timeout, func(conn net.Conn) net.Conn { return conn })
}

// NewPeerOver is [NewPeer] with lines of the test's own: wrap may tamper with the
// client's end of each connection.
func NewPeerOver(
	tb testing.TB, servers string, timeout time.Duration, wrap func(net.Conn) net.Conn,
) *Peer {
	tb.Helper()
	tap := wiretap.New(zkserver.Dial(tb))
	conn, events, err := zk.Connect(strings.Split(servers, ","), timeout,
		zk.WithDialer(lineDialer(tap, wrap)), zk.WithHostProvider(&inOrder{}),
		zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	require.NoError(tb, err)
	tb.Cleanup(func() {
		tap.Heal()
		if zkserver.Virtual(tb) {
			// What is under way ends first, as for ConnectBare.
			time.Sleep(timeout)
		}
		conn.Close()
		awaitEnd(tb, events)
	})
	p := &Peer{TB: tb, Conn: conn, Tap: tap, Timeout: timeout}
	p.AwaitSession()
	return p
}

// SharedPeer opens a session to the server that all tests of a package share.
func SharedPeer(tb testing.TB) *Peer {
	tb.Helper()
	return NewPeer(tb, zkserver.Shared(tb).Connect(), 4*time.Second)
}

// ManyNames is the server that all tests of a package share, several times over, like an
// ensemble: a client that knows only one address pauses for a second before it dials
// again, and fails the calls that it has queued.
func ManyNames(tb testing.TB) string {
	tb.Helper()
	return strings.Join(slices.Repeat([]string{zkserver.Shared(tb).Connect()}, 5), ",")
}

// awaitEnd waits until the client's loop has ended, so that no test has to do with
// another's goroutines. A loop that is stuck for ever, as go-zookeeper's can be when
// calls are under way at Close (docs/appendix/hazards.md, E26), is left behind.
func awaitEnd(tb testing.TB, events <-chan zk.Event) {
	tb.Helper()
	stuck := time.After(Patience)
	for {
		select {
		case _, open := <-events:
			if !open {
				return
			}
		case <-stuck:
			tb.Log("a loop of the zk client is stuck")
			return
		}
	}
}

// AwaitSession waits until the client has a session, and is at rest if it can be seen.
func (p *Peer) AwaitSession() {
	p.TB.Helper()
	Eventually(
		p.TB, func() bool { return p.Conn.State() == zk.StateHasSession }, "no session",
	)
	if zkserver.Virtual(p.TB) {
		rest()
	}
}

// rest waits until a client with a new connection has set its watches again, as it does
// even on its first one: a watch that a test sets before that would be sent twice. The
// test goes on at an odd moment: else its sleeps of whole seconds would end just when a
// ping is due, and either could come first.
func rest() {
	synctest.Wait()
	time.Sleep(137 * time.Microsecond)
}

// AwaitHeartbeat waits until the loss clock has asked the server anew and got an answer.
func (p *Peer) AwaitHeartbeat() {
	p.TB.Helper()
	p.AwaitSession()
	p.Tap.Reset()
	Eventually(p.TB, func() bool { return p.Tap.Count(wiretap.Sync) > 0 }, "no heartbeat")
	_, _, err := p.Conn.Get("/") // answered behind the heartbeat
	require.NoError(p.TB, err)
}

// Mutex returns a mutex through the peer's connection. It knows the session timeout.
func (p *Peer) Mutex(path string, opts ...recipes.Option) *recipes.InterProcessMutex {
	p.TB.Helper()
	opts = append([]recipes.Option{recipes.WithSessionTimeout(p.Timeout)}, opts...)
	return NewMutex(p.TB, p.Conn, path, opts...)
}

// Children is [Children] through the peer's connection.
func (p *Peer) Children(path string) []string {
	p.TB.Helper()
	return Children(p.TB, p.Conn, path)
}

// AwaitChildren is [AwaitChildren] through the peer's connection.
func (p *Peer) AwaitChildren(path string, n int) []string {
	p.TB.Helper()
	return AwaitChildren(p.TB, p.Conn, path, n)
}

// RequestsBelow returns the requests that concerned a path or what is below, so not the
// heartbeat.
func (p *Peer) RequestsBelow(path string) []wiretap.Packet {
	return RequestsBelow(p.Tap, path)
}

// RequestsBelow is [Peer.RequestsBelow] for what goes through a tap.
func RequestsBelow(tap *wiretap.Tap, path string) (requests []wiretap.Packet) {
	for _, request := range tap.Requests() {
		if request.Path == path || strings.HasPrefix(request.Path, path+"/") {
			requests = append(requests, request)
		}
	}
	return requests
}

// Asked returns the operations of [Peer.RequestsBelow].
func (p *Peer) Asked(path string) (ops []wiretap.Op) {
	for _, request := range p.RequestsBelow(path) {
		ops = append(ops, request.Op)
	}
	return ops
}

// Watching returns the paths that watches were set on, in the order of the requests.
func (p *Peer) Watching() (paths []string) {
	for _, request := range p.Tap.Requests() {
		if request.Watch {
			paths = append(paths, request.Path)
		}
	}
	return paths
}
