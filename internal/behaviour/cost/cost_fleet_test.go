package cost_test

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// What docs/costs.md says of processes that only wait: in a session timeout each of them
// sends ten syncs of this library and three pings of go-zookeeper, and one small read in
// 30 to 60 s. The queue's length has no part in it.
func TestCostOfAnIdleFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, timeout, timeouts = 100, 10 * time.Second, 6
		cluster := zktest.Start(t)
		f := newFleet(cluster)
		holder := locktest.ConnectThrough(t, cluster, "holder")
		lock, err := recipes.NewInterProcessMutex(holder, "/lock")
		require.NoError(t, err)
		require.NoError(t, lock.Acquire(locktest.Owner(t)))
		for range waiters {
			f.wait(t, cluster, timeout)
		}
		time.Sleep(time.Minute) // the heartbeats' haste is over
		requests, bytes := f.count(timeouts * timeout)
		per := func(n int) float64 { return float64(n) / (waiters * timeouts) }
		require.InDelta(t, 10, per(requests[wiretap.Sync]), 0.5)
		require.InDelta(t, 3, per(requests[wiretap.Ping]), 0.1)
		require.LessOrEqual(t, per(requests[wiretap.GetData]), 0.34)
		sum := 0
		for _, n := range requests {
			sum += n
		}
		require.LessOrEqual(t, per(sum), 13.5)
		require.LessOrEqual(t, per(int(bytes)), 800.0)
		t.Logf("for each waiter and session timeout: %v of %v requests, %v bytes",
			per(sum), requests, per(int(bytes)))
	})
}

// wait has a client of the fleet wait for the lock until the test ends.
func (f *fleet) wait(t *testing.T, cluster *zktest.Cluster, timeout time.Duration) {
	t.Helper()
	client, err := recipes.Connect(t.Context(), cluster.Names()[0], timeout,
		recipes.WithDialer(f.tap.Dial))
	require.NoError(t, err)
	lock, err := recipes.NewInterProcessMutex(client, "/lock")
	require.NoError(t, err)
	ctx := locktest.Owner(t)
	ended := locktest.Start(func() error { return lock.Acquire(ctx) })
	t.Cleanup(func() {
		client.Close()
		require.Error(t, <-ended)
	})
}
