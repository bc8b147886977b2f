package recipes_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestMain(m *testing.M) { os.Exit(zkserver.Main(m)) }

// patience bounds a wait for what must happen; nothing is shown by its length.
const patience = 20 * time.Second

// A peer is one ZooKeeper session with its locks, as another process would have it.
type peer struct {
	t       testing.TB
	conn    *zk.Conn
	tap     *wiretap.Tap
	timeout time.Duration // as negotiated
}

// newPeer opens a session to servers, with every packet going through a tap.
func newPeer(tb testing.TB, servers string, timeout time.Duration) *peer {
	tb.Helper()
	tap := wiretap.New(nil)
	return newPeerBy(tb, servers, timeout, tap, lineDialer(tap, func(conn net.Conn) net.Conn { return conn }))
}

// newPeerBy is newPeer with a dialer of the test's own, which is expected to go through tap.
func newPeerBy(tb testing.TB, servers string, timeout time.Duration, tap *wiretap.Tap, dial zk.Dialer) *peer {
	tb.Helper()
	conn, events, err := zk.Connect(strings.Split(servers, ","), timeout, zk.WithDialer(dial),
		zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	require.NoError(tb, err)
	tb.Cleanup(func() {
		tap.Heal()
		conn.Close()
		awaitEnd(tb, events)
	})
	p := &peer{t: tb, conn: conn, tap: tap, timeout: timeout}
	p.awaitSession()
	return p
}

// awaitEnd waits until the client's loop has ended, so that no test has to do with another's goroutines. A loop that is stuck for
// ever, as go-zookeeper's can be when calls are under way at Close (HAZARDS E26), is left behind.
func awaitEnd(tb testing.TB, events <-chan zk.Event) {
	tb.Helper()
	stuck := time.After(patience)
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

// lineDialer dials through tap and lets wrap tamper with the client's end.
func lineDialer(tap *wiretap.Tap, wrap func(net.Conn) net.Conn) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := tap.Dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return wrap(&plainLine{conn}), nil
	}
}

// A plainLine does not tell that a write failed, it only closes. With both the client's loop can be left stuck for ever, if the
// request was made while the client was being closed: its reply channel has room for two answers, and gets three.
type plainLine struct{ net.Conn }

func (l *plainLine) Write(b []byte) (int, error) {
	if _, err := l.Conn.Write(b); err != nil {
		_ = l.Close()
	}
	return len(b), nil
}

// sharedPeer opens a session to the server that all tests share.
func sharedPeer(tb testing.TB) *peer {
	tb.Helper()
	return newPeer(tb, zkserver.Shared(tb).Connect(), 4*time.Second)
}

func (p *peer) awaitSession() {
	p.t.Helper()
	eventually(p.t, func() bool { return p.conn.State() == zk.StateHasSession }, "no session")
}

// mutex returns a mutex through the peer's connection. It knows the session timeout.
func (p *peer) mutex(path string, opts ...recipes.Option) *recipes.InterProcessMutex {
	p.t.Helper()
	m, err := recipes.NewInterProcessMutex(p.conn, path, append([]recipes.Option{recipes.WithSessionTimeout(p.timeout)}, opts...)...)
	require.NoError(p.t, err)
	return m
}

// children returns what is in a directory, in the order of the sequence numbers; a missing directory is empty.
func (p *peer) children(path string) []string {
	p.t.Helper()
	children, _, err := p.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	require.NoError(p.t, err)
	slices.SortFunc(children, func(a, b string) int { return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):]) })
	return children
}

// awaitChildren waits until a directory has n children, and returns them.
func (p *peer) awaitChildren(path string, n int) (children []string) {
	p.t.Helper()
	eventually(p.t, func() bool {
		children = p.children(path)
		return len(children) == n
	}, "%s does not come to have %d children", path, n)
	return children
}

// eventually waits for what must happen. It is for conditions that nothing tells of; they are looked at, not slept for.
func eventually(tb testing.TB, ok func() bool, format string, args ...any) {
	tb.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf(format, args...)
		}
	}
}

// within returns what arrives on ch, which must not take longer than patience.
func within[T any](tb testing.TB, ch <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-ch:
		return v
	case <-time.After(patience):
		tb.Fatalf("timed out: %s", what)
		return v
	}
}

// start runs f on a goroutine of its own, whose result comes on the channel.
func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// isOutOfTime tells whether err is what AcquireTimeout gives in a short time while others
// are ahead: nobody knows of them where it is over before the first answer.
func isOutOfTime(err error) bool {
	return err == nil || errors.Is(err, recipes.ErrUnavailable)
}

func requireOutOfTime(tb testing.TB, err error) {
	tb.Helper()
	require.True(tb, isOutOfTime(err), "%v", err)
}

// ownerContext returns a ctx with an owner of its own that ends with the test.
func ownerContext(tb testing.TB) context.Context {
	tb.Helper()
	return recipes.WithOwner(tb.Context())
}

// A recorder keeps the events that locks tell.
type recorder struct {
	mu     sync.Mutex
	events []recipes.Event
}

func (r *recorder) observe(_ context.Context, e recipes.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) kinds() []recipes.EventKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []recipes.EventKind
	for _, e := range r.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// await waits for an event of a kind and returns the first.
func (r *recorder) await(tb testing.TB, kind recipes.EventKind) (found recipes.Event) {
	tb.Helper()
	eventually(tb, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		i := slices.IndexFunc(r.events, func(e recipes.Event) bool { return e.Kind == kind })
		if i >= 0 {
			found = r.events[i]
		}
		return i >= 0
	}, "no event %q", kind)
	return found
}
