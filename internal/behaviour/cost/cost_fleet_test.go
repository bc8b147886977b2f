package cost_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A fleet is clients on one cluster, whose requests and bytes are counted together.
type fleet struct {
	tap   *wiretap.Tap
	bytes atomic.Int64
}

func newFleet(cluster *zktest.Cluster) *fleet {
	f := new(fleet)
	f.tap = wiretap.New(func(
		network, address string, timeout time.Duration,
	) (net.Conn, error) {
		conn, err := cluster.Dial(network, address, timeout)
		return meteredConn{conn, &f.bytes}, err
	})
	return f
}

// count waits for so long, and returns what was sent meanwhile.
func (f *fleet) count(long time.Duration) (requests map[wiretap.Op]int, bytes int64) {
	f.tap.Reset()
	before := f.bytes.Load()
	time.Sleep(long)
	requests = map[wiretap.Op]int{wiretap.Ping: f.tap.Count(wiretap.Ping)}
	for _, r := range f.tap.Requests() {
		requests[r.Op]++
	}
	return requests, f.bytes.Load() - before
}

// What docs/appendix/large-fleets.md says of processes that only wait: in a session
// timeout each of them sends three pings of go-zookeeper, and one small read in 30 to
// 60 s. Only the first in line sends ten syncs of this library. The queue's length has no
// part in it.
func TestCostOfAnIdleFleet(t *testing.T) {
	for name, wait := range map[string]waiting{
		"mutex": waitForMutex, "election": waitForLead,
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			const waiters, timeout, timeouts = 300, 10 * time.Second, 6
			cluster := zktest.Start(t)
			f := newFleet(cluster)
			wait(t, locktest.ConnectThrough(t, cluster, "holder"))
			for range waiters {
				time.Sleep(timeout / waiters)
				f.wait(t, cluster, timeout, wait)
			}
			time.Sleep(time.Minute) // the heartbeats' haste is over
			requests, bytes := f.count(timeouts * timeout)
			perSecond := func(n int) float64 { // and 1,000 waiters
				return float64(n) / (timeouts * timeout).Seconds() * 1000 / waiters
			}
			syncs := requests[wiretap.Sync]
			require.InDelta(t, 10*timeouts, syncs, 5, "of one waiter")
			require.InDelta(t, 300, perSecond(requests[wiretap.Ping]), 3)
			require.LessOrEqual(t, perSecond(requests[wiretap.GetData]), 28.0)
			sum := 0
			for _, n := range requests {
				sum += n
			}
			require.LessOrEqual(t, perSecond(sum), 330.0)
			require.LessOrEqual(t, perSecond(int(bytes)), 20_000.0)
			t.Logf("1,000 in a second: %.0f of %v requests, %.0f bytes",
				perSecond(sum), requests, perSecond(int(bytes)))
		})
	}
}

// wait has a client of the fleet wait until the test ends.
func (f *fleet) wait(
	t *testing.T, cluster *zktest.Cluster, timeout time.Duration,
	wait waiting,
) {
	t.Helper()
	client, err := recipes.Connect(t.Context(), cluster.Names()[0], timeout,
		recipes.WithDialer(f.tap.Dial))
	require.NoError(t, err)
	ended := wait(t, client)
	t.Cleanup(func() {
		client.Close()
		require.Error(t, <-ended)
	})
}

// A waiting waits for a lock, or to lead, until the test ends.
type waiting func(t *testing.T, conn recipes.Conn) (ended <-chan error)

func waitForMutex(t *testing.T, conn recipes.Conn) (ended <-chan error) {
	t.Helper()
	lock := locktest.NewMutex(t, conn, "/lock")
	ctx := locktest.Owner(t)
	return locktest.Start(func() error { return lock.Acquire(ctx) })
}

func waitForLead(t *testing.T, conn recipes.Conn) (ended <-chan error) {
	t.Helper()
	latch := locktest.NewLatch(t, conn, "/lock")
	return locktest.Start(func() error {
		_, err := latch.Await(t.Context())
		return err
	})
}
