package recipes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A kind is one of the recipes, for what holds for all of them.
type kind struct {
	name  string
	lock  func(p *peer, path string) recipes.InterProcessLock
	rival func(p *peer, path string) recipes.InterProcessLock // excludes it; nil: another of the same
	dirs  []string                                            // where its znodes are, below path
	free  []wiretap.Op                                        // what a free lock that is held briefly asks for, in any order
}

func (k kind) newRival(p *peer, path string) recipes.InterProcessLock {
	if k.rival != nil {
		return k.rival(p, path)
	}
	return k.lock(p, path)
}

// nodes returns all znodes of the lock.
func (k kind) nodes(p *peer, path string) (nodes []string) {
	p.t.Helper()
	for _, dir := range k.dirs {
		for _, child := range p.children(path + dir) {
			nodes = append(nodes, path+dir+"/"+child)
		}
	}
	return nodes
}

// acquire acquires lock and waits until nothing but what holds it is left; a semaphore's place at the gate goes in the background.
func (k kind) acquire(ctx context.Context, p *peer, path string, lock recipes.InterProcessLock) (nodes []string) {
	p.t.Helper()
	require.NoError(p.t, lock.Acquire(ctx))
	eventually(p.t, func() bool {
		nodes = k.nodes(p, path)
		return !slices.ContainsFunc(nodes, func(node string) bool { return strings.Contains(node, "/locks/") })
	}, "the place at the gate stays")
	return nodes
}

func (k kind) awaitNodes(p *peer, path string, n int) {
	p.t.Helper()
	eventually(p.t, func() bool { return len(k.nodes(p, path)) == n }, "%s does not come to have %d znodes", path, n)
}

func readWriteLock(p *peer, path string) *recipes.InterProcessReadWriteLock {
	p.t.Helper()
	l, err := recipes.NewInterProcessReadWriteLock(p.conn, path, recipes.WithSessionTimeout(p.timeout))
	require.NoError(p.t, err)
	return l
}

func semaphore(p *peer, path string, most int) *recipes.InterProcessSemaphoreV2 {
	p.t.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2(p.conn, path, most, recipes.WithSessionTimeout(p.timeout))
	require.NoError(p.t, err)
	return s
}

var (
	freeQueue     = []wiretap.Op{wiretap.Create, wiretap.GetChildren2, wiretap.Delete}
	freeSemaphore = slices.Concat(freeQueue, freeQueue)
)

var kinds = []kind{
	{
		name: "mutex", dirs: []string{""}, free: freeQueue,
		lock: func(p *peer, path string) recipes.InterProcessLock { return p.mutex(path) },
	},
	{
		name: "write lock", dirs: []string{""}, free: freeQueue,
		lock: func(p *peer, path string) recipes.InterProcessLock { return readWriteLock(p, path).WriteLock() },
	},
	{
		name: "read lock", dirs: []string{""}, free: freeQueue,
		lock:  func(p *peer, path string) recipes.InterProcessLock { return readWriteLock(p, path).ReadLock() },
		rival: func(p *peer, path string) recipes.InterProcessLock { return readWriteLock(p, path).WriteLock() },
	},
	{
		name: "write lock behind a reader", dirs: []string{""}, free: freeQueue,
		lock:  func(p *peer, path string) recipes.InterProcessLock { return readWriteLock(p, path).WriteLock() },
		rival: func(p *peer, path string) recipes.InterProcessLock { return readWriteLock(p, path).ReadLock() },
	},
	{
		name: "semaphore mutex", dirs: []string{"/locks", "/leases"}, free: freeSemaphore,
		lock: func(p *peer, path string) recipes.InterProcessLock {
			m, err := recipes.NewInterProcessSemaphoreMutex(p.conn, path, recipes.WithSessionTimeout(p.timeout))
			require.NoError(p.t, err)
			return m
		},
	},
	{
		name: "semaphore, all leases", dirs: []string{"/locks", "/leases"},
		free: slices.Concat(freeSemaphore, []wiretap.Op{wiretap.Create, wiretap.Delete, wiretap.Create, wiretap.Delete}),
		lock: func(p *peer, path string) recipes.InterProcessLock {
			return &leaseLock{sem: semaphore(p, path, 3), n: 3}
		},
	},
	{
		name: "multi lock", dirs: []string{"/a", "/b"}, free: slices.Concat(freeQueue, freeQueue),
		lock: func(p *peer, path string) recipes.InterProcessLock {
			m, err := recipes.NewInterProcessMultiLock(p.conn, []string{path + "/a", path + "/b"}, recipes.WithSessionTimeout(p.timeout))
			require.NoError(p.t, err)
			return m
		},
	},
}

// A leaseLock makes a lock of n leases.
type leaseLock struct {
	sem *recipes.InterProcessSemaphoreV2
	n   int

	mu     sync.Mutex
	leases []*recipes.Lease
}

func (l *leaseLock) set(leases []*recipes.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases = leases
}

func (l *leaseLock) Acquire(ctx context.Context) error {
	leases, err := l.sem.AcquireN(ctx, l.n)
	if err == nil {
		l.set(leases)
	}
	return err
}

func (l *leaseLock) AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error) {
	leases, err := l.sem.AcquireTimeout(ctx, l.n, timeout)
	if leases != nil {
		l.set(leases)
	}
	return leases != nil, err
}

func (l *leaseLock) Release(ctx context.Context) error {
	l.mu.Lock()
	leases := l.leases
	l.leases = nil
	l.mu.Unlock()
	if leases == nil {
		return recipes.ErrNotOwner
	}
	return l.sem.ReturnAll(ctx, leases)
}

func (l *leaseLock) IsAcquiredInThisProcess() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases != nil && !slices.ContainsFunc(l.leases, func(l *recipes.Lease) bool { return l.Err() != nil })
}

// lost returns a channel that is closed when the lock that is held is lost.
func lost(ctx context.Context, lock recipes.InterProcessLock) <-chan struct{} {
	if l, ok := lock.(*leaseLock); ok {
		return l.leases[0].Lost()
	}
	return lock.(interface {
		Hold(ctx context.Context) *recipes.Hold
	}).Hold(ctx).Lost()
}

// forAll runs a test for every kind, side by side.
func forAll(t *testing.T, test func(t *testing.T, k kind)) {
	t.Parallel()
	zkserver.Shared(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

func TestEveryLockExcludes(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path := zkserver.Path(t)
		first := sharedPeer(t)
		count := newCounter(t, first)
		const each = 20
		var workers []<-chan error
		for i := range 4 {
			p := sharedPeer(t)
			lock := k.lock(p, path)
			if k.name == "read lock" && i > 0 { // readers would share
				lock = k.newRival(p, path)
			}
			for range 2 {
				if k.name == "read lock" && i == 0 && len(workers) > 0 {
					continue // only one reader
				}
				ctx, lock := ownerContext(t), lock
				if _, ok := lock.(*leaseLock); ok {
					lock = k.lock(p, path)
				}
				workers = append(workers, start(func() error {
					for range each {
						if err := recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error { return count.increment(p.conn) }); err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
		for _, w := range workers {
			require.NoError(t, within(t, w, "a worker"))
		}
		n, err := count.value(first.conn)
		require.NoError(t, err)
		require.EqualValues(t, each*len(workers), n)
		k.awaitNodes(first, path, 0)
	})
}

func TestEveryLockWaitsAndGivesUp(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p := zkserver.Path(t), sharedPeer(t)
		held, waiter := k.newRival(sharedPeer(t), path), k.lock(p, path)
		ctx, other := ownerContext(t), ownerContext(t)
		before := k.acquire(ctx, p, path, held)
		for _, timeout := range []time.Duration{-1, 0, time.Millisecond, 50 * time.Millisecond} {
			began := time.Now()
			ok, err := waiter.AcquireTimeout(other, timeout)
			require.False(t, ok)
			if timeout > 0 {
				requireOutOfTime(t, err)
			} else {
				require.NoError(t, err)
			}
			require.Less(t, time.Since(began)-max(0, timeout), grace, "AcquireTimeout(%v)", timeout)
		}
		changedMind := errors.New("changed mind")
		cancelled, cancel := context.WithCancelCause(other)
		waiting := start(func() error { return waiter.Acquire(cancelled) })
		eventually(t, func() bool { return len(k.nodes(p, path)) > len(before) }, "nobody queues")
		began := time.Now()
		cancel(changedMind)
		require.ErrorIs(t, within(t, waiting, "cancelled"), changedMind)
		require.Less(t, time.Since(began), grace)
		k.awaitNodes(p, path, len(before))
		require.Equal(t, before, k.nodes(p, path))
		require.False(t, waiter.IsAcquiredInThisProcess())
		require.ErrorIs(t, waiter.Release(other), recipes.ErrNotOwner)

		waiting = start(func() error { return waiter.Acquire(other) })
		eventually(t, func() bool { return len(k.nodes(p, path)) > len(before) }, "nobody queues")
		require.True(t, held.IsAcquiredInThisProcess())
		require.NoError(t, held.Release(ctx))
		require.NoError(t, within(t, waiting, "the waiter's turn"))
		require.True(t, waiter.IsAcquiredInThisProcess())
		require.NoError(t, waiter.Release(other))
		k.awaitNodes(p, path, 0)
	})
}

func TestEveryLockGivesUpInAnOutage(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p, watcher := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
		held, waiter := k.newRival(watcher, path), k.lock(p, path)
		ctx := ownerContext(t)
		before := k.acquire(ctx, watcher, path, held)
		const timeout = 300 * time.Millisecond
		for name, fault := range map[string]func(){"before": p.tap.Partition, "while queued": p.tap.PartitionIn} {
			if name == "before" {
				fault()
			} else {
				p.awaitSession()
				p.tap.NthRequest(wiretap.Create, 1, wiretap.Pass)
				time.AfterFunc(timeout/3, fault)
			}
			began := time.Now()
			ok, err := waiter.AcquireTimeout(ownerContext(t), timeout)
			require.False(t, ok, name)
			require.Less(t, time.Since(began)-timeout, grace, name)
			if name == "before" {
				require.ErrorIs(t, err, recipes.ErrUnavailable)
			} else if !errors.Is(err, recipes.ErrUnavailable) {
				require.NoError(t, err, name) // seen less than a second before
			}
			p.tap.Heal()
			k.awaitNodes(watcher, path, len(before))
		}
		require.NoError(t, held.Release(ctx))
		require.NoError(t, waiter.Acquire(ctx), "the value is of use after an outage")
		require.NoError(t, waiter.Release(ctx))
	})
}

func TestEveryLockIsLostInTime(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path := zkserver.Path(t)
		p, other := newPeer(t, zkserver.Shared(t).Connect(), time.Second), sharedPeer(t)
		held, heir := k.lock(p, path), k.newRival(other, path)
		ctx := ownerContext(t)
		before := len(k.acquire(ctx, other, path, held))
		gone := lost(ctx, held)
		waiting := start(func() error { return heir.Acquire(ctx) })
		eventually(t, func() bool { return len(k.nodes(other, path)) > before }, "the heir does not queue")
		p.tap.Partition()
		require.NoError(t, within(t, waiting, "the lock does not pass on"))
		select {
		case <-gone:
		default:
			t.Fatal("two hold the lock, and the first does not know")
		}
		require.False(t, held.IsAcquiredInThisProcess())
		require.ErrorIs(t, held.Release(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, held.Release(ctx), recipes.ErrNotOwner)
		p.tap.Heal()
		require.NoError(t, heir.Release(ctx))
		require.NoError(t, held.Acquire(ctx), "the value is of use after a loss")
		require.NoError(t, held.Release(ctx))
		k.awaitNodes(other, path, 0)
	})
}

func TestEveryLockIsLostWithItsZnode(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p, other := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
		lock, ctx := k.lock(p, path), ownerContext(t)
		require.NoError(t, other.conn.Delete(k.acquire(ctx, other, path, lock)[0], -1))
		eventually(t, func() bool { return !lock.IsAcquiredInThisProcess() }, "the loss is not told")
		err := lock.Release(ctx)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		k.awaitNodes(other, path, 0)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
	})
}

func TestEveryLockSurvivesLostReplies(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p, other := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
		lock, ctx := k.lock(p, path), ownerContext(t)
		n := len(k.acquire(ctx, other, path, lock))
		require.NoError(t, lock.Release(ctx))
		k.awaitNodes(other, path, 0)
		nth := map[wiretap.Op]int{}
		for _, op := range k.free { // the first create, the first list, …
			nth[op]++
			happened := p.tap.LoseReply(op, nth[op])
			require.Len(t, k.acquire(ctx, other, path, lock), n)
			require.NoError(t, lock.Release(ctx))
			within(t, happened, "the fault")
			p.awaitSession()
			k.awaitNodes(other, path, 0)
		}
	})
}

func TestEveryLockJoinsAnewWhenItsSessionExpires(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path := zkserver.Path(t)
		p, other := newPeer(t, zkserver.Shared(t).Connect(), time.Second), sharedPeer(t)
		held, waiter := k.newRival(other, path), k.lock(p, path)
		ctx := ownerContext(t)
		before := len(k.acquire(ctx, other, path, held))
		waiting := start(func() error { return waiter.Acquire(ctx) })
		eventually(t, func() bool { return len(k.nodes(other, path)) > before }, "nobody queues")
		session := p.conn.SessionID()
		p.tap.Partition()
		k.awaitNodes(other, path, before)
		p.tap.Heal()
		eventually(t, func() bool { return len(k.nodes(other, path)) > before }, "the waiter does not queue anew")
		require.NotEqual(t, session, p.conn.SessionID())
		require.NoError(t, held.Release(ctx))
		require.NoError(t, within(t, waiting, "the waiter's turn"))
		require.NoError(t, waiter.Release(ctx))
	})
}

func TestEveryLockOnAClosedConnection(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p, other := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
		held := k.newRival(other, path)
		ctx := ownerContext(t)
		before := len(k.acquire(ctx, other, path, held))
		waiter := k.lock(p, path)
		waiting := start(func() error { return waiter.Acquire(ctx) })
		eventually(t, func() bool { return len(k.nodes(other, path)) > before }, "nobody queues")
		p.conn.Close()
		require.ErrorIs(t, within(t, waiting, "the wait"), zk.ErrConnectionClosed)
		require.ErrorIs(t, within(t, start(func() error { return waiter.Acquire(ctx) }), "Acquire"), zk.ErrConnectionClosed)
		other.conn.Close()
		require.ErrorIs(t, within(t, start(func() error { return held.Release(ctx) }), "Release"), recipes.ErrLockLost)
	})
}

func TestEveryLockCostsWhatItMust(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p := zkserver.Path(t), sharedPeer(t)
		lock, ctx := k.lock(p, path), ownerContext(t)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		want := slices.Sorted(slices.Values(k.free))
		exact := 0
		const rounds = 50
		for range rounds {
			k.awaitNodes(p, path, 0)
			p.tap.Reset()
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
			if got := slices.Sorted(slices.Values(p.tap.Ops())); len(got) == len(want) {
				require.Equal(t, want, got)
				exact++
			}
		}
		// The list is sent by a goroutine of its own, and so is each of several creates; the race detector's scheduler lets it
		// overtake a create now and then, and then it is sent again.
		require.Greater(t, exact, rounds/2)
	})
}

func TestEveryLockSharesItsWatches(t *testing.T) {
	server := zkserver.Start(t).Servers[0]
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			path, p, other := zkserver.Path(t), newPeer(t, server.Addr, 4*time.Second), newPeer(t, server.Addr, 4*time.Second)
			held := k.newRival(other, path)
			ctx := ownerContext(t)
			require.NoError(t, held.Acquire(ctx))
			for range 100 {
				ok, err := k.lock(p, path).AcquireTimeout(ownerContext(t), 10*time.Millisecond)
				requireOutOfTime(t, err)
				require.False(t, ok)
			}
			left := 0
			for watched, watchers := range watchersOf(t, server) {
				if strings.HasPrefix(watched, path) {
					left += watchers
				}
			}
			require.LessOrEqual(t, left, 5, "what a hundred impatient waiters have left")
			require.NoError(t, held.Release(ctx))
		})
	}
}
