package cost_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
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
	lock := locktest.NewMutex(t, client, "/lock")
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

// Sessions that contend wait behind several others. Near the servers each lists the queue
// once its predecessor has gone, whatever it knows: a watch on its own znode would spare
// nothing, and a wait of less than a second does not set it. Far from them that list, a
// round trip for which nobody holds the lock, is made before: for two reads more.
func TestCostOfSessionsThatContend(t *testing.T) {
	for name, c := range map[string]struct {
		oneWay        time.Duration
		reads, events int     // for each acquisition
		hasRoundTrips float64 // from one to the next
	}{
		"near": {time.Millisecond / 4, 1, 1, 2},
		"far":  {time.Millisecond, 3, 3, 1},
		"very": {10 * time.Millisecond, 3, 3, 1},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var taps []*wiretap.Tap
			contest := newContest(t, b.Cluster, func(link *zktest.Link) func() error {
				link.Delay(c.oneWay, c.oneWay)
				tap := wiretap.New(link.Dial)
				taps = append(taps, tap)
				return joinOurs(t, b.Cluster, tap.Dial)
			})
			contest.hold(t) // the connections learn how far the servers are
			for _, tap := range taps {
				tap.Reset()
			}
			began := time.Now()
			acquired := contest.hold(t)
			each := float64(time.Since(began)) / float64(acquired)
			require.InDelta(
				t, c.hasRoundTrips, each/float64(2*c.oneWay), 0.1, "round trips",
			)
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
			require.LessOrEqual(t, asked[wiretap.GetData], c.reads*acquired+seldom)
			require.LessOrEqual(t, events, c.events*acquired+seldom)
		})
	}
}

// Somebody asks the holder for the lock: those behind look once whether they are next.
func TestCostOfAChangeAheadOfAWaiter(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		require.NoError(t, b.Lock.Acquire(t.Context()))
		tap := wiretap.New(b.Cluster.Link("third").Dial)
		use := joinOurs(t, b.Cluster, tap.Dial)
		done := locktest.Start(use)
		time.Sleep(10 * time.Second)
		tap.Reset()
		_, err := b.Other.Set(b.Lock.Hold(t.Context()).Path(), []byte("x"), -1)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		asked := map[wiretap.Op]int{}
		for _, r := range locktest.RequestsBelow(tap, "/lock") {
			asked[r.Op]++
		}
		require.Equal(
			t, map[wiretap.Op]int{wiretap.GetChildren2: 1, wiretap.GetData: 1}, asked,
			"a list, and the next watch",
		)
		require.NoError(t, b.Lock.Release(t.Context()))
		require.NoError(t, <-done)
	})
}

// What a contended acquisition costs the processor, in one thread and the server's part
// included: what can be counted of it. A request takes a goroutine, so that its caller
// can leave; nothing else does. zk.Lock sends as many requests, without goroutines for
// them. CONTEST_TIMES=n is how often each session acquires: bench/instructions.sh counts
// the instructions.
func TestProcessorCostOfSessionsThatContend(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	each := map[string]work{}
	for name, join := range map[string]func(
		t *testing.T, cluster *zktest.Cluster, link *zktest.Link,
	) func() error{
		"zk.Lock": joinTheirs,
		"recipes": func(
			t *testing.T, cluster *zktest.Cluster, link *zktest.Link,
		) func() error {
			return joinOurs(t, cluster, link.Dial)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := zktest.Start(t)
				c := newContest(t, cluster, func(link *zktest.Link) func() error {
					return join(t, cluster, link)
				})
				if n := os.Getenv("CONTEST_TIMES"); n != "" {
					var err error
					c.times, err = strconv.Atoi(n)
					require.NoError(t, err)
				}
				before := worked()
				acquired := c.hold(t)
				each[name] = worked().since(before, acquired)
				t.Logf("an acquisition: %+.2f", each[name])
			})
		})
	}
	ours, all := each["recipes"]
	theirs, both := each["zk.Lock"]
	if !all || !both {
		return // only one was asked for
	}
	const starts = 0.1 // that of the users has a part in each acquisition, too
	require.InDelta(
		t, 5, ours.goroutines, starts, "create, list, watch ahead, list, delete",
	)
	require.InDelta(t, 0, theirs.goroutines, starts)
	// It is 1.27 to 1.30; a request more would make it 1.4 or above.
	require.Less(t, ours.allocations, 1.35*theirs.allocations)
}

// work is what a program has done so far: how many goroutines it has started, and how
// often it has allocated.
type work struct{ goroutines, allocations float64 }

func worked() work {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return work{goroutines: float64(lastGoroutine()), allocations: float64(stats.Mallocs)}
}

// lastGoroutine is the number of one that starts now. One thread numbers them in order.
func lastGoroutine() (id int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		line := make([]byte, 64)
		line = line[:runtime.Stack(line, false)]
		_, _ = fmt.Sscanf(string(line), "goroutine %d ", &id)
	}()
	<-done
	return id
}

// since is what each of n operations has taken.
func (w work) since(before work, n int) work {
	return work{
		goroutines:  (w.goroutines - before.goroutines) / float64(n),
		allocations: (w.allocations - before.allocations) / float64(n),
	}
}

// All that is ahead leaves at once: a waiter far back, which has asked for nothing, asks
// at the same time whether its session lives and whose turn it is.
func TestCostOfATurnThatComesAsASurprise(t *testing.T) {
	for name, waits := range map[string]struct {
		long time.Duration
		asks map[wiretap.Op]int
	}{
		"after a long wait": {
			time.Minute / 2, map[wiretap.Op]int{wiretap.GetChildren2: 1, wiretap.Sync: 1},
		},
		"at once": {time.Second / 4, map[wiretap.Op]int{wiretap.GetChildren2: 1}},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			const oneWay = 400 * time.Microsecond
			link := b.Cluster.Link("tapped")
			client, tap := locktest.ConnectTapped(
				t, link, b.Cluster.Names()[0], 10*time.Second)
			link.Delay(oneWay, oneWay)
			anybody := zk.WorldACL(zk.PermAll)
			_, err := b.Other.Create("/lock", nil, 0, anybody)
			require.NoError(t, err)
			var leave []any
			for range 3 {
				path, err := b.Other.Create(
					"/lock/lock-", nil, zk.FlagEphemeralSequential, anybody)
				require.NoError(t, err)
				leave = append(leave, &zk.DeleteRequest{Path: path, Version: -1})
			}
			lock, ctx := b.Mutex(t, client, "/lock"), locktest.Owner(t)
			acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
			time.Sleep(waits.long)
			tap.Reset()
			began := time.Now()
			_, err = b.Other.Multi(leave...)
			require.NoError(t, err)
			require.NoError(t, <-acquired)
			require.LessOrEqual(t, time.Since(began), 4*oneWay, "one round trip")
			asked := map[wiretap.Op]int{}
			for _, r := range tap.Requests() {
				asked[r.Op]++
			}
			require.Equal(t, waits.asks, asked)
			require.NoError(t, lock.Release(ctx))
		})
	}
}
