package locktest

import (
	"io"
	"log"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// Each connection of go-zookeeper has a buffer of 1.5 MB, and tests make thousands of
// connections: at 100, a fifth of their time was garbage collection.
var _ = debug.SetGCPercent(400)

// A Bubble has two processes on an ensemble of its own, in virtual time.
type Bubble struct {
	Cluster     *zktest.Cluster
	Ours, Other *recipes.Client            // by way of the links "ours" and "other"
	Lock        *recipes.InterProcessMutex // of ours, at /lock
}

// InBubble runs a test in a bubble.
func InBubble(t *testing.T, test func(t *testing.T, b *Bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithShuffle())
		b := &Bubble{
			Cluster: cluster,
			Ours:    ConnectThrough(t, cluster, "ours"),
			Other:   ConnectThrough(t, cluster, "other"),
		}
		b.Lock = b.Mutex(t, b.Ours, "/lock")
		test(t, b)
	})
}

// Run runs a case of a test with [InBubble].
func Run(t *testing.T, name string, test func(t *testing.T, b *Bubble)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { InBubble(t, test) })
}

// RunVirtual runs a case of a test in a bubble in which nothing is yet.
func RunVirtual(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// Mutex returns a mutex of one of the processes.
func (*Bubble) Mutex(
	t *testing.T, client *recipes.Client, path string, opts ...recipes.Option,
) *recipes.InterProcessMutex {
	t.Helper()
	return NewMutex(t, client, path, opts...)
}

// Lose deletes what holds the lock, and waits until the holder knows.
func (b *Bubble) Lose(t *testing.T, hold *recipes.Hold) {
	t.Helper()
	require.NoError(t, b.Other.Delete(hold.Path(), -1))
	<-hold.Lost()
}

// Connect opens a client of those servers, by way of a link. It is for bubbles: time
// stands still but for them.
func Connect(
	t *testing.T, link *zktest.Link, servers string, timeout time.Duration,
) *recipes.Client {
	t.Helper()
	return connect(t, link.Dial, servers, timeout)
}

func connect(
	t *testing.T, dial zk.Dialer, servers string, timeout time.Duration,
) *recipes.Client {
	t.Helper()
	client, err := recipes.Connect(
		t.Context(), servers, timeout, recipes.WithDialer(dial))
	require.NoError(t, err)
	rest()
	atLast(t)
	t.Cleanup(client.Close)
	return client
}

// slept are the tests that sleep when they have closed their clients.
var slept sync.Map

// atLast has a test sleep when its clients are closed, until what they have under way has
// ended by itself. It is called before the first client's cleanup is registered, and so
// it sleeps once: a client that is still open then would make most of the test's work.
func atLast(t *testing.T) {
	t.Helper()
	if _, again := slept.LoadOrStore(t, nil); again {
		return
	}
	t.Cleanup(func() {
		time.Sleep(time.Minute) // virtual
		slept.Delete(t)
	})
}

// ConnectTapped is [Connect] with every packet going through a tap.
func ConnectTapped(
	t *testing.T, link *zktest.Link, servers string, timeout time.Duration,
) (*recipes.Client, *wiretap.Tap) {
	t.Helper()
	tap := wiretap.New(link.Dial)
	return connect(t, tap.Dial, servers, timeout), tap
}

// ConnectThrough is [Connect] to any of the servers, through a link of its own.
func ConnectThrough(t *testing.T, cluster *zktest.Cluster, link string) *recipes.Client {
	t.Helper()
	names := strings.Join(cluster.Names(), ",")
	return Connect(t, cluster.Link(link), names, 10*time.Second)
}

// ConnectBare is [Connect] for a *zk.Conn, of which a lock does not learn its session
// timeout.
func ConnectBare(
	t *testing.T, link *zktest.Link, servers string, timeout time.Duration,
) *zk.Conn {
	t.Helper()
	conn, events := OpenBare(t, link, servers, timeout)
	atLast(t)
	t.Cleanup(func() {
		link.Heal()
		// What is under way ends first: a request that go-zookeeper still writes while it
		// is being closed can leave its loop stuck forever.
		time.Sleep(timeout)
		conn.Close()
		for range events {
		}
	})
	return conn
}

// OpenBare is [ConnectBare] for a test that closes the connection. The client closes
// events when its loop has ended.
func OpenBare(
	t *testing.T, link *zktest.Link, servers string, timeout time.Duration,
) (conn *zk.Conn, events <-chan zk.Event) {
	t.Helper()
	addrs := strings.Split(servers, ",")
	conn, events, err := zk.Connect(addrs, timeout, zk.WithDialer(link.Dial),
		zk.WithHostProvider(&inOrder{}), zk.WithLogInfo(false),
		zk.WithLogger(log.New(io.Discard, "", 0)))
	require.NoError(t, err)
	for conn.State() != zk.StateHasSession {
		time.Sleep(10 * time.Millisecond)
	}
	rest()
	return conn, events
}
