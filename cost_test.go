package recipes_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// asked returns the operations that were asked for at a path or below, so without the heartbeat.
func (p *peer) asked(path string) (ops []wiretap.Op) {
	for _, request := range p.tap.Requests() {
		if request.Path == path || strings.HasPrefix(request.Path, path+"/") {
			ops = append(ops, request.Op)
		}
	}
	return ops
}

// costOf returns what was asked for while f ran.
func (p *peer) costOf(path string, f func() error) []wiretap.Op {
	p.t.Helper()
	p.tap.Reset()
	require.NoError(p.t, f())
	return p.asked(path)
}

func TestCostOfAFreeLock(t *testing.T) {
	p := sharedPeer(t)
	path, ctx := zkserver.Path(t), ownerContext(t)
	lock := p.mutex(path)
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
		ops := p.costOf(path, cycle)
		costs, total = append(costs, len(ops)), total+len(ops)
		if len(ops) == 3 {
			require.Equal(t, []wiretap.Op{wiretap.Create, wiretap.GetChildren2, wiretap.Delete}, ops)
		}
	}
	// The list is sent by a goroutine of its own right behind the create. Now and then the scheduler lets it go first, more often
	// under the race detector, which makes it choose at random: then the list does not show the znode, and is sent again.
	slices.Sort(costs)
	require.Equal(t, 3, costs[rounds/2])
	require.LessOrEqual(t, total, rounds*31/10)
}

func TestRoundTripsOfAFreeLock(t *testing.T) {
	p := sharedPeer(t)
	lock, ctx := p.mutex(zkserver.Path(t)), ownerContext(t)
	require.NoError(t, lock.Acquire(ctx))
	require.NoError(t, lock.Release(ctx))
	const oneWay, rounds = 50 * time.Millisecond, 7
	p.tap.Delay(oneWay)
	defer p.tap.Delay(0)
	var acquires, releases []time.Duration
	for range rounds {
		began := time.Now()
		require.NoError(t, lock.Acquire(ctx))
		acquired := time.Now()
		require.NoError(t, lock.Release(ctx))
		acquires, releases = append(acquires, acquired.Sub(began)), append(releases, time.Since(acquired))
	}
	// The median, since in a few rounds the list is sent twice; see TestCostOfAFreeLock.
	for name, took := range map[string][]time.Duration{"acquire": acquires, "release": releases} {
		slices.Sort(took)
		require.GreaterOrEqual(t, took[rounds/2], 2*oneWay, name)
		require.Less(t, took[rounds/2], 4*oneWay, name+": two round trips")
	}
}

func TestCostOfAContendedLock(t *testing.T) {
	t.Parallel()
	holder, waiter := sharedPeer(t), sharedPeer(t)
	path, ctx, waiting := zkserver.Path(t), ownerContext(t), ownerContext(t)
	held, wanted := holder.mutex(path), waiter.mutex(path)
	const rounds = 20
	var costs []int
	for range rounds {
		require.NoError(t, held.Acquire(ctx))
		waiter.tap.Reset()
		acquired := start(func() error { return wanted.Acquire(waiting) })
		awaitWaiter(t, waiter, path)
		joining := waiter.asked(path)

		waiter.tap.Reset()
		require.NoError(t, held.Release(ctx))
		require.NoError(t, within(t, acquired, "the lock does not pass on"))
		require.Empty(t, waiter.asked(path), "the hand-over needs nothing but the notification")
		require.Equal(t, 1, waiter.tap.Count(wiretap.Event))
		leaving := waiter.costOf(path, func() error { return wanted.Release(waiting) })
		require.Equal(t, []wiretap.Op{wiretap.Delete}, leaving)
		costs = append(costs, len(joining)+len(leaving))
	}
	slices.Sort(costs) // a few rounds take a list more; see TestCostOfAFreeLock
	require.Equal(t, 5, costs[rounds/2], "create, list, watch ahead, watch on itself, delete")
}

// awaitWaiter waits until p's only waiter for path has set its watches, on the znode ahead of it and, since it lasts, on its own.
func awaitWaiter(t *testing.T, p *peer, path string) {
	t.Helper()
	eventually(t, func() bool { return len(watching(p.tap)) == 2 }, "%s: the waiter is not minded", path)
	_, err := p.conn.Sync("/") // behind the watches' replies
	require.NoError(t, err)
}

func TestCostOfAHandOverInALongQueue(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	type place struct {
		*peer
		lock    *recipes.InterProcessMutex
		granted <-chan error
	}
	var queue []place
	ctx := ownerContext(t)
	for i := range 5 {
		p := place{peer: sharedPeer(t)}
		p.lock = p.mutex(path)
		p.granted = start(func() error { return p.lock.Acquire(ctx) })
		p.awaitChildren(path, i+1)
		if i > 0 {
			eventually(t, func() bool { return len(watching(p.tap)) > 0 }, "no watch on the znode ahead")
		}
		queue = append(queue, p)
	}
	require.NoError(t, within(t, queue[0].granted, "the lock is free"))
	for i, holder := range queue {
		for _, p := range queue {
			p.tap.Reset()
		}
		require.NoError(t, holder.lock.Release(ctx))
		for j, p := range queue[i+1:] {
			if j == 0 {
				require.NoError(t, within(t, p.granted, "the lock does not pass on"))
			}
			lists := 0
			if j == 0 && i > 0 { // when it joined there were several ahead
				lists = 1
			}
			require.Equal(t, lists, p.tap.Count(wiretap.GetChildren2), "number %d, when number %d releases", i+1+j, i)
			if j > 0 {
				require.Zero(t, p.tap.Count(wiretap.Event), "a waiter is woken for another's turn")
			}
		}
	}
}

func TestCostOfReentry(t *testing.T) {
	t.Parallel()
	p := sharedPeer(t)
	path, ctx := zkserver.Path(t), ownerContext(t)
	lock := p.mutex(path)
	require.NoError(t, lock.Acquire(ctx))
	awaitOwnWatch(t, p)
	require.Empty(t, p.costOf(path, func() error {
		for range 100 {
			require.NoError(t, lock.Acquire(ctx))
		}
		for range 100 {
			require.NoError(t, lock.Release(ctx))
		}
		_, err := p.conn.Sync("/") // behind whatever was sent
		return err
	}))
	require.NoError(t, lock.Release(ctx))
}

// awaitOwnWatch waits until p's only hold, since it lasts, has a watch.
func awaitOwnWatch(t *testing.T, p *peer) {
	t.Helper()
	eventually(t, func() bool { return len(watching(p.tap)) == 1 }, "the hold is not minded")
}

func TestCostOfAHoldThatLasts(t *testing.T) {
	t.Parallel()
	for name, revocable := range map[string]bool{"plain": false, "revocable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sharedPeer(t)
			path, ctx := zkserver.Path(t), ownerContext(t)
			lock := p.mutex(path)
			if revocable {
				lock.MakeRevocable(func() { t.Error("nobody has asked") })
			}
			require.NoError(t, lock.Acquire(ctx))
			awaitOwnWatch(t, p)
			require.Equal(t, []string{lock.LockPath(ctx)}, watching(p.tap))
			p.awaitHeartbeat() // T/10: by then it has lasted
			require.Empty(t, watching(p.tap), "one read for all the time that it lasts")
			require.NoError(t, lock.Release(ctx))
		})
	}
}

func TestCostOfARevocableHold(t *testing.T) {
	t.Parallel()
	p := sharedPeer(t)
	path, ctx := zkserver.Path(t), ownerContext(t)
	lock := p.mutex(path)
	require.NoError(t, lock.Acquire(ctx))
	require.NoError(t, lock.Release(ctx))
	lock.MakeRevocable(func() { t.Error("nobody has asked") })
	const rounds = 20
	var costs []int
	for range rounds {
		ops := p.costOf(path, func() error {
			if err := lock.Acquire(ctx); err != nil {
				return err
			}
			awaitOwnWatch(t, p)
			return lock.Release(ctx)
		})
		costs = append(costs, len(ops))
	}
	slices.Sort(costs) // a few rounds take a list more; see TestCostOfAFreeLock
	require.Equal(t, 4, costs[rounds/2], "create, list, watch on itself, delete")
}

// Owners in one process hand the lock over without asking, and without waiting for the delete to be answered: also to one whose
// list, when it joined, showed several ahead.
func TestHandOverInsideAProcess(t *testing.T) {
	t.Parallel()
	p := sharedPeer(t)
	path, ctx := zkserver.Path(t), ownerContext(t)
	var locks []*recipes.InterProcessMutex
	var acquired []<-chan error
	for i := range 3 {
		lock := p.mutex(path)
		locks = append(locks, lock)
		acquired = append(acquired, start(func() error { return lock.Acquire(ctx) }))
		p.awaitChildren(path, i+1)
	}
	require.NoError(t, within(t, acquired[0], "the lock is free"))
	eventually(t, func() bool { return len(watching(p.tap)) == 3 }, "they are not minded")
	var nodes []string
	for _, node := range p.children(path) {
		nodes = append(nodes, path+"/"+node)
	}
	require.ElementsMatch(t, nodes, watching(p.tap), "each its own, and none the one ahead")

	answer := make(chan struct{})
	held := p.tap.NthReply(wiretap.Delete, 1, wiretap.Hold(answer))
	p.tap.Reset()
	var released []<-chan error
	for i, next := range acquired[1:] {
		released = append(released, start(func() error { return locks[i].Release(ctx) }))
		require.NoError(t, within(t, next, "the lock does not pass on"))
	}
	within(t, held, "no delete was sent")
	// The lock passes on ahead of the delete, too.
	eventually(t, func() bool { return len(p.asked(path)) >= 2 }, "the second delete was not sent")
	require.Equal(t, []wiretap.Op{wiretap.Delete, wiretap.Delete}, p.asked(path))
	for _, done := range released {
		require.Empty(t, done, "the delete was not answered")
	}
	close(answer)
	for _, done := range released {
		require.NoError(t, within(t, done, "the release"))
	}
	require.NoError(t, locks[2].Release(ctx))
}

func TestWatchesPerWaiter(t *testing.T) {
	t.Parallel()
	server := zkserver.Start(t).Servers[0] // wchp tells of all watches
	holder := newPeer(t, server.Addr, time.Minute)
	path, ctx := zkserver.Path(t), ownerContext(t)
	held := holder.mutex(path)
	require.NoError(t, held.Acquire(ctx))
	awaitOwnWatch(t, holder)
	const waiters = 5
	var waiting []<-chan error
	for i := range waiters {
		p := newPeer(t, server.Addr, time.Minute)
		lock := p.mutex(path)
		waiting = append(waiting, start(func() error {
			if err := lock.Acquire(ctx); err != nil {
				return err
			}
			return lock.Release(ctx)
		}))
		p.awaitChildren(path, i+2)
		eventually(t, func() bool { return len(watching(p.tap)) > 0 }, "the waiter does not wait")
	}
	for node, watchers := range watchersOf(t, server) {
		require.LessOrEqual(t, watchers, 2, "%s: its owner watches it, and the next in the queue", node)
	}
	require.NoError(t, held.Release(ctx))
	for _, done := range waiting {
		require.NoError(t, within(t, done, "the lock does not pass on"))
	}
}

// watchersOf returns how many sessions watch each znode, as the server tells: a path to a line, and below it its sessions.
func watchersOf(t *testing.T, server *zkserver.Server) map[string]int {
	t.Helper()
	answer, err := server.FourLetter("wchp")
	require.NoError(t, err)
	watchers, node := map[string]int{}, ""
	for line := range strings.Lines(answer) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "/"):
			node = line
		case strings.HasPrefix(line, "0x"):
			watchers[node]++
		}
	}
	require.NotEmpty(t, watchers)
	return watchers
}

// What doc.go says that a znode costs this process: a goroutine once it lasts, and no more however many there are.
func TestGoroutinesOfHoldersAndWaiters(t *testing.T) {
	p := sharedPeer(t)
	path := zkserver.Path(t)
	const n = 100
	first, ctx := p.mutex(path), ownerContext(t)
	require.NoError(t, first.Acquire(ctx))
	awaitOwnWatch(t, p)
	before := runtime.NumGoroutine()

	for range n {
		require.NoError(t, p.mutex(zkserver.Path(t)).Acquire(ctx))
	}
	eventually(t, func() bool { return len(watching(p.tap)) == n+1 }, "the holds are not minded")
	awaitGoroutines(t, before+n, "a hold takes one")

	var waiting []<-chan error
	for range n {
		owner, lock := ownerContext(t), p.mutex(path)
		waiting = append(waiting, start(func() error {
			if err := lock.Acquire(owner); err != nil {
				return err
			}
			return lock.Release(owner)
		}))
	}
	// One watch for each, on its own znode; on the one ahead, or on both, where a list showed that one before this process had the answer
	// to its create.
	eventually(t, func() bool { return len(watching(p.tap)) >= 2*n+1 }, "the waiters are not minded")
	awaitGoroutines(t, before+n+2*n, "a waiter takes one, besides its own")
	require.NoError(t, first.Release(ctx))
	for _, done := range waiting {
		require.NoError(t, within(t, done, "the lock does not pass on"))
	}
	awaitGoroutines(t, before+n, "who has left takes none")
}

// awaitGoroutines waits until there are at most n: calls that have been answered are about to end.
func awaitGoroutines(t *testing.T, n int, why string) {
	t.Helper()
	eventually(t, func() bool { return runtime.NumGoroutine() <= n }, "%s: there are more than %d goroutines", why, n)
}

func TestAllocationsOfReentry(t *testing.T) {
	p := sharedPeer(t)
	lock, ctx := p.mutex(zkserver.Path(t)), ownerContext(t)
	require.NoError(t, lock.Acquire(ctx))
	awaitOwnWatch(t, p)
	allocs := testing.AllocsPerRun(1000, func() {
		if lock.Acquire(ctx) != nil || lock.Release(ctx) != nil {
			t.Error("no re-entry")
		}
	})
	require.Zero(t, allocs)
	require.NoError(t, lock.Release(ctx))
}
