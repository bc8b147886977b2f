package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A newLock makes a lock at a path.
type newLock func(
	conn recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error)

// A kind is one of the locks, for what holds for all of them.
type kind struct {
	name   string
	recipe string // as events tell it
	make   newLock
	rival  newLock      // makes what excludes it; nil: another of the same
	dirs   []string     // where its znodes are, below path
	free   []wiretap.Op // what a free lock that is held briefly asks for, in any order
	stands string       // where a waiter for the one at /lock says that it stands
	cached bool         // it keeps its place in the queue
	plain  newLock      // of a cached one: makes it without
}

// lock returns a lock of this kind. It knows the session timeout.
func (k kind) lock(p *locktest.Peer, path string) recipes.InterProcessLock {
	p.TB.Helper()
	lock, err := k.make(p.Conn, path, recipes.WithSessionTimeout(p.Timeout))
	require.NoError(p.TB, err)
	return lock
}

// newRival returns a lock that excludes those of this kind.
func (k kind) newRival(p *locktest.Peer, path string) recipes.InterProcessLock {
	p.TB.Helper()
	rival, err := k.makeRival(p.Conn, path, recipes.WithSessionTimeout(p.Timeout))
	require.NoError(p.TB, err)
	return rival
}

func (k kind) makeRival(
	conn recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	if k.rival != nil {
		return k.rival(conn, path, opts...)
	}
	return k.make(conn, path, opts...)
}

// nodes returns all znodes of the lock.
func (k kind) nodes(p *locktest.Peer, path string) (nodes []string) {
	p.TB.Helper()
	for _, dir := range k.dirs {
		for _, child := range p.Children(path + dir) {
			nodes = append(nodes, path+dir+"/"+child)
		}
	}
	return nodes
}

// acquire acquires lock and waits until nothing but what holds it is left; a semaphore's
// place at the gate goes in the background.
func (k kind) acquire(
	ctx context.Context, p *locktest.Peer, path string, lock recipes.InterProcessLock,
) (nodes []string) {
	p.TB.Helper()
	require.NoError(p.TB, lock.Acquire(ctx))
	locktest.Eventually(p.TB, func() bool {
		nodes = k.nodes(p, path)
		return !slices.ContainsFunc(nodes, atTheGate)
	}, "the place at the gate stays")
	return nodes
}

// atTheGate tells whether a znode is one of a semaphore's queue.
func atTheGate(node string) bool { return strings.Contains(node, "/locks/") }

func (k kind) awaitNodes(p *locktest.Peer, path string, n int) {
	p.TB.Helper()
	locktest.Eventually(p.TB, func() bool { return len(k.nodes(p, path)) == n },
		"%s does not come to have %d znodes", path, n)
}

func newMutex(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return recipes.NewInterProcessMutex(c, path, opts...)
}

func newReadLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	l, err := recipes.NewInterProcessReadWriteLock(c, path, opts...)
	return l.ReadLock(), err
}

func newWriteLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	l, err := recipes.NewInterProcessReadWriteLock(c, path, opts...)
	return l.WriteLock(), err
}

func newSemaphoreMutex(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return recipes.NewInterProcessSemaphoreMutex(c, path, opts...)
}

// newLeaseLock makes a lock of all leases of a semaphore that has n.
func newLeaseLock(n int) newLock {
	return func(
		c recipes.Conn, path string, opts ...recipes.Option,
	) (recipes.InterProcessLock, error) {
		s, err := recipes.NewInterProcessSemaphoreV2(c, path, n, opts...)
		if err != nil {
			return nil, err
		}
		return s.AsLock(n), nil
	}
}

func newSelectorCandidate(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	s, err := recipes.NewLeaderSelector(c, path, opts...)
	return locktest.NewSelectorCandidate(s), err
}

func newLatchCandidate(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return locktest.NewLatchCandidate(func() (*recipes.LeaderLatch, error) {
		return recipes.NewLeaderLatch(c, path, opts...)
	}), nil
}

func newMultiLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	paths := []string{path + "/a", path + "/b", path + "/c"}
	return recipes.NewInterProcessMultiLock(c, paths, opts...)
}

// newNestedLock makes a multi lock with another one in it.
func newNestedLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	inner, err := recipes.NewInterProcessMultiLock(
		c, []string{path + "/a", path + "/b"}, opts...)
	if err != nil {
		return nil, err
	}
	last, err := newMutex(c, path+"/c", opts...)
	return recipes.NewInterProcessMultiLockOf(inner, last), err
}

// newSecondMember makes the second member of a multi lock, whose first then is free.
func newSecondMember(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return newMutex(c, path+"/b", opts...)
}

// behind is where a waiter stands behind one znode.
func behind(dir, name string) string {
	return `1 ahead, behind /lock` + dir + `/_c_[-0-9a-f]{36}-` + name + `\d{10}`
}

// noRoom is where a waiter stands that wants all n leases.
func noRoom(n int) string {
	return fmt.Sprintf("no room in /lock/leases: %d wanted, %[1]d of %[1]d taken", n)
}

var (
	oneDir        = []string{""}
	semaphoreDirs = []string{"/locks", "/leases"}
	memberDirs    = []string{"/a", "/b", "/c"}

	freeQueue     = []wiretap.Op{wiretap.Create, wiretap.GetChildren2, wiretap.Delete}
	freeSemaphore = slices.Concat(freeQueue, freeQueue)
	freeMembers   = slices.Concat(freeQueue, freeQueue, freeQueue)
	twoMoreLeases = []wiretap.Op{
		wiretap.Create, wiretap.Delete, wiretap.Create, wiretap.Delete,
	}
)

var kinds = []kind{
	{
		name: "mutex", recipe: "mutex", make: newMutex,
		dirs: oneDir, free: freeQueue, stands: behind("", "lock-"),
	},
	{
		name: "write lock", recipe: "write lock", make: newWriteLock,
		dirs: oneDir, free: freeQueue, stands: behind("", "__WRIT__"),
	},
	{
		name: "write lock behind a reader", recipe: "write lock",
		make: newWriteLock, rival: newReadLock,
		dirs: oneDir, free: freeQueue, stands: behind("", "__READ__"),
	},
	{
		name: "read lock", recipe: "read lock", make: newReadLock, rival: newWriteLock,
		dirs: oneDir, free: freeQueue, stands: behind("", "__WRIT__"),
	},
	{
		name: "semaphore mutex", recipe: "semaphore mutex", make: newSemaphoreMutex,
		dirs: semaphoreDirs, free: freeSemaphore, stands: noRoom(1),
	},
	{
		name: "semaphore, the only lease", recipe: "semaphore", make: newLeaseLock(1),
		dirs: semaphoreDirs, free: freeSemaphore, stands: noRoom(1),
	},
	{
		name: "semaphore, all leases", recipe: "semaphore", make: newLeaseLock(3),
		dirs: semaphoreDirs, free: slices.Concat(freeSemaphore, twoMoreLeases),
		stands: noRoom(3),
	},
	{
		name: "multi lock", recipe: "mutex", make: newMultiLock,
		dirs: memberDirs, free: freeMembers, stands: behind("/a", "lock-"),
	},
	{
		name: "multi lock whose first member is free", recipe: "mutex",
		make: newMultiLock, rival: newSecondMember,
		dirs: memberDirs, free: freeMembers, stands: behind("/b", "lock-"),
	},
	{
		name: "multi lock of a multi lock", recipe: "mutex",
		make: newNestedLock, rival: newSecondMember,
		dirs: memberDirs, free: freeMembers, stands: behind("/b", "lock-"),
	},
}

// elections are locks as well, for what needs no owner and no single try.
var elections = []kind{
	{
		name: "leader selector", recipe: "leader selector", make: newSelectorCandidate,
		dirs: oneDir, free: freeQueue, stands: behind("", "lock-"),
	},
	{
		name: "leader latch", recipe: "leader latch", make: newLatchCandidate,
		dirs: oneDir, free: freeQueue, stands: behind("", "latch-"),
	},
}

func init() { kinds = append(kinds, cachedKinds()...) }

// cachedIdle is for how long the places are kept that wait for no test's doing.
const cachedIdle = 50 * time.Millisecond

// cachedKinds are the locks that keep their place, as they are else.
func cachedKinds() (cached []kind) {
	for _, k := range kinds {
		if strings.Contains(k.recipe, "semaphore") {
			continue
		}
		plain := k
		k.name += ", cached"
		k.make = func(
			c recipes.Conn, path string, opts ...recipes.Option,
		) (recipes.InterProcessLock, error) {
			caching := recipes.WithCaching(cachedIdle, 4)
			return plain.make(c, path, append(opts, caching)...)
		}
		k.rival = plain.makeRival
		k.cached, k.plain = true, plain.make
		cached = append(cached, k)
	}
	return cached
}

// lost returns a channel that is closed when the lock that is held is lost.
func lost(ctx context.Context, lock recipes.InterProcessLock) <-chan struct{} {
	return lock.(interface {
		Hold(ctx context.Context) *recipes.Hold
	}).Hold(ctx).Lost()
}

// forAll runs a test for every kind, side by side, on a server.
func forAll(t *testing.T, test func(t *testing.T, k kind)) {
	t.Parallel()
	zkserver.Shared(t)
	for _, k := range slices.Concat(kinds, elections) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// forAllInBubbles runs a test for every kind, each in a bubble.
func forAllInBubbles(t *testing.T, test func(t *testing.T, b *locktest.Bubble, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) { test(t, b, k) })
		})
	}
}

func TestEveryLockExcludes(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path := zkserver.Path(t)
		first := locktest.SharedPeer(t)
		count := newCounter(t, first)
		const each = 20
		var workers []<-chan error
		for i := range 4 {
			p := locktest.SharedPeer(t)
			lock := k.lock(p, path)
			if k.recipe == "read lock" && i > 0 { // readers would share
				lock = k.newRival(p, path)
			}
			for range 2 {
				if k.recipe == "read lock" && i == 0 && len(workers) > 0 {
					continue // only one reader
				}
				ctx, lock := locktest.Owner(t), lock
				if _, election := lock.(*locktest.Candidate); election {
					lock = k.lock(p, path)
				}
				workers = append(workers, locktest.Start(func() error {
					for range each {
						if err := recipes.Do(ctx, lock, func(
							context.Context, *recipes.Hold,
						) error {
							return count.increment(p.Conn)
						}); err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
		for _, w := range workers {
			require.NoError(t, locktest.Within(t, w, "a worker"))
		}
		n, err := count.value(first.Conn)
		require.NoError(t, err)
		require.EqualValues(t, each*len(workers), n)
		k.awaitNodes(first, path, 0)
	})
}

func TestEveryLockWaitsAndGivesUp(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		held, waiter := k.newRival(locktest.SharedPeer(t), path), k.lock(p, path)
		ctx, other := locktest.Owner(t), locktest.Owner(t)
		before := k.acquire(ctx, p, path, held)
		for _, timeout := range []time.Duration{
			-1, 0, time.Millisecond, 50 * time.Millisecond,
		} {
			if _, ok := waiter.(*locktest.Candidate); ok && timeout <= 0 {
				continue // it cannot try once
			}
			began := time.Now()
			ok, err := waiter.AcquireTimeout(other, timeout)
			require.False(t, ok)
			if timeout > 0 {
				locktest.RequireOutOfTime(t, err)
			} else {
				require.NoError(t, err)
			}
			require.Less(
				t, time.Since(began)-max(0, timeout), realGrace, "AcquireTimeout(%v)",
				timeout,
			)
		}
		changedMind := errors.New("changed mind")
		cancelled, cancel := context.WithCancelCause(other)
		waiting := locktest.Start(func() error { return waiter.Acquire(cancelled) })
		locktest.Eventually(
			t, func() bool { return len(k.nodes(p, path)) > len(before) },
			"nobody queues",
		)
		began := time.Now()
		cancel(changedMind)
		require.ErrorIs(t, locktest.Within(t, waiting, "cancelled"), changedMind)
		require.Less(t, time.Since(began), realGrace)
		k.awaitNodes(p, path, len(before))
		require.Equal(t, before, k.nodes(p, path))
		require.False(t, waiter.IsAcquiredInThisProcess())
		require.ErrorIs(t, waiter.Release(other), recipes.ErrNotOwner)

		waiting = locktest.Start(func() error { return waiter.Acquire(other) })
		locktest.Eventually(
			t, func() bool { return len(k.nodes(p, path)) > len(before) },
			"nobody queues",
		)
		require.True(t, held.IsAcquiredInThisProcess())
		require.NoError(t, held.Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the waiter's turn"))
		require.True(t, waiter.IsAcquiredInThisProcess())
		require.NoError(t, waiter.Release(other))
		k.awaitNodes(p, path, 0)
	})
}

func TestEveryLockGivesUpInAnOutage(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path := zkserver.Path(t)
		p, watcher := locktest.SharedPeer(t), locktest.SharedPeer(t)
		held, waiter := k.newRival(watcher, path), k.lock(p, path)
		ctx := locktest.Owner(t)
		before := k.acquire(ctx, watcher, path, held)
		const timeout = 300 * time.Millisecond
		for name, fault := range map[string]func(){
			"before": p.Tap.Partition, "while queued": p.Tap.PartitionIn,
		} {
			if name == "before" {
				fault()
			} else {
				p.AwaitSession()
				p.Tap.NthRequest(wiretap.Create, 1, wiretap.Pass)
				time.AfterFunc(timeout/3, fault)
			}
			began := time.Now()
			ok, err := waiter.AcquireTimeout(locktest.Owner(t), timeout)
			require.False(t, ok, name)
			require.Less(t, time.Since(began)-timeout, realGrace, name)
			if name == "before" {
				require.ErrorIs(t, err, recipes.ErrUnavailable)
			} else if !errors.Is(err, recipes.ErrUnavailable) {
				require.NoError(t, err, name) // seen less than a second before
			}
			p.Tap.Heal()
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
		p, other := locktest.NewPeer(
			t, zkserver.Shared(t).Connect(), time.Second,
		), locktest.SharedPeer(t)
		held, heir := k.lock(p, path), k.newRival(other, path)
		ctx := locktest.Owner(t)
		before := len(k.acquire(ctx, other, path, held))
		gone := lost(ctx, held)
		waiting := locktest.Start(func() error { return heir.Acquire(ctx) })
		locktest.Eventually(
			t, func() bool { return len(k.nodes(other, path)) > before },
			"the heir does not queue",
		)
		p.Tap.Partition()
		require.NoError(t, locktest.Within(t, waiting, "the lock does not pass on"))
		select {
		case <-gone:
		default:
			t.Fatal("two hold the lock, and the first does not know")
		}
		require.False(t, held.IsAcquiredInThisProcess())
		require.ErrorIs(t, held.Release(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, held.Release(ctx), recipes.ErrNotOwner)
		p.Tap.Heal()
		require.NoError(t, heir.Release(ctx))
		require.NoError(t, held.Acquire(ctx), "the value is of use after a loss")
		require.NoError(t, held.Release(ctx))
		k.awaitNodes(other, path, 0)
	})
}

func TestEveryLockIsLostWithItsZnode(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		lock, ctx := k.lock(p, path), locktest.Owner(t)
		require.NoError(t, other.Conn.Delete(k.acquire(ctx, other, path, lock)[0], -1))
		locktest.Eventually(
			t, func() bool { return !lock.IsAcquiredInThisProcess() },
			"the loss is not told",
		)
		err := lock.Release(ctx)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		k.awaitNodes(other, path, 0)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
	})
}

func TestEveryLockSurvivesLostReplies(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		// For each fault the client pauses for a second. What is held then is to be lost
		// for no silence, of which a session of four seconds bears no more than 1.4 right
		// after an idle time.
		path, other := zkserver.Path(t), locktest.SharedPeer(t)
		p := locktest.NewPeer(t, zkserver.Shared(t).Connect(), locktest.Lasting)
		lock, ctx := k.lock(p, path), locktest.Owner(t)
		n := len(k.acquire(ctx, other, path, lock))
		require.NoError(t, lock.Release(ctx))
		k.awaitNodes(other, path, 0)
		nth := map[wiretap.Op]int{}
		for _, op := range k.free { // the first create, the first list, …
			nth[op]++
			happened := p.Tap.LoseReply(op, nth[op])
			require.Len(t, k.acquire(ctx, other, path, lock), n)
			require.NoError(t, lock.Release(ctx))
			locktest.Within(t, happened, "the fault")
			p.AwaitSession()
			k.awaitNodes(other, path, 0)
		}
	})
}

func TestEveryLockJoinsAnewWhenItsSessionExpires(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path := zkserver.Path(t)
		p, other := locktest.NewPeer(
			t, zkserver.Shared(t).Connect(), time.Second,
		), locktest.SharedPeer(t)
		held, waiter := k.newRival(other, path), k.lock(p, path)
		ctx := locktest.Owner(t)
		before := len(k.acquire(ctx, other, path, held))
		waiting := locktest.Start(func() error { return waiter.Acquire(ctx) })
		locktest.Eventually(
			t, func() bool { return len(k.nodes(other, path)) > before }, "nobody queues",
		)
		session := p.Conn.SessionID()
		p.Tap.Partition()
		k.awaitNodes(other, path, before)
		p.Tap.Heal()
		locktest.Eventually(
			t, func() bool { return len(k.nodes(other, path)) > before },
			"the waiter does not queue anew",
		)
		require.NotEqual(t, session, p.Conn.SessionID())
		require.NoError(t, held.Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the waiter's turn"))
		require.NoError(t, waiter.Release(ctx))
	})
}

func TestEveryLockOnAClosedConnection(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		held := k.newRival(other, path)
		ctx := locktest.Owner(t)
		before := len(k.acquire(ctx, other, path, held))
		waiter := k.lock(p, path)
		waiting := locktest.Start(func() error { return waiter.Acquire(ctx) })
		locktest.Eventually(
			t, func() bool { return len(k.nodes(other, path)) > before }, "nobody queues",
		)
		p.Conn.Close()
		require.ErrorIs(
			t, locktest.Within(t, waiting, "the wait"), zk.ErrConnectionClosed,
		)
		require.ErrorIs(t, locktest.Within(
			t, locktest.Start(func() error { return waiter.Acquire(ctx) }), "Acquire",
		), zk.ErrConnectionClosed)
		other.Conn.Close()
		require.ErrorIs(t, locktest.Within(
			t, locktest.Start(func() error { return held.Release(ctx) }), "Release",
		), recipes.ErrLockLost)
	})
}

func TestEveryLockCostsWhatItMust(t *testing.T) {
	forAll(t, func(t *testing.T, k kind) {
		if k.cached {
			t.Skip("it costs nothing, or more: see the tests of caching")
		}
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		lock, ctx := k.lock(p, path), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		want := slices.Sorted(slices.Values(k.free))
		exact := 0
		const rounds = 50
		for range rounds {
			k.awaitNodes(p, path, 0)
			p.Tap.Reset()
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
			if got := slices.Sorted(slices.Values(p.Tap.Ops())); len(got) == len(want) {
				require.Equal(t, want, got)
				exact++
			}
		}
		// The list is sent by a goroutine of its own, and so is each of several creates;
		// the race detector's scheduler lets it overtake a create now and then, and then
		// it is sent again.
		require.Greater(t, exact, rounds/2)
	})
}

func TestEveryLockSharesItsWatches(t *testing.T) {
	server := zkserver.Start(t).Servers[0]
	for _, k := range slices.Concat(kinds, elections) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			path := zkserver.Path(t)
			const session = time.Minute // that of a busy machine is not to be lost
			p := locktest.NewPeer(t, server.Addr, session)
			other := locktest.NewPeer(t, server.Addr, session)
			held := k.newRival(other, path)
			ctx := locktest.Owner(t)
			require.NoError(t, held.Acquire(ctx))
			for range 100 {
				ok, err := k.lock(p, path).AcquireTimeout(
					locktest.Owner(t), 10*time.Millisecond,
				)
				locktest.RequireOutOfTime(t, err)
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
