package cost_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// costOf returns what was asked for while f ran.
func costOf(p *locktest.Peer, path string, f func() error) []wiretap.Op {
	p.TB.Helper()
	p.Tap.Reset()
	require.NoError(p.TB, f())
	return p.Asked(path)
}

func TestCostOfAFreeLock(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		path, ctx := zkserver.Path(t), locktest.Owner(t)
		lock := p.Mutex(path)
		cycle := func() error {
			if err := lock.Acquire(ctx); err != nil {
				return err
			}
			return lock.Release(ctx)
		}
		require.NoError(t, cycle()) // makes the directory
		const rounds = 200
		var costs []int
		total := 0
		for range rounds {
			ops := costOf(p, path, cycle)
			costs, total = append(costs, len(ops)), total+len(ops)
			if len(ops) == 3 {
				require.Equal(
					t, []wiretap.Op{wiretap.Create, wiretap.GetChildren2, wiretap.Delete},
					ops,
				)
			}
		}
		// The list is sent by a goroutine of its own right behind the create. Now and
		// then the scheduler lets it go first, more often under the race detector, which
		// makes it choose at random: then the list does not show the znode, and is sent
		// again.
		slices.Sort(costs)
		require.Equal(t, 3, costs[rounds/2])
		require.LessOrEqual(t, total, rounds*31/10)
	})
}

// A Client knows when it created a znode. So whoever has used a lock, and finds the next
// number to be its own in the same directory, knows that it is free. The znode of a hold
// is watched, by one read, only if the hold lasts.
func TestCostOfAFreeLockThatWasUsedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client, tap := locktest.ConnectTapped(
			t, cluster.Link("ours"), cluster.Names()[0], 4*time.Second)
		ctx := locktest.Owner(t)
		lock := locktest.NewMutex(t, client, "/lock")
		// It makes the directory. A list that it has started may be yet to be sent.
		require.NoError(t, recipes.Do(ctx, lock, locktest.Nothing))
		synctest.Wait()
		const short, long = 15 * time.Millisecond, 25 * time.Millisecond
		for i, use := range []struct {
			lasts time.Duration
			want  []wiretap.Op
		}{
			// The directory is read once.
			{0, []wiretap.Op{wiretap.GetData, wiretap.Create, wiretap.Delete}},
			{0, []wiretap.Op{wiretap.Create, wiretap.Delete}},
			{short, []wiretap.Op{wiretap.Create, wiretap.Delete}},
			{long, []wiretap.Op{wiretap.Create, wiretap.GetData, wiretap.Delete}},
		} {
			tap.Reset()
			require.NoError(t, recipes.Do(ctx, lock, func(
				context.Context, *recipes.Hold,
			) error {
				time.Sleep(use.lasts)
				return nil
			}))
			var got []wiretap.Op
			for _, request := range locktest.RequestsBelow(tap, "/lock") {
				got = append(got, request.Op)
			}
			require.ElementsMatch(t, use.want, got, "use %d after the first", i+1)
		}
	})
}

func TestRoundTripsOfAFreeLock(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		lock, ctx := p.Mutex(zkserver.Path(t)), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		const oneWay, rounds = 50 * time.Millisecond, 7
		p.Tap.Delay(oneWay)
		defer p.Tap.Delay(0)
		var acquires, releases []time.Duration
		for range rounds {
			began := time.Now()
			require.NoError(t, lock.Acquire(ctx))
			acquired := time.Now()
			require.NoError(t, lock.Release(ctx))
			acquires, releases = append(acquires, acquired.Sub(began)), append(
				releases, time.Since(acquired),
			)
		}
		// The median, since in a few rounds the list is sent twice; see
		// TestCostOfAFreeLock.
		for name, took := range map[string][]time.Duration{
			"acquire": acquires, "release": releases,
		} {
			slices.Sort(took)
			require.GreaterOrEqual(t, took[rounds/2], 2*oneWay, name)
			require.Less(t, took[rounds/2], 4*oneWay, name+": two round trips")
		}
	})
}

func TestCostOfAContendedLock(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		holder, waiter := locktest.SharedPeer(t), locktest.SharedPeer(t)
		path, ctx, waiting := zkserver.Path(t), locktest.Owner(t), locktest.Owner(t)
		held, wanted := holder.Mutex(path), waiter.Mutex(path)
		const rounds = 20
		var costs []int
		for range rounds {
			require.NoError(t, held.Acquire(ctx))
			waiter.Tap.Reset()
			acquired := locktest.Start(func() error { return wanted.Acquire(waiting) })
			awaitWaiter(t, waiter, path)
			joining := waiter.Asked(path)

			waiter.Tap.Reset()
			require.NoError(t, held.Release(ctx))
			require.NoError(t, locktest.Within(t, acquired, "the lock does not pass on"))
			require.Empty(
				t, waiter.Asked(path), "the hand-over needs nothing but the notification",
			)
			require.Equal(t, 1, waiter.Tap.Count(wiretap.Event))
			leaving := costOf(waiter, path,
				func() error { return wanted.Release(waiting) })
			require.Equal(t, []wiretap.Op{wiretap.Delete}, leaving)
			costs = append(costs, len(joining)+len(leaving))
		}
		slices.Sort(costs) // a few rounds take a list more; see TestCostOfAFreeLock
		require.Equal(
			t, 5, costs[rounds/2], "create, list, watch ahead, watch on itself, delete",
		)
	})
}

// awaitWaiter waits until p's only waiter for path has set its watches, on the znode
// ahead of it and, since it lasts, on its own.
func awaitWaiter(t *testing.T, p *locktest.Peer, path string) {
	t.Helper()
	locktest.Eventually(
		t, func() bool { return len(p.Watching()) == 2 }, "%s: the waiter is not watched",
		path,
	)
	_, err := p.Conn.Sync("/") // behind the watches' replies
	require.NoError(t, err)
}

func TestCostOfAHandOverInALongQueue(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path := zkserver.Path(t)
		type place struct {
			*locktest.Peer
			lock    *recipes.InterProcessMutex
			granted <-chan error
		}
		var queue []place
		ctx := locktest.Owner(t)
		for i := range 5 {
			p := place{Peer: locktest.SharedPeer(t)}
			p.lock = p.Mutex(path)
			p.granted = locktest.Start(func() error { return p.lock.Acquire(ctx) })
			p.AwaitChildren(path, i+1)
			if i > 0 {
				awaitWaiter(t, p.Peer, path)
			}
			queue = append(queue, p)
		}
		require.NoError(t, locktest.Within(t, queue[0].granted, "the lock is free"))
		for i, holder := range queue {
			for _, p := range queue {
				p.Tap.Reset()
			}
			require.NoError(t, holder.lock.Release(ctx))
			for j, p := range queue[i+1:] {
				if j == 0 {
					require.NoError(
						t, locktest.Within(t, p.granted, "the lock does not pass on"),
					)
				}
				asked := 0
				if j == 0 && i > 0 { // when it joined there were several ahead
					asked = 1 // a read of the one other, or a list
				}
				require.Len(
					t, p.Asked(path), asked,
					"number %d, when number %d releases", i+1+j, i,
				)
				if j > 0 {
					require.Zero(
						t, p.Tap.Count(wiretap.Event),
						"a waiter is woken for another's turn",
					)
				}
			}
		}
	})
}

func TestCostOfReentry(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		path, ctx := zkserver.Path(t), locktest.Owner(t)
		lock := p.Mutex(path)
		require.NoError(t, lock.Acquire(ctx))
		locktest.AwaitOwnWatch(t, p)
		require.Empty(t, costOf(p, path, func() error {
			for range 100 {
				require.NoError(t, lock.Acquire(ctx))
			}
			for range 100 {
				require.NoError(t, lock.Release(ctx))
			}
			_, err := p.Conn.Sync("/") // behind whatever was sent
			return err
		}))
		require.NoError(t, lock.Release(ctx))
	})
}

func TestCostOfAHoldThatLasts(t *testing.T) {
	t.Parallel()
	for name, revocable := range map[string]bool{"plain": false, "revocable": true} {
		zkserver.Run(t, name, func(t *testing.T) {
			p := locktest.SharedPeer(t)
			path, ctx := zkserver.Path(t), locktest.Owner(t)
			lock := p.Mutex(path)
			if revocable {
				lock.MakeRevocable(func() { t.Error("nobody has asked") })
			}
			require.NoError(t, lock.Acquire(ctx))
			locktest.AwaitOwnWatch(t, p)
			require.Equal(t, []string{lock.LockPath(ctx)}, p.Watching())
			p.AwaitHeartbeat() // T/10: by then it has lasted
			require.Empty(t, p.Watching(), "one read for all the time that it lasts")
			require.NoError(t, lock.Release(ctx))
		})
	}
}

func TestCostOfARevocableHold(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		path, ctx := zkserver.Path(t), locktest.Owner(t)
		lock := p.Mutex(path)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		lock.MakeRevocable(func() { t.Error("nobody has asked") })
		const rounds = 20
		var costs []int
		for range rounds {
			ops := costOf(p, path, func() error {
				if err := lock.Acquire(ctx); err != nil {
					return err
				}
				locktest.AwaitOwnWatch(t, p)
				return lock.Release(ctx)
			})
			costs = append(costs, len(ops))
		}
		slices.Sort(costs) // a few rounds take a list more; see TestCostOfAFreeLock
		require.Equal(t, 4, costs[rounds/2], "create, list, watch on itself, delete")
	})
}

// Owners in one process hand the lock over without asking, and without waiting for the
// delete to be answered: also to one whose list, when it joined, showed several ahead.
func TestHandOverInsideAProcess(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		path, ctx := zkserver.Path(t), locktest.Owner(t)
		var locks []*recipes.InterProcessMutex
		var acquired []<-chan error
		for i := range 3 {
			lock := p.Mutex(path)
			locks = append(locks, lock)
			acquired = append(
				acquired, locktest.Start(func() error { return lock.Acquire(ctx) }),
			)
			p.AwaitChildren(path, i+1)
		}
		require.NoError(t, locktest.Within(t, acquired[0], "the lock is free"))
		locktest.Eventually(
			t, func() bool { return len(p.Watching()) == 4 }, "they are not watched",
		)
		nodes := []string{path}
		for _, node := range p.Children(path) {
			nodes = append(nodes, path+"/"+node)
		}
		require.ElementsMatch(t, nodes, p.Watching(),
			"each its own, and none the one ahead; and once the directory")

		answer := make(chan struct{})
		held := p.Tap.NthReply(wiretap.Delete, 1, wiretap.Hold(answer))
		p.Tap.Reset()
		var released []<-chan error
		for i, next := range acquired[1:] {
			released = append(
				released, locktest.Start(func() error { return locks[i].Release(ctx) }),
			)
			require.NoError(t, locktest.Within(t, next, "the lock does not pass on"))
		}
		locktest.Within(t, held, "no delete was sent")
		// The lock passes on ahead of the delete, too.
		locktest.Eventually(
			t, func() bool { return len(p.Asked(path)) >= 2 },
			"the second delete was not sent",
		)
		require.Equal(t, []wiretap.Op{wiretap.Delete, wiretap.Delete}, p.Asked(path))
		for _, done := range released {
			require.Empty(t, done, "the delete was not answered")
		}
		close(answer)
		for _, done := range released {
			require.NoError(t, locktest.Within(t, done, "the release"))
		}
		require.NoError(t, locks[2].Release(ctx))
	})
}

func TestWatchesPerWaiter(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		server := zkserver.Start(t).Servers[0] // wchp tells of all watches
		holder := locktest.NewPeer(t, server.Addr, time.Minute)
		path, ctx := zkserver.Path(t), locktest.Owner(t)
		held := holder.Mutex(path)
		require.NoError(t, held.Acquire(ctx))
		locktest.AwaitOwnWatch(t, holder)
		const waiters = 5
		var waiting []<-chan error
		for i := range waiters {
			p := locktest.NewPeer(t, server.Addr, time.Minute)
			lock := p.Mutex(path)
			waiting = append(waiting, locktest.Start(func() error {
				if err := lock.Acquire(ctx); err != nil {
					return err
				}
				return lock.Release(ctx)
			}))
			p.AwaitChildren(path, i+2)
			locktest.Eventually(
				t, func() bool { return len(p.Watching()) > 0 },
				"the waiter does not wait",
			)
		}
		for node, watchers := range locktest.WatchersOf(t, server) {
			require.LessOrEqual(
				t, watchers, 2,
				"%s: its owner watches it, and the next in the queue", node,
			)
		}
		require.NoError(t, held.Release(ctx))
		for _, done := range waiting {
			require.NoError(t, locktest.Within(t, done, "the lock does not pass on"))
		}
	})
}

// What doc.go says that a znode costs this process: a goroutine once it lasts, and no
// more however many there are.
func TestGoroutinesOfHoldersAndWaiters(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		path := zkserver.Path(t)
		const n = 100
		first, ctx := p.Mutex(path), locktest.Owner(t)
		require.NoError(t, first.Acquire(ctx))
		locktest.AwaitOwnWatch(t, p)
		before := runtime.NumGoroutine()

		for range n {
			require.NoError(t, p.Mutex(zkserver.Path(t)).Acquire(ctx))
		}
		locktest.Eventually(
			t, func() bool { return len(p.Watching()) == n+1 },
			"the holds are not watched",
		)
		awaitGoroutines(t, before+n, "a hold takes one")

		var waiting []<-chan error
		for range n {
			owner, lock := locktest.Owner(t), p.Mutex(path)
			waiting = append(waiting, locktest.Start(func() error {
				if err := lock.Acquire(owner); err != nil {
					return err
				}
				return lock.Release(owner)
			}))
		}
		// One watch for each, on its own znode; on the one ahead, or on both, where a
		// list showed that one before this process had the answer to its create.
		locktest.Eventually(
			t, func() bool { return len(p.Watching()) >= 2*n+1 },
			"the waiters are not watched",
		)
		awaitGoroutines(t, before+n+2*n, "a waiter takes one, besides its own")
		require.NoError(t, first.Release(ctx))
		for _, done := range waiting {
			require.NoError(t, locktest.Within(t, done, "the lock does not pass on"))
		}
		awaitGoroutines(t, before+n, "who has left takes none")
	})
}

// awaitGoroutines waits until there are at most n: calls that have been answered are
// about to end.
func awaitGoroutines(t *testing.T, n int, why string) {
	t.Helper()
	locktest.Eventually(
		t, func() bool { return runtime.NumGoroutine() <= n },
		"%s: there are more than %d goroutines", why, n,
	)
}

// A re-entry makes a record.
func TestAllocationsOfReentry(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		lock, ctx := p.Mutex(zkserver.Path(t)), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		locktest.AwaitOwnWatch(t, p)
		allocs := testing.AllocsPerRun(1000, func() {
			if lock.Acquire(ctx) != nil || lock.Release(ctx) != nil {
				t.Error("no re-entry")
			}
		})
		require.LessOrEqual(t, allocs, 1.0)
		require.NoError(t, lock.Release(ctx))
	})
}
