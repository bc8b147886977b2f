package lock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// byID returns the kinds of the events of each acquisition, in their order, and requires
// that the events of one are of one lock.
func byID(t *testing.T, events []recipes.Event) map[uint64][]recipes.EventKind {
	t.Helper()
	acquisitions, paths := map[uint64][]recipes.EventKind{}, map[uint64]string{}
	for _, e := range events {
		require.NotZero(t, e.ID)
		if _, known := paths[e.ID]; !known {
			paths[e.ID] = e.Path
		}
		require.Equal(t, paths[e.ID], e.Path, "two acquisitions have one ID")
		acquisitions[e.ID] = append(acquisitions[e.ID], e.Kind)
	}
	return acquisitions
}

func TestEachAcquisitionHasAnID(t *testing.T) {
	for _, k := range slices.Concat(locktest.Kinds, locktest.Elections) {
		locktest.Run(t, k.Name, func(t *testing.T, b *locktest.Bubble) {
			var told locktest.Recorder
			lock := k.MustMake(t, b.Ours, "/lock", recipes.WithObserver(told.Observe))
			members := 1
			if strings.HasPrefix(k.Name, "multi lock") {
				members = 3
			}
			ctx, seen := locktest.Owner(t), map[uint64]bool{}
			for range 3 {
				require.NoError(t, lock.Acquire(ctx))
				require.NoError(t, lock.Release(ctx))
				events := told.All()
				told.Forget()
				acquisitions := byID(t, events)
				require.Len(t, acquisitions, members, "%v", events)
				for id, steps := range acquisitions {
					require.Contains(t, steps, recipes.EventAcquired)
					require.Equal(t, recipes.EventReleased, steps[len(steps)-1])
					require.False(t, seen[id], "another acquisition had this ID")
					seen[id] = true
				}
			}
		})
	}
}

// Two waiters share a ctx, and lose their places: so neither ctx nor Node tells them
// apart.
func TestAnIDOutlastsAPlace(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var told locktest.Recorder
		require.NoError(t, b.Mutex(t, b.Other, "/lock").Acquire(t.Context()))
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithObserver(told.Observe))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var waiting []<-chan error
		for range 2 {
			waiting = append(waiting, locktest.Start(func() error {
				return lock.Acquire(ctx)
			}))
		}
		time.Sleep(time.Second)
		b.Cluster.ExpireSession(b.Ours.SessionID())
		time.Sleep(20 * time.Second)
		cancel()
		for _, ended := range waiting {
			require.ErrorIs(t, <-ended, context.Canceled)
		}
		acquisitions := byID(t, told.All())
		require.Len(t, acquisitions, 2)
		for _, steps := range acquisitions {
			require.Equal(t, []recipes.EventKind{
				recipes.EventQueued, recipes.EventQueued, recipes.EventFailed,
			}, steps)
		}
	})
}

// Leases that are acquired together have one ID, and each its own Node; owners who share
// an entry have one Node, and each its own ID. A loss has the ID of its acquisition.
func TestIDAndNodeTellHoldsApart(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var told locktest.Recorder
		observer := recipes.WithObserver(told.Observe)
		sem := locktest.NewSemaphore(t, b.Ours, "/sem", 3, observer)
		leases, err := sem.AcquireN(t.Context(), 3)
		require.NoError(t, err)
		require.NoError(t, b.Other.Delete(leases[1].Hold().Path(), -1))
		<-leases[1].Lost()
		require.ErrorIs(t, sem.ReturnAll(t.Context(), leases), recipes.ErrNodeDeleted)
		time.Sleep(time.Second)
		ends, ids := map[string][]recipes.EventKind{}, map[uint64]bool{}
		for _, e := range told.All() {
			ids[e.ID] = true
			if e.Kind != recipes.EventQueued {
				ends[e.Node] = append(ends[e.Node], e.Kind)
			}
		}
		require.Len(t, ids, 1)
		require.Len(t, ends, 3)
		for i, lease := range leases {
			want := recipes.EventReleased
			if i == 1 {
				want = recipes.EventLost
			}
			require.Equal(t, []recipes.EventKind{recipes.EventAcquired, want},
				ends[lease.Hold().Path()])
		}

		told.Forget()
		lock := locktest.NewReadWriteLock(
			t, b.Ours, "/lock", observer, recipes.WithCaching(time.Minute, 3))
		first, second := locktest.Owner(t), locktest.Owner(t)
		for _, ctx := range []context.Context{first, second} {
			require.NoError(t, lock.ReadLock().Acquire(ctx))
		}
		reads := lock.ReadLock()
		require.Equal(t, reads.LockPath(first), reads.LockPath(second))
		require.NoError(t, lock.ReadLock().Release(second))
		require.NoError(t, lock.ReadLock().Release(first))
		require.Len(t, byID(t, told.All()), 2)
	})
}

// A multi lock that has lost a member while it waits for another one starts over. The
// members that it has given back keep their znodes, and are acquired again by them: so
// only the ID tells the two acquisitions of such a member apart.
func TestAnIDOfEachTimeThatAMultiLockStartsOver(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var told locktest.Recorder
		paths := []string{"/kept", "/lost", "/awaited"}
		lock := locktest.NewMultiLock(t, b.Ours, paths,
			recipes.WithCaching(time.Minute, 1), recipes.WithObserver(told.Observe))
		other := locktest.VisitLock(t, b.Mutex(t, b.Other, "/awaited"))
		other.Entered()
		visit := locktest.VisitLock(t, lock)
		lost := locktest.Children(t, b.Other, "/lost")
		require.Len(t, lost, 1)
		require.NoError(t, b.Other.Delete("/lost/"+lost[0], -1))
		time.Sleep(time.Second)
		other.Leave()
		visit.Entered()
		visit.Leave()

		kept, nodes := map[uint64][]recipes.EventKind{}, map[string]bool{}
		for _, e := range told.All() {
			if e.Path == "/kept" && e.Kind != recipes.EventQueued {
				kept[e.ID] = append(kept[e.ID], e.Kind)
				nodes[e.Node] = true
			}
		}
		require.Len(t, nodes, 1, "its znode is not kept")
		require.Len(t, kept, 2)
		for _, steps := range kept {
			require.Equal(t, []recipes.EventKind{
				recipes.EventAcquired, recipes.EventReleased,
			}, steps)
		}
	})
}
