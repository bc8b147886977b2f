package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A multi lock's Release took a second in an outage for each member beyond the first.
func TestAnOutageCostsAReleaseOneSecondInAll(t *testing.T) {
	for name, c := range map[string]struct {
		end     time.Duration // when ctx is done; 0: before
		atLeast time.Duration
	}{
		"done before": {0, 0},
		"done midway": {300 * time.Millisecond, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zktest.Start(t)
				client := locktest.ConnectThrough(t, server, "ours")
				nested, err := recipes.NewInterProcessMultiLock(client, []string{"/a", "/b", "/c"})
				require.NoError(t, err)
				mutex, err := recipes.NewInterProcessSemaphoreMutex(client, "/d")
				require.NoError(t, err)
				lock := recipes.NewInterProcessMultiLockOf(nested, mutex)
				owner := locktest.Owner(t)
				require.NoError(t, lock.Acquire(owner))
				server.Link("ours").Stall(zktest.ToServer | zktest.ToClient)

				ctx, cancel := context.WithTimeoutCause(owner, c.end, errChangedMind)
				defer cancel()
				if c.end == 0 {
					<-ctx.Done()
				}
				began := time.Now()
				err = lock.Release(ctx)
				took := time.Since(began)
				require.ErrorIs(t, err, errChangedMind)
				for _, path := range []string{"/a", "/b", "/c", "/d/leases"} {
					require.ErrorContains(t, err, "not confirmed yet, "+path)
				}
				require.LessOrEqual(t, took, time.Second)
				require.GreaterOrEqual(t, took, c.atLeast)
				require.False(t, lock.IsAcquiredInThisProcess())
				server.Link("ours").Heal()
				time.Sleep(5 * time.Second)
				for _, node := range server.Znodes() {
					require.NotContains(t, node, "_c_", "it is deleted in the background")
				}
			})
		})
	}
}

// With a round trip of 100 ms four members take one, and not four.
func TestAMultiLockReleasesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		client := locktest.ConnectThrough(t, server, "ours")
		lock, err := recipes.NewInterProcessMultiLock(client, []string{"/a", "/b", "/c", "/d"})
		require.NoError(t, err)
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		server.Link("ours").Delay(50*time.Millisecond, 50*time.Millisecond)
		began := time.Now()
		require.NoError(t, lock.Release(ctx))
		require.Less(t, time.Since(began), 150*time.Millisecond)
	})
}

// A lockThatLogs embeds one of ours and has a Release of its own, which counts.
type lockThatLogs struct {
	*recipes.InterProcessMutex
	released *int
}

func (l lockThatLogs) Release(ctx context.Context) error {
	*l.released++
	return l.InterProcessMutex.Release(ctx)
}

func TestAMultiLockCallsTheReleaseOfItsMember(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		released, ctx := 0, locktest.Owner(t)
		lock := recipes.NewInterProcessMultiLockOf(lockThatLogs{s.Lock, &released})
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		require.Equal(t, 1, released)
	})
}

// The multi lock's token outruns that of the next holder of one member, who joined that
// member's queue before the multi lock joined the last one's. The member's own does not.
func TestAMembersTokenGrowsWithItsHolders(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		b, next := s.Mutex(t, s.Other, "/b"), s.Mutex(t, s.Other, "/lock")
		multi := recipes.NewInterProcessMultiLockOf(
			s.Lock, s.Mutex(t, s.Ours, "/b"), s.Mutex(t, s.Ours, "/c"))
		ctx, others, later := locktest.Owner(t), locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, b.Acquire(others))
		held := locktest.Start(func() error { return multi.Acquire(ctx) }) // has /lock, waits for /b
		time.Sleep(time.Second)
		granted := locktest.Start(func() error { return next.Acquire(later) })
		time.Sleep(time.Second)
		require.NoError(t, b.Release(others))
		require.NoError(t, <-held)
		all, member := multi.Hold(ctx), multi.Holds(ctx)[0]
		require.NoError(t, multi.Release(ctx))
		require.NoError(t, <-granted)
		token := next.Hold(later).FencingToken()
		require.Greater(t, all.FencingToken(), token, "so a store of /lock cannot take it")
		require.Less(t, member.FencingToken(), token)
	})
}

// A shared maximum below n is looked at first: nobody is kept waiting by znodes that cannot
// be granted.
func TestAcquireNWaitsForASharedMaximumWithoutZnodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		client := locktest.ConnectThrough(t, server, "ours")
		set := func(most int) {
			t.Helper()
			require.NoError(t, recipes.SetSharedCount(t.Context(), client, "/count", most))
			time.Sleep(time.Second)
		}
		nodes := func() (nodes []string) {
			for _, dir := range []string{"/s/locks", "/s/leases"} {
				children, _, err := client.Children(dir)
				if err == nil {
					nodes = append(nodes, children...)
				}
			}
			return nodes
		}
		set(2)
		s, err := recipes.NewInterProcessSemaphoreV2Shared(client, "/s", "/count")
		require.NoError(t, err)
		var leases []*recipes.Lease
		many := locktest.Start(func() (err error) {
			leases, err = s.AcquireN(t.Context(), 1000)
			return err
		})
		time.Sleep(time.Second)
		require.Empty(t, nodes())
		began := time.Now()
		none, err := s.AcquireTimeout(t.Context(), 3, 0)
		require.NoError(t, err)
		require.Nil(t, none)
		none, err = s.AcquireTimeout(t.Context(), 3, time.Second)
		require.NoError(t, err)
		require.Nil(t, none)
		require.Less(t, time.Since(began), 2*time.Second)

		one, err := s.AcquireTimeout(t.Context(), 2, 0)
		require.NoError(t, err)
		require.Len(t, one, 2, "others need not wait meanwhile")
		set(1001)
		require.Empty(t, many, "two are out")
		require.Len(t, nodes(), 1000+1+2)
		set(5)
		require.Len(t, nodes(), 2, "the maximum is lower again")
		set(1000)
		require.NoError(t, s.ReturnAll(t.Context(), one))
		require.NoError(t, <-many)
		require.NoError(t, s.ReturnAll(t.Context(), leases))

		server.Link("ours").Cut()
		giving, cancel := context.WithTimeoutCause(t.Context(), time.Second, errChangedMind)
		defer cancel()
		_, err = s.AcquireN(giving, 2000)
		require.ErrorIs(t, err, errChangedMind)
		server.Link("ours").Heal()
		time.Sleep(time.Second)
		require.NoError(t, client.Delete("/count", -1))
		_, err = s.AcquireN(t.Context(), 2)
		require.ErrorContains(t, err, "shared count /count")
	})
}

// A semaphore mutex that was lost does not tell it at the next Acquire: its multi lock does,
// instead of waiting for itself.
func TestAMultiLockWithALostSemaphoreMutexIsNotReentered(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		mutex, err := recipes.NewInterProcessSemaphoreMutex(s.Ours, "/s")
		require.NoError(t, err)
		multi, ctx := recipes.NewInterProcessMultiLockOf(s.Lock, mutex), locktest.Owner(t)
		require.NoError(t, multi.Acquire(ctx))
		s.Lose(t, mutex.Hold(ctx))
		ok, err := multi.AcquireTimeout(ctx, time.Second)
		require.False(t, ok)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorIs(t, multi.Release(ctx), recipes.ErrLockLost)
		require.NoError(t, multi.Acquire(ctx))
		require.NoError(t, multi.Release(ctx))
	})
}

// Who may not release is told whether somebody else may.
func TestErrNotOwnerTellsWhetherAnybodyHoldsTheLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		holder, stranger := locktest.Owner(t), locktest.Owner(t)
		const nobody, another = "nobody holds it through this value", "another owner acquired it through this value"
		says := func(lock recipes.InterProcessLock, text string) {
			err := lock.Release(stranger)
			require.ErrorIs(t, err, recipes.ErrNotOwner)
			require.ErrorContains(t, err, text)
		}
		says(s.Lock, nobody)
		require.NoError(t, s.Lock.Acquire(holder))
		says(s.Lock, another)
		says(s.Mutex(t, s.Ours, "/lock"), nobody)
		s.Lose(t, s.Lock.Hold(holder))
		says(s.Lock, another)
		require.ErrorIs(t, s.Lock.Release(holder), recipes.ErrLockLost)
		says(s.Lock, nobody)
		mutex, err := recipes.NewInterProcessSemaphoreMutex(s.Ours, "/s")
		require.NoError(t, err)
		says(mutex, nobody)
	})
}
