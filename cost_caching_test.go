package recipes_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	for _, k := range kinds {
		if !k.cached || len(k.dirs) > 1 {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
			path, ctx := zkserver.Path(t), locktest.Owner(t)
			lock, err := k.plain(p.Conn, path, recipes.WithCaching(time.Second, 1),
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
	p, ctx := locktest.SharedPeer(t), locktest.Owner(t)
	lock := p.Mutex(zkserver.Path(t), recipes.WithCaching(time.Minute, 16))
	use := func() {
		if lock.Acquire(ctx) != nil || lock.Release(ctx) != nil {
			t.Error("it is not kept")
		}
	}
	use()
	awaitKept(t, p)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, use), 10.0)
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
				if err := recipes.Do(ctx, lock, nothing); err != nil {
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
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	const uses = 4000
	var left atomic.Int64
	left.Store(uses)
	useInTurn(t, p.Mutex(path, recipes.WithCaching(time.Minute, 16)), 16, &left)()
	require.LessOrEqual(t, float64(len(p.Asked(path)))/uses, 0.05)
}

func TestCostOfTwoCachedCrowds(t *testing.T) {
	t.Parallel()
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
	for _, p := range peers {
		require.Greater(t, p.Tap.Count(wiretap.Create), 2, "one has it all the time")
	}
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
	p, ctx := locktest.SharedPeer(t), locktest.Owner(t)
	require.NoError(t, p.Mutex(zkserver.Path(t)).Acquire(ctx)) // the heartbeat runs
	awaitOwnWatch(t, p)
	before := runtime.NumGoroutine()
	p.Tap.Reset()
	const n = 100
	caching := recipes.WithCaching(time.Minute, 1)
	for range n {
		lock := p.Mutex(zkserver.Path(t), caching)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
	}
	locktest.Eventually(t, func() bool { return len(p.Watching()) >= 2*n }, "not watched")
	awaitGoroutines(t, before+2*n, "a kept place takes two")
	require.Len(t, p.Watching(), 2*n)
}
