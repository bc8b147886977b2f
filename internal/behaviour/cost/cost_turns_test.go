package cost_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A turn is what the owners of one process do with one znode, one after the other.
type turn struct {
	process string
	node    string
	uses    int
}

// A turnTaker is one process, whose owners use a lock until enough says so.
type turnTaker struct {
	name   string
	oneWay time.Duration // half of its round trip
	use    time.Duration // how long an owner holds the lock
	turns  *[]turn       // guarded by the lock
	enough *atomic.Bool
}

// start connects the process and starts its owners.
func (c turnTaker) start(
	t *testing.T, cluster *zktest.Cluster, owners int, opt recipes.Option,
) (tap *wiretap.Tap, wait func()) {
	t.Helper()
	link := cluster.Link(c.name)
	link.Delay(c.oneWay, c.oneWay)
	client, tap := locktest.ConnectTapped(t, link, cluster.Names()[0], 40*time.Second)
	lock := locktest.NewMutex(t, client, "/lock", opt)
	var all sync.WaitGroup
	for range owners {
		ctx := locktest.Owner(t)
		all.Go(func() {
			for !c.enough.Load() {
				if err := recipes.Do(ctx, lock, c.hold); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return tap, all.Wait
}

// hold is one use of the lock.
func (c turnTaker) hold(_ context.Context, hold *recipes.Hold) error {
	last := len(*c.turns) - 1
	if last < 0 || (*c.turns)[last].node != hold.Path() {
		*c.turns = append(*c.turns, turn{process: c.name, node: hold.Path()})
		last++
	}
	(*c.turns)[last].uses++
	time.Sleep(c.use)
	return nil
}

// Two processes want a lock all the time, and it goes to and fro between them. A turn of
// one lasts for so many hand-overs as it may have. If it does not know yet that the other
// waits it lasts until then, which takes a round trip, and no longer.
func TestTurnsOfTwoCachedCrowds(t *testing.T) {
	const oneWay, passes, turns = time.Millisecond, 16, 100
	for name, use := range map[string]time.Duration{
		"a use takes longer than a round trip": 3 * oneWay,
		"a round trip takes as long as 66":     30 * time.Microsecond,
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var seen []turn
			var enough atomic.Bool
			var taps []*wiretap.Tap
			var waits []func()
			held := locktest.VisitLock(t, b.Lock)
			held.Entered() // until both stand in the queue
			for _, name := range []string{"one", "two"} {
				one := turnTaker{name, oneWay, use, &seen, &enough}
				caching := recipes.WithCaching(time.Minute, passes)
				tap, wait := one.start(t, b.Cluster, passes+1, caching)
				taps, waits = append(taps, tap), append(waits, wait)
			}
			time.Sleep(time.Second)
			held.Leave()
			time.Sleep(turns * (passes*use + 4*oneWay))
			enough.Store(true)
			for _, wait := range waits {
				wait()
			}
			require.Greater(t, len(seen), turns/2)
			most := 1 + max(passes, int(2*oneWay/use))
			for i, now := range seen {
				require.LessOrEqual(t, now.uses, most, "turn %d of %d", i, len(seen))
				if i > 0 {
					require.NotEqual(t, seen[i-1].process, now.process, "turn %d", i)
				}
			}
			asked := 0
			for _, tap := range taps {
				asked += len(locktest.RequestsBelow(tap, "/lock"))
			}
			t.Logf("%d requests in %d turns", asked, len(seen))
			require.LessOrEqual(t, asked, 7*len(seen))
		})
	}
}

// Two processes that want a lock all the time, with one owner each who comes back when it
// is too late to go on with the entry, send no more requests with caching than without.
func TestCostOfCachingInVain(t *testing.T) {
	perTurn := func(passes int) (requests float64) {
		t.Helper()
		locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
			const oneWay, use, warm, turns = 100 * time.Microsecond, 3 * time.Millisecond,
				time.Second, 200
			opt := recipes.WithData(nil)
			if passes > 0 {
				opt = recipes.WithCaching(time.Minute, passes)
			}
			var seen []turn
			var enough atomic.Bool
			var taps []*wiretap.Tap
			var waits []func()
			for _, name := range []string{"one", "two"} {
				one := turnTaker{name, oneWay, use, &seen, &enough}
				tap, wait := one.start(t, b.Cluster, 1, opt)
				taps, waits = append(taps, tap), append(waits, wait)
			}
			time.Sleep(warm)
			for _, tap := range taps {
				tap.Reset()
			}
			time.Sleep(turns * (use + 2*oneWay))
			asked, now := 0, 0
			for _, tap := range taps {
				asked += len(locktest.RequestsBelow(tap, "/lock"))
				now += tap.Count(wiretap.Create) // one a turn
			}
			enough.Store(true)
			for _, wait := range waits {
				wait()
			}
			require.Greater(t, now, turns*9/10)
			requests = float64(asked) / float64(now)
		})
		return requests
	}
	without := perTurn(0)
	for _, passes := range []int{1, 16} {
		require.LessOrEqual(t, perTurn(passes), 1.05*without, "passes: %d", passes)
	}
}

// Once others have been quiet for a while the entry is cached again.
func TestCachingIsTriedAgainAfterAQuietTime(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		caching := recipes.WithCaching(time.Hour, 1)
		ours, other := b.Mutex(t, b.Ours, "/lock", caching), b.Mutex(t, b.Other, "/lock")
		isKept := func() bool {
			used := locktest.Use(t, ours)
			time.Sleep(100 * time.Millisecond)
			return locktest.Use(t, ours).Path() == used.Path()
		}
		require.True(t, isKept())
		for range 3 {
			held := locktest.VisitLock(t, ours)
			held.Entered()
			next := locktest.VisitLock(t, other)
			time.Sleep(100 * time.Millisecond)
			held.Leave()
			next.Entered()
			next.Leave()
		}
		require.False(t, isKept(), "it was cached in vain")
		require.False(t, isKept())
		time.Sleep(time.Second)
		require.True(t, isKept())
	})
}
