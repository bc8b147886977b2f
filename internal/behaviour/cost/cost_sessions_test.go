package cost_test

import (
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A contest is what sessions do that all want one lock: each acquires and releases it so
// many times.
type contest struct {
	sessions, times int
	users           []func() error
}

// newContest connects the sessions. join returns what the user of one does.
func newContest(
	t *testing.T, cluster *zktest.Cluster, join func(link *zktest.Link) func() error,
) *contest {
	t.Helper()
	c := &contest{sessions: 8, times: 50}
	for i := range c.sessions {
		c.users = append(c.users, join(cluster.Link(strconv.Itoa(i))))
	}
	require.NoError(t, c.users[0]()) // makes the directory
	return c
}

// joinOurs returns a user of the mutex, in a session of its own.
func joinOurs(t *testing.T, cluster *zktest.Cluster, dial zk.Dialer) func() error {
	t.Helper()
	client, err := recipes.Connect(t.Context(), cluster.Names()[0], 40*time.Second,
		recipes.WithDialer(dial))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	lock, err := recipes.NewInterProcessMutex(client, "/lock")
	require.NoError(t, err)
	ctx := locktest.Owner(t)
	return func() error { return recipes.Do(ctx, lock, locktest.Nothing) }
}

// joinTheirs returns a user of zk.Lock, in a session of its own.
func joinTheirs(t *testing.T, cluster *zktest.Cluster, link *zktest.Link) func() error {
	t.Helper()
	conn, _ := locktest.OpenBare(t, link, cluster.Names()[0], 40*time.Second)
	t.Cleanup(conn.Close)
	lock := zk.NewLock(conn, "/lock", zk.WorldACL(zk.PermAll))
	return func() error {
		if err := lock.Lock(); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

// hold lets them run, and returns how often the lock was acquired.
func (c *contest) hold(t *testing.T) (acquired int) {
	t.Helper()
	var all sync.WaitGroup
	for _, use := range c.users {
		all.Go(func() {
			for range c.times {
				if err := use(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return c.sessions * c.times
}

// Sessions that contend wait behind several others. Once the predecessor of one has gone
// it lists the queue again, whatever it knows. So a watch on its own znode would spare
// nothing, and a wait of less than a second does not set it.
func TestCostOfSessionsThatContend(t *testing.T) {
	for name, oneWay := range map[string]time.Duration{
		"a wait takes 28 ms":  time.Millisecond,
		"a wait takes 280 ms": 10 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				var taps []*wiretap.Tap
				c := newContest(t, b.Cluster, func(link *zktest.Link) func() error {
					link.Delay(oneWay, oneWay)
					tap := wiretap.New(link.Dial)
					taps = append(taps, tap)
					return joinOurs(t, b.Cluster, tap.Dial)
				})
				for _, tap := range taps {
					tap.Reset()
				}
				acquired := c.hold(t)
				asked, events := map[wiretap.Op]int{}, 0
				for _, tap := range taps {
					for _, r := range locktest.RequestsBelow(tap, "/lock") {
						asked[r.Op]++
					}
					events += tap.Count(wiretap.Event)
				}
				require.Equal(t, acquired, asked[wiretap.Create])
				require.Equal(t, acquired, asked[wiretap.Delete])
				// Some go as the next reads them, or are held for 20 ms.
				seldom := acquired / 4
				require.LessOrEqual(t, asked[wiretap.GetChildren2], 2*acquired+seldom)
				require.LessOrEqual(t, asked[wiretap.GetData], acquired+seldom)
				require.LessOrEqual(
					t, events, acquired+seldom, "only the predecessor's end",
				)
			})
		})
	}
}

// A request takes a goroutine, so that its caller can leave. Nothing else does.
func TestGoroutinesOfSessionsThatContend(t *testing.T) {
	started := func() uint64 {
		s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	cluster := zktest.Start(t)
	c := newContest(t, cluster, func(link *zktest.Link) func() error {
		return joinOurs(t, cluster, link.Dial)
	})
	before := started()
	acquired := c.hold(t)
	each := float64(started()-before) / float64(acquired)
	t.Logf("%.2f goroutines an acquisition", each)
	require.Less(t, each, 5.5, "create, list, watch ahead, list, delete")
}

// What a hand-over costs the processor is mostly how often goroutines are woken up, here
// the server's included. zk.Lock sends as many requests, without goroutines for them.
func TestWakeupsOfSessionsThatContend(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it wakes goroutines up, too
	cluster := zktest.Start(t)
	each := func(join func(link *zktest.Link) func() error) float64 {
		c := newContest(t, cluster, join)
		before := wakeups()
		acquired := c.hold(t)
		return float64(wakeups()-before) / float64(acquired)
	}
	ours := each(func(link *zktest.Link) func() error {
		return joinOurs(t, cluster, link.Dial)
	})
	theirs := each(func(link *zktest.Link) func() error {
		return joinTheirs(t, cluster, link)
	})
	t.Logf("%.0f wakeups an acquisition, zk.Lock %.0f", ours, theirs)
	require.Greater(t, theirs, 5.0, "each request has to wake somebody up")
	require.Less(t, ours, 1.25*theirs)
}

// wakeups is how often goroutines began to run. Go looks at one goroutine in eight.
func wakeups() (n uint64) {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	for _, count := range s[0].Value.Float64Histogram().Counts {
		n += 8 * count
	}
	return n
}
