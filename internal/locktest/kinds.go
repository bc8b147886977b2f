package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A Maker makes a lock at a path.
type Maker func(
	conn recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error)

// A Kind is one of the locks, for what holds for all of them.
type Kind struct {
	Name   string
	Recipe string // as events tell it
	Make   Maker
	Rival  Maker        // makes what excludes it; nil: another of the same
	Dirs   []string     // where its znodes are, below path
	Free   []wiretap.Op // what a free lock that is held briefly asks for, in any order
	Stands string       // where a waiter for the one at /lock says that it stands
	Cached bool         // it keeps its place in the queue
	Plain  Maker        // of a cached one: makes it without
}

// Lock returns a lock of this kind. It knows the session timeout.
func (k Kind) Lock(p *Peer, path string) recipes.InterProcessLock {
	p.TB.Helper()
	return k.MustMake(p.TB, p.Conn, path, recipes.WithSessionTimeout(p.Timeout))
}

// NewRival returns a lock that excludes those of this kind.
func (k Kind) NewRival(p *Peer, path string) recipes.InterProcessLock {
	p.TB.Helper()
	return k.MustMakeRival(p.TB, p.Conn, path, recipes.WithSessionTimeout(p.Timeout))
}

// MakeRival makes a lock at a path that excludes those of this kind.
func (k Kind) MakeRival(
	conn recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	if k.Rival != nil {
		return k.Rival(conn, path, opts...)
	}
	return k.Make(conn, path, opts...)
}

// MustMake is Make for what must succeed.
func (k Kind) MustMake(
	tb testing.TB, conn recipes.Conn, path string, opts ...recipes.Option,
) recipes.InterProcessLock {
	tb.Helper()
	lock, err := k.Make(conn, path, opts...)
	return must(tb, lock, err)
}

// MustMakeRival is MakeRival for what must succeed.
func (k Kind) MustMakeRival(
	tb testing.TB, conn recipes.Conn, path string, opts ...recipes.Option,
) recipes.InterProcessLock {
	tb.Helper()
	rival, err := k.MakeRival(conn, path, opts...)
	return must(tb, rival, err)
}

// Nodes returns all znodes of the lock.
func (k Kind) Nodes(p *Peer, path string) (nodes []string) {
	p.TB.Helper()
	for _, dir := range k.Dirs {
		for _, child := range p.Children(path + dir) {
			nodes = append(nodes, path+dir+"/"+child)
		}
	}
	return nodes
}

// Acquire acquires lock and waits until nothing but what holds it is left; a semaphore's
// place at the gate goes in the background.
func (k Kind) Acquire(
	ctx context.Context, p *Peer, path string, lock recipes.InterProcessLock,
) (nodes []string) {
	p.TB.Helper()
	require.NoError(p.TB, lock.Acquire(ctx))
	Eventually(p.TB, func() bool {
		nodes = k.Nodes(p, path)
		return !slices.ContainsFunc(nodes, AtTheGate)
	}, "the place at the gate stays")
	return nodes
}

// AtTheGate tells whether a znode is one of a semaphore's queue.
func AtTheGate(node string) bool { return strings.Contains(node, "/locks/") }

// AwaitNodes waits until the lock has n znodes.
func (k Kind) AwaitNodes(p *Peer, path string, n int) {
	p.TB.Helper()
	Eventually(p.TB, func() bool { return len(k.Nodes(p, path)) == n },
		"%s does not come to have %d znodes", path, n)
}

// IsReentrant tells whether its owner can acquire it again.
func (k Kind) IsReentrant() bool { return !strings.HasPrefix(k.Recipe, "semaphore") }

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

// Kinds are the locks, and those that keep their place once more with that option.
var Kinds = withCached([]Kind{
	{
		Name: "mutex", Recipe: "mutex", Make: MakeMutex,
		Dirs: oneDir, Free: freeQueue, Stands: behind("", "lock-"),
	},
	{
		Name: "write lock", Recipe: "write lock", Make: MakeWriteLock,
		Dirs: oneDir, Free: freeQueue, Stands: behind("", "__WRIT__"),
	},
	{
		Name: "write lock behind a reader", Recipe: "write lock",
		Make: MakeWriteLock, Rival: MakeReadLock,
		Dirs: oneDir, Free: freeQueue, Stands: behind("", "__READ__"),
	},
	{
		Name: "read lock", Recipe: "read lock", Make: MakeReadLock, Rival: MakeWriteLock,
		Dirs: oneDir, Free: freeQueue, Stands: behind("", "__WRIT__"),
	},
	{
		Name: "semaphore mutex", Recipe: "semaphore mutex", Make: MakeSemaphoreMutex,
		Dirs: semaphoreDirs, Free: freeSemaphore, Stands: behind("/leases", "lease-"),
	},
	{
		Name: "semaphore, the only lease", Recipe: "semaphore", Make: MakeLeaseLock(1),
		Dirs: semaphoreDirs, Free: freeSemaphore, Stands: behind("/leases", "lease-"),
	},
	{
		Name: "semaphore, all leases", Recipe: "semaphore", Make: MakeLeaseLock(3),
		Dirs: semaphoreDirs, Free: slices.Concat(freeSemaphore, twoMoreLeases),
		Stands: noRoom(3),
	},
	{
		Name: "multi lock", Recipe: "mutex", Make: makeMultiLock,
		Dirs: memberDirs, Free: freeMembers, Stands: behind("/a", "lock-"),
	},
	{
		Name: "multi lock whose first member is free", Recipe: "mutex",
		Make: makeMultiLock, Rival: makeSecondMember,
		Dirs: memberDirs, Free: freeMembers, Stands: behind("/b", "lock-"),
	},
	{
		Name: "multi lock of a multi lock", Recipe: "mutex",
		Make: makeNestedLock, Rival: makeSecondMember,
		Dirs: memberDirs, Free: freeMembers, Stands: behind("/b", "lock-"),
	},
})

// Elections are locks as well, for what needs no owner and no single try.
var Elections = []Kind{
	{
		Name: "leader selector", Recipe: "leader selector", Make: MakeSelector,
		Dirs: oneDir, Free: freeQueue, Stands: behind("", "lock-"),
	},
	{
		Name: "leader latch", Recipe: "leader latch", Make: MakeLatch,
		Dirs: oneDir, Free: freeQueue, Stands: behind("", "latch-"),
	},
}

// cachedIdle is for how long the places are kept that wait for no test's doing.
const cachedIdle = 50 * time.Millisecond

// withCached adds the locks that keep their place, as they are otherwise.
func withCached(kinds []Kind) []Kind {
	var cached []Kind
	for _, k := range kinds {
		if strings.Contains(k.Recipe, "semaphore") {
			continue
		}
		plain := k
		k.Name += ", cached"
		k.Make = func(
			c recipes.Conn, path string, opts ...recipes.Option,
		) (recipes.InterProcessLock, error) {
			caching := recipes.WithCaching(cachedIdle, 4)
			return plain.Make(c, path, append(opts, caching)...)
		}
		k.Rival = plain.MakeRival
		k.Cached, k.Plain = true, plain.Make
		cached = append(cached, k)
	}
	return append(kinds, cached...)
}

// ForAll runs a test for every kind, side by side, each in a bubble of zkserver.Test.
func ForAll(t *testing.T, test func(t *testing.T, k Kind)) {
	forKinds(t, slices.Concat(Kinds, Elections), test)
}

// ForAllLocks is ForAll without the elections: for what needs Do or Acquire.
func ForAllLocks(t *testing.T, test func(t *testing.T, k Kind)) {
	forKinds(t, Kinds, test)
}

func forKinds(t *testing.T, kinds []Kind, test func(t *testing.T, k Kind)) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			zkserver.Test(t, func(t *testing.T) { test(t, k) })
		})
	}
}

// ForAllInBubbles runs a test for every kind, each in a bubble.
func ForAllInBubbles(t *testing.T, test func(t *testing.T, b *Bubble, k Kind)) {
	t.Helper()
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) {
			InBubble(t, func(t *testing.T, b *Bubble) { test(t, b, k) })
		})
	}
}
