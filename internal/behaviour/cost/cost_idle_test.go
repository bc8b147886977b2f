package cost_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/zktest"
)

// A meter counts what a client reads of the tree, and the bytes on its wire.
type meter struct {
	*recipes.Client
	lists, reads, bytes atomic.Int64
}

func (m *meter) StandsFor(zkconn.Test) zkconn.Client { return m.Client }

func (m *meter) Children(path string) ([]string, *zk.Stat, error) {
	m.lists.Add(1)
	return m.Client.Children(path)
}

func (m *meter) Get(path string) ([]byte, *zk.Stat, error) {
	m.reads.Add(1)
	return m.Client.Get(path)
}

func (m *meter) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	m.reads.Add(1)
	return m.Client.GetW(path)
}

func (m *meter) reset() {
	m.lists.Store(0)
	m.reads.Store(0)
	m.bytes.Store(0)
}

// meterInBubble connects a client whose every byte is counted.
func meterInBubble(t *testing.T, cluster *zktest.Cluster) *meter {
	t.Helper()
	m := new(meter)
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := cluster.Dial(network, address, timeout)
		return meteredConn{conn, &m.bytes}, err
	}
	client, err := recipes.Connect(t.Context(), cluster.Names()[0], 40*time.Second,
		recipes.WithDialer(dial))
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		time.Sleep(time.Minute) // virtual: what is under way ends by itself
	})
	m.Client = client
	return m
}

type meteredConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c meteredConn) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c meteredConn) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Waiters listed the whole queue every 30 s, each of them: 900 MB for 4,000. What is left
// is a small read now and then by the one that has a foreign znode ahead, besides the
// heartbeat, which is one for all.
func TestCostOfIdleWaiters(t *testing.T) {
	for name, c := range map[string]struct {
		foreign bool
		reads   int64 // in ten minutes
	}{
		"behind this process":    {false, 0},
		"behind another process": {true, 20},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			const waiters = 200
			cluster := zktest.Start(t)
			ours := meterInBubble(t, cluster)
			mutex := func(conn recipes.Conn) *recipes.InterProcessMutex {
				return locktest.NewMutex(t, conn, "/lock")
			}
			holder := mutex(ours)
			if c.foreign {
				holder = mutex(locktest.ConnectThrough(t, cluster, "other"))
			}
			ctx, waiting := locktest.Owner(t), make([]<-chan error, waiters)
			require.NoError(t, holder.Acquire(ctx))
			for i := range waiting {
				lock, ctx := mutex(ours), locktest.Owner(t)
				waiting[i] = locktest.Start(func() error {
					if err := lock.Acquire(ctx); err != nil {
						return err
					}
					return lock.Release(ctx)
				})
			}
			time.Sleep(2 * time.Minute)
			ours.reset()
			time.Sleep(10 * time.Minute)
			require.Zero(t, ours.lists.Load())
			require.LessOrEqual(t, ours.reads.Load(), c.reads)
			require.Less(
				t, ours.bytes.Load(), int64(30_000), "a heartbeat takes some 8,000",
			)
			t.Logf("%d reads, %d bytes", ours.reads.Load(), ours.bytes.Load())
			require.NoError(t, holder.Release(ctx))
			for _, done := range waiting {
				require.NoError(t, <-done)
			}
		})
	}
}
