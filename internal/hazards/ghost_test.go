package hazards_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A waiter whose znode was deleted by a stranger acquired without any znode, and so did
// the next: two holders (zk.Lock). It has to join the queue anew, at the tail.

// rejoins checks that the waiter, whose first znode was deleted, has joined anew behind
// all others and did not acquire.
func (s *scene) rejoins(t *testing.T, participants int) {
	t.Helper()
	first, second := s.steps.Nth(
		t, recipes.EventQueued, 1,
	).Node, s.steps.Nth(t, recipes.EventQueued, 2).Node
	require.NotEqual(t, first, second)
	children := s.other.AwaitChildren(s.path, participants)
	require.Equal(t, second, s.path+"/"+children[len(children)-1], "not at the tail")
	require.NotContains(t, s.steps.Kinds(), recipes.EventAcquired)
}

func TestHazardA2_GhostBehindOneHolder(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		leave := s.occupy(t)
		done := s.acquire()
		s.delete(t, s.steps.Nth(t, recipes.EventQueued, 1).Node)
		s.rejoins(t, 2)
		leave()
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		s.holdsAlone(t)
	})
}

func TestHazardA2_GhostBehindAHolderOfTheSameProcess(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		holder, ctx := s.Mutex(s.path), locktest.Owner(t)
		require.NoError(t, holder.Acquire(ctx))
		done := s.acquire()
		s.delete(t, s.steps.Nth(t, recipes.EventQueued, 1).Node)
		s.rejoins(t, 2)
		require.NoError(t, holder.Release(ctx))
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		s.holdsAlone(t)
	})
}

// Behind several, while the queue moves as well.
func TestHazardA2_GhostBehindSeveral(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		leave := s.occupy(t)
		ctx, cancel := context.WithCancel(locktest.Owner(t))
		ahead := locktest.Start(func() error {
			return s.other.Mutex(s.path).Acquire(ctx)
		})
		s.other.AwaitChildren(s.path, 2)
		done := s.acquire()
		node := s.steps.Nth(t, recipes.EventQueued, 1).Node
		behindCtx := locktest.Owner(t)
		behindLock := s.other.Mutex(s.path)
		behind := locktest.Start(func() error { return behindLock.Acquire(behindCtx) })
		s.other.AwaitChildren(s.path, 4)
		s.delete(t, node)
		cancel()
		require.ErrorIs(
			t, locktest.Within(t, ahead, "Acquire does not heed its ctx"),
			context.Canceled,
		)
		s.rejoins(t, 3)
		leave()
		require.NoError(
			t, locktest.Within(t, behind, "the next in the queue does not get the lock"),
		)
		require.NotContains(t, s.steps.Kinds(), recipes.EventAcquired)
		require.NoError(t, behindLock.Release(behindCtx))
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		s.holdsAlone(t)
	})
}

// Its znode and the holder's go in one transaction: it is told both at once, or has not
// yet set a watch on its own.
func TestHazardA2_GhostAtTheHandOver(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		for range 20 {
			s.steps.Forget()
			holder := s.put(t, "lock-", zk.FlagEphemeral|zk.FlagSequence)
			done := s.acquire()
			node := s.steps.Nth(t, recipes.EventQueued, 1).Node
			_, err := s.other.Conn.Multi(&zk.DeleteRequest{
				Path: node, Version: -1,
			}, &zk.DeleteRequest{Path: holder, Version: -1})
			require.NoError(t, err)
			require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
			require.NotEqual(
				t, node, s.steps.Nth(t, recipes.EventAcquired, 1).Node,
				"it acquired without any znode",
			)
			s.holdsAlone(t)
		}
	})
}

// The same, with a holder of the same process: what it lost it has not handed over.
func TestHazardA2_GhostWithAHolderOfTheSameProcess(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		for range 20 {
			s.steps.Forget()
			holder, ctx := s.Mutex(s.path), locktest.Owner(t)
			require.NoError(t, holder.Acquire(ctx))
			hold := holder.Hold(ctx)
			done := s.acquire()
			node := s.steps.Nth(t, recipes.EventQueued, 1).Node
			_, err := s.other.Conn.Multi(&zk.DeleteRequest{
				Path: node, Version: -1,
			}, &zk.DeleteRequest{Path: hold.Path(), Version: -1})
			require.NoError(t, err)
			locktest.Within(t, hold.Lost(), "Lost is not told")
			require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
			require.NotEqual(
				t, node, s.steps.Nth(t, recipes.EventAcquired, 1).Node,
				"it acquired without any znode",
			)
			require.ErrorIs(t, holder.Release(ctx), recipes.ErrLockLost)
			s.holdsAlone(t)
		}
	})
}

// A reconnect tells what was missed in any order. A waiter whose own znode and the one
// ahead went meanwhile must not take the second event, where it comes first, for its
// turn.
func TestHazardE17_MissedEventsInAnyOrder(t *testing.T) {
	for range 20 {
		locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
			ahead, ctx := b.Mutex(t, b.Other, "/lock"), locktest.Owner(t)
			require.NoError(t, ahead.Acquire(ctx))
			ours := locktest.Owner(t)
			granted := locktest.Start(func() error { return b.Lock.Acquire(ours) })
			time.Sleep(time.Minute) // it watches both
			nodes := locktest.Children(t, b.Other, "/lock")
			slices.SortFunc(nodes, locktest.BySequence)
			require.Len(t, nodes, 2)

			link := b.Cluster.Link("ours")
			link.Cut()
			require.NoError(t, b.Other.Delete("/lock/"+nodes[1], -1))
			require.NoError(t, ahead.Release(ctx))
			link.Heal()
			require.NoError(t, <-granted)
			require.NotEqual(
				t, "/lock/"+nodes[1], b.Lock.LockPath(ours), "a hold of nothing",
			)
			require.NoError(t, b.Lock.Release(ours))
		})
	}
}
