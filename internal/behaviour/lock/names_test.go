package lock_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

const kazooName = "__lock__"

// withKazoo counts kazoo's znodes.
var withKazoo = recipes.WithNames(kazooName)

// A stranger is a znode of another library in the queue at /lock, from when it joins.
type stranger struct {
	t    *testing.T
	conn recipes.Conn
	node string
}

func joins(t *testing.T, b *locktest.Bubble) *stranger {
	t.Helper()
	if _, _, err := b.Other.Get("/lock"); err != nil {
		_, err = b.Other.Create("/lock", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	node, err := b.Other.Create("/lock/0b2d2e5c3b0b4a0f8f0b1e6f1e7a9c55"+kazooName, nil,
		zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return &stranger{t, b.Other, node}
}

func (s *stranger) leaves() {
	s.t.Helper()
	require.NoError(s.t, s.conn.Delete(s.node, -1))
	time.Sleep(locktest.Settle)
}

// named are the locks that can count others' znodes, cached or not.
func named(
	t *testing.T, conn recipes.Conn, opts ...recipes.Option,
) map[string]recipes.InterProcessLock {
	t.Helper()
	locks := map[string]recipes.InterProcessLock{}
	for name, opts := range map[string][]recipes.Option{
		"": opts, ", cached": append(opts, recipes.WithCaching(locktest.LongIdle, 2)),
	} {
		mutex := locktest.NewMutex(t, conn, "/lock", opts...)
		rw := locktest.NewReadWriteLock(t, conn, "/lock", opts...)
		locks["mutex"+name] = mutex
		locks["read lock"+name], locks["write lock"+name] = rw.ReadLock(), rw.WriteLock()
	}
	return locks
}

type newNamed func(opts ...recipes.Option) recipes.InterProcessLock

// forNamed runs a test in a bubble for each of them.
func forNamed(t *testing.T, test func(t *testing.T, b *locktest.Bubble, lock newNamed)) {
	t.Helper()
	for _, name := range []string{
		"mutex", "read lock", "write lock",
		"mutex, cached", "read lock, cached", "write lock, cached",
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			test(t, b, func(opts ...recipes.Option) recipes.InterProcessLock {
				return named(t, b.Ours, opts...)[name]
			})
		})
	}
}

// Who joined before goes first, whichever library made its znode.
func TestOthersStandInTheQueue(t *testing.T) {
	forNamed(t, func(t *testing.T, b *locktest.Bubble, lock newNamed) {
		first := joins(t, b)
		v := locktest.VisitLock(t, lock(withKazoo))
		second := joins(t, b)
		require.False(t, v.Holds())
		first.leaves()
		require.True(t, v.Holds())
		v.Entered()
		v.Leave()
		require.Equal(t, []string{second.node}, b.Cluster.Znodes()[1:],
			"a place is not kept while somebody waits for it")
		held, err := lock(withKazoo).AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, held)
		second.leaves()

		stranger := joins(t, b) // without the option it is none of our business
		v = locktest.VisitLock(t, lock())
		require.True(t, v.Holds())
		v.Entered()
		v.Leave()
		stranger.leaves()
	})
}

// A value that counts less can hold the lock behind a znode that it does not see. It is
// no neighbour to one that does, and shares no place with it.
func TestAHandOverBesideOneWhoCountsLess(t *testing.T) {
	forNamed(t, func(t *testing.T, b *locktest.Bubble, lock newNamed) {
		stranger := joins(t, b)
		less := locktest.VisitLock(t, lock())
		require.True(t, less.Holds())
		v := locktest.VisitLock(t, lock(withKazoo))
		less.Entered()
		less.Leave()
		require.False(t, v.Holds(), "another is ahead")
		stranger.leaves()
		require.True(t, v.Holds())
		v.Entered()
		v.Leave()
	})
}

// Two readers of ours are together, and a stranger counts as a writer between them.
func TestOthersAreWriters(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := locktest.ReadWriteLock(t, b.Ours, withKazoo)
		first := locktest.VisitLock(t, lock.ReadLock())
		first.Entered()
		s := joins(t, b)
		second := locktest.VisitLock(t, lock.ReadLock())
		writer := locktest.VisitLock(t, lock.WriteLock())
		require.False(t, second.Holds())

		all, err := lock.ReadLock().Participants(t.Context())
		require.NoError(t, err)
		seen, err := recipes.Inspect(t.Context(), b.Other, "/lock")
		require.NoError(t, err)
		require.Equal(t, all, seen)
		var kinds []string
		for i, p := range all {
			kinds = append(kinds, p.Kind)
			require.Equal(t, i == 0, p.Holding)
		}
		require.Equal(t, []string{"read", "lock", "read", "write"}, kinds)
		require.Equal(t, s.node, all[1].Node)

		first.Leave()
		require.False(t, second.Holds())
		s.leaves()
		require.True(t, second.Holds())
		second.Entered()
		require.False(t, writer.Holds())
		second.Leave()
		writer.Entered()
		writer.Leave()
	})
}

func TestTheParticipantsAmongOthers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", withKazoo)
		held := locktest.VisitLock(t, lock)
		hold := held.Entered()
		s := joins(t, b)
		nodes, err := lock.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{hold.Path(), s.node}, nodes)
		seen, err := recipes.Inspect(t.Context(), b.Other, "/lock")
		require.NoError(t, err)
		require.Len(t, seen, 2)
		for i, p := range seen {
			require.Equal(t, "lock", p.Kind)
			require.Equal(t, nodes[i], p.Node)
			require.Equal(t, i == 0, p.Holding)
		}
		rw := locktest.ReadWriteLock(t, b.Ours, withKazoo)
		readers, err := rw.ReadLock().ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Empty(t, readers)
		writers, err := rw.WriteLock().ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{s.node}, writers)
		held.Leave()
		s.leaves()
	})
}

// Leases are counted one by one, of which no other library knows.
func TestASemaphoreCountsNoOthers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const says = "WithNames: semaphores count only their own leases"
		_, err := recipes.NewInterProcessSemaphoreV2(b.Ours, "/lock", 1, withKazoo)
		require.ErrorContains(t, err, says)
		_, err = recipes.NewInterProcessSemaphoreMutex(b.Ours, "/lock", withKazoo)
		require.ErrorContains(t, err, says)
	})
}
