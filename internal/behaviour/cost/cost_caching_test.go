package cost_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// awaitKept waits until the only place that p keeps has both its watches.
func awaitKept(t *testing.T, p *locktest.Peer) {
	t.Helper()
	locktest.Eventually(t, func() bool { return len(p.Watching()) == 2 },
		"the place is not watched")
}

func TestCostOfAKeptPlace(t *testing.T) {
	t.Parallel()
	for _, k := range locktest.Kinds {
		if !k.Cached || len(k.Dirs) > 1 {
			continue
		}
		zkserver.Run(t, k.Name, func(t *testing.T) {
			p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
			path, ctx := zkserver.Path(t), locktest.Owner(t)
			lock, err := k.Plain(p.Conn, path, recipes.WithCaching(time.Second, 1),
				recipes.WithSessionTimeout(p.Timeout))
			require.NoError(t, err)
			cycle := func() error {
				if err := lock.Acquire(ctx); err != nil {
					return err
				}
				return lock.Release(ctx)
			}
			require.NoError(t, cycle()) // makes the directory
			other.AwaitChildren(path, 0)

			p.Tap.Reset()
			require.NoError(t, cycle())
			awaitKept(t, p)
			p.AwaitSession()
			first := p.Asked(path)
			require.Empty(t, costOf(p, path, func() error {
				for range 100 {
					require.NoError(t, cycle())
				}
				_, err := p.Conn.Sync("/") // behind whatever was sent
				return err
			}))
			other.AwaitChildren(path, 0)
			require.Equal(t, []wiretap.Op{wiretap.Delete}, p.Asked(path))
			// The list may have to be sent again; see TestCostOfAFreeLock.
			require.LessOrEqual(t, len(first), 5)
			require.Subset(t, first, []wiretap.Op{
				wiretap.Create, wiretap.GetChildren2, wiretap.GetData,
			})
		})
	}
}

func TestAllocationsOfAKeptPlace(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		lock := p.Mutex(zkserver.Path(t), recipes.WithCaching(time.Minute, 16))
		uses := usesOf(lock)
		require.NoError(t, uses["Do"](t.Context()))
		awaitKept(t, p)
		for _, c := range []struct {
			how  string
			ctx  context.Context
			most float64
		}{
			{"its methods", locktest.Owner(t), 4},
			{"Acquire", locktest.Owner(t), 4},
			{"Acquire", t.Context(), 4},
			{"Do", locktest.Owner(t), 16},
		} {
			allocations := testing.AllocsPerRun(1000, func() {
				if err := uses[c.how](c.ctx); err != nil {
					t.Error(err)
				}
			})
			require.LessOrEqual(t, allocations, c.most, c.how)
		}
	})
}

// useInTurn lets n goroutines, owners of their own, take a lock one after the other,
// until they have done so as often as left says, together with others who count on it.
func useInTurn(
	t *testing.T, lock recipes.InterProcessLock, n int, left *atomic.Int64,
) (wait func()) {
	t.Helper()
	var all sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		ctx := locktest.Owner(t)
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := recipes.Do(ctx, lock, locktest.Nothing); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	return func() {
		all.Wait()
		close(errs)
		require.NoError(t, <-errs)
	}
}

func TestCostOfACachedCrowd(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		const uses = 4000
		var left atomic.Int64
		left.Store(uses)
		useInTurn(t, p.Mutex(path, recipes.WithCaching(time.Minute, 16)), 16, &left)()
		require.LessOrEqual(t, float64(len(p.Asked(path)))/uses, 0.05)
	})
}

// Who has how many uses is up to the scheduler: thousands that do nothing take no longer
// than one round trip. For turns see TestTurnsOfTwoCachedCrowds.
func TestCostOfTwoCachedCrowds(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path := zkserver.Path(t)
		const uses = 4000
		var left atomic.Int64
		left.Store(uses)
		var peers []*locktest.Peer
		var done []func()
		var inside atomic.Int32
		first := locktest.SharedPeer(t)
		held, ctx := first.Mutex(path), locktest.Owner(t)
		require.NoError(t, held.Acquire(ctx)) // until both stand in the queue
		for i := range 2 {
			p := locktest.SharedPeer(t)
			peers = append(peers, p)
			lock := p.Mutex(path, recipes.WithCaching(time.Minute, 16))
			done = append(done, useInTurn(t, alone{lock, t, &inside}, 16, &left))
			first.AwaitChildren(path, i+2)
		}
		require.NoError(t, held.Release(ctx))
		asked := 0
		for i, p := range peers {
			done[i]()
			asked += len(p.Asked(path))
		}
		t.Logf("%d requests for %d uses", asked, uses)
		require.LessOrEqual(t, float64(asked)/uses, 0.5)
	})
}

// alone is a lock that checks that it excludes.
type alone struct {
	*recipes.InterProcessMutex
	t      *testing.T
	inside *atomic.Int32
}

func (a alone) Acquire(ctx context.Context) error {
	err := a.InterProcessMutex.Acquire(ctx)
	if err == nil && a.inside.Add(1) != 1 {
		a.t.Error("two hold it")
	}
	return err
}

func (a alone) Release(ctx context.Context) error {
	a.inside.Add(-1)
	return a.InterProcessMutex.Release(ctx)
}

func TestGoroutinesAndWatchesOfKeptPlaces(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p, ctx := locktest.SharedPeer(t), locktest.Owner(t)
		require.NoError(t, p.Mutex(zkserver.Path(t)).Acquire(ctx)) // the heartbeat runs
		locktest.AwaitOwnWatch(t, p)
		before := runtime.NumGoroutine()
		p.Tap.Reset()
		const n = 100
		caching := recipes.WithCaching(time.Minute, 1)
		for range n {
			lock := p.Mutex(zkserver.Path(t), caching)
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
		}
		locktest.Eventually(t, func() bool { return len(p.Watching()) >= 2*n },
			"not watched")
		awaitGoroutines(t, before+2*n, "a kept place takes two")
		require.Len(t, p.Watching(), 2*n)
	})
}

// A listedConn counts the lists.
type listedConn struct {
	*recipes.Client
	lists atomic.Int64
}

func (c *listedConn) Unwrap() recipes.Conn { return c.Client }

func (c *listedConn) Children(path string) ([]string, *zk.Stat, error) {
	c.lists.Add(1)
	return c.Client.Children(path)
}

func (c *listedConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	c.lists.Add(1)
	return c.Client.ChildrenW(path)
}

// A place of readers looks ten times per second at most who others are that come and go,
// and once for a writer that comes when it is quiet.
func TestCostOfAKeptPlaceAmongReadersOfOthers(t *testing.T) {
	for name, used := range map[string]bool{"idle": false, "in use": true} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			for _, link := range []string{"ours", "other"} {
				b.Cluster.Link(link).Delay(time.Millisecond, time.Millisecond)
			}
			conn := &listedConn{Client: b.Ours}
			kept := locktest.NewReadWriteLock(
				t, conn, "/lock", recipes.WithCaching(locktest.LongIdle, 1))
			v := locktest.VisitLock(t, kept.ReadLock())
			v.Entered()
			if !used {
				v.Leave()
			}
			time.Sleep(locktest.Settle)
			conn.lists.Store(0)

			theirs, ctx := locktest.ReadWriteLock(t, b.Other), locktest.Owner(t)
			took := func(lock recipes.InterProcessLock) time.Duration {
				began := time.Now()
				require.NoError(t, recipes.Do(ctx, lock, locktest.Nothing))
				return time.Since(began)
			}
			began := time.Now()
			for range 1000 {
				took(theirs.ReadLock())
			}
			seconds := time.Since(began).Seconds()
			require.Greater(t, seconds, 1.0)
			require.LessOrEqual(t, float64(conn.lists.Load()), 1+10*seconds)

			// The last reader has gone just now.
			if used {
				v.Leave()
			}
			require.Less(t, took(theirs.WriteLock()), 120*time.Millisecond)
			locktest.Use(t, kept.ReadLock())
			time.Sleep(time.Second)
			conn.lists.Store(0)
			require.Less(t, took(theirs.WriteLock()), 20*time.Millisecond)
			require.EqualValues(t, 1, conn.lists.Load())
		})
	}
}

// A place is kept next to znodes that stand in no queue, whoever creates them: a list of
// all of them for each would be at the expense of this process.
func TestCostOfAKeptPlaceAmongJunk(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for _, link := range []string{"ours", "other"} {
			b.Cluster.Link(link).Delay(time.Millisecond, time.Millisecond)
		}
		conn := &listedConn{Client: b.Ours}
		kept := locktest.NewMutex(
			t, conn, "/lock", recipes.WithCaching(locktest.LongIdle, 1))
		v := locktest.VisitLock(t, kept)
		v.Entered()
		time.Sleep(locktest.Settle)
		conn.lists.Store(0)
		began := time.Now()
		for i := range 1000 {
			_, err := b.Other.Create(fmt.Sprint("/lock/junk-", i), nil,
				zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		seconds := time.Since(began).Seconds()
		require.Greater(t, seconds, 1.0)
		require.LessOrEqual(t, float64(conn.lists.Load()), 1+10*seconds)
		v.Leave()
	})
}
