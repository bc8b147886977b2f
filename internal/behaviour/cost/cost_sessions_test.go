package cost_test

import (
	"runtime/metrics"
	"strconv"
	"sync"
	"testing"
	"time"

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
	taps            []*wiretap.Tap
	users           []func() error
}

// newContest connects the sessions. A packet takes oneWay.
func newContest(
	t *testing.T, cluster *zktest.Cluster, oneWay time.Duration,
) *contest {
	t.Helper()
	c := &contest{sessions: 8, times: 50}
	for i := range c.sessions {
		link := cluster.Link(strconv.Itoa(i))
		link.Delay(oneWay, oneWay)
		tap := wiretap.New(link.Dial)
		client, err := recipes.Connect(t.Context(), cluster.Names()[0], 40*time.Second,
			recipes.WithDialer(tap.Dial))
		require.NoError(t, err)
		t.Cleanup(client.Close)
		lock, err := recipes.NewInterProcessMutex(client, "/lock")
		require.NoError(t, err)
		ctx := locktest.Owner(t)
		c.taps = append(c.taps, tap)
		c.users = append(c.users, func() error {
			return recipes.Do(ctx, lock, locktest.Nothing)
		})
	}
	require.NoError(t, c.users[0]()) // makes the directory
	for _, tap := range c.taps {
		tap.Reset()
	}
	return c
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
				c := newContest(t, b.Cluster, oneWay)
				acquired := c.hold(t)
				asked, events := map[wiretap.Op]int{}, 0
				for _, tap := range c.taps {
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
	c := newContest(t, zktest.Start(t), 0)
	before := started()
	acquired := c.hold(t)
	each := float64(started()-before) / float64(acquired)
	t.Logf("%.2f goroutines an acquisition", each)
	require.Less(t, each, 5.5, "create, list, watch ahead, list, delete")
}
