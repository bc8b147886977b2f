package zkserver

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// Test runs a test in virtual time: in a testing/synctest bubble, in which [Start] and
// [Shared] give it zktests of its own, and [Dial] is the way to them. Where ZOOKEEPER_RUN
// or ZOOKEEPER_SERVERS asks for real servers, the test runs as it is, in real time, with
// those. In a bubble no test may call t.Parallel or t.Run: see [Run].
func Test(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	run := os.Getenv("ZOOKEEPER_RUN")
	if !isEmbedded(run) || os.Getenv("ZOOKEEPER_SERVERS") != "" || isReal(t) {
		test(t)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		networks.Store(t, &network{keeper: run == "keeper"})
		// The first to be registered is the last to run: all clients and servers are
		// closed by then, and what they have under way ends by itself.
		t.Cleanup(func() {
			time.Sleep(2 * time.Minute)
			networks.Delete(t)
		})
		test(t)
	})
}

// Run runs a case of a test with [Test].
func Run(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { Test(t, test) })
}

// Virtual tells whether tb runs in a bubble of [Test].
func Virtual(tb testing.TB) bool {
	tb.Helper()
	return networkOf(tb) != nil
}

// Dial returns how tb's clients dial the servers of [Start] and [Shared].
func Dial(tb testing.TB) zk.Dialer {
	tb.Helper()
	if n := networkOf(tb); n != nil {
		return n.dial
	}
	return net.DialTimeout
}

// networks are those of the tests that run in bubbles, by their testing.TB.
var networks sync.Map

func networkOf(tb testing.TB) *network {
	tb.Helper()
	if n, ok := networks.Load(tb); ok {
		return n.(*network)
	}
	return nil
}

// A network is that of one bubble, with the servers that its test has started.
type network struct {
	keeper bool
	shared *Cluster // what Shared gives; of the test's goroutine

	mu      sync.Mutex // guards servers
	servers []networkServer
}

// A networkServer has its place in network.servers for its port.
type networkServer struct {
	cluster *zktest.Cluster
	name    string // by which cluster knows it
}

// join gives a cluster its addresses: on loopback, as in real time, and from port 1 on,
// which no real server has.
func (n *network) join(cluster *zktest.Cluster) (addrs []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range cluster.Names() {
		n.servers = append(n.servers, networkServer{cluster, name})
		addrs = append(addrs, net.JoinHostPort(loopback, strconv.Itoa(len(n.servers))))
	}
	return addrs
}

var errNoServer = errors.New("no server of this test has that address")

func (n *network) dial(
	network, address string, timeout time.Duration,
) (net.Conn, error) {
	s, ok := n.at(address)
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errNoServer}
	}
	return s.cluster.Dial(network, s.name, timeout)
}

func (n *network) at(address string) (networkServer, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, port, err := net.SplitHostPort(address)
	i, errPort := strconv.Atoi(port)
	if err != nil || errPort != nil || host != loopback || i < 1 || i > len(n.servers) {
		return networkServer{}, false
	}
	return n.servers[i-1], true
}
