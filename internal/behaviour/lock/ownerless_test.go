package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

const lookalike = "/lock/lock-0000000001"

// directories make a directory whose name looks like a participant's, in a lock's path.
var directories = map[string]func(t *testing.T, b *locktest.Bubble){
	"another lock's path, idle": func(t *testing.T, b *locktest.Bubble) {
		t.Helper()
		locktest.UseTimes(t, b.Mutex(t, b.Other, lookalike), 1)
	},
	"another lock's path, held": func(t *testing.T, b *locktest.Bubble) {
		t.Helper()
		require.NoError(t, b.Mutex(t, b.Other, lookalike).Acquire(locktest.Owner(t)))
	},
	"a job's": func(t *testing.T, b *locktest.Bubble) {
		t.Helper()
		for _, path := range []string{"/lock", lookalike, lookalike + "/progress"} {
			_, err := b.Other.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
	},
}

// A directory is no participant, whatever its name: it blocked the lock forever.
func TestADirectoryIsNoParticipant(t *testing.T) {
	for name, create := range directories {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			create(t, b)
			all, err := b.Lock.Participants(t.Context())
			require.NoError(t, err)
			require.Empty(t, all)

			ctx, cancel := context.WithTimeout(locktest.Owner(t), time.Minute)
			defer cancel()
			require.NoError(t, b.Lock.Acquire(ctx))
			waiting := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
			require.False(t, waiting.Holds())
			all, err = b.Lock.Participants(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 2)
			require.True(t, all[0].Holding)
			require.False(t, all[1].Holding)
			require.NoError(t, b.Lock.Release(ctx))
			waiting.Entered()
			waiting.Leave()

			rivals := []recipes.InterProcessLock{
				b.Lock, b.Mutex(t, b.Other, "/lock"), b.Mutex(t, b.Ours, "/lock",
					recipes.WithCaching(locktest.LongIdle, 1)),
			}
			for _, rival := range append(rivals, rivals...) {
				owner := locktest.Owner(t)
				ok, err := rival.AcquireTimeout(owner, 0)
				require.NoError(t, err)
				require.True(t, ok, "nobody holds it, or waits for it")
				require.NoError(t, rival.Release(owner))
			}
		})
	}
}

// The same of an election, for those who look at it.
func TestADirectoryIsNoLeader(t *testing.T) {
	for name, create := range directories {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			create(t, b)
			s, err := recipes.NewLeaderSelector(b.Ours, "/lock")
			require.NoError(t, err)
			_, leads, err := s.Leader(t.Context())
			require.NoError(t, err)
			require.False(t, leads)
			var seen []bool
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			go func() {
				time.Sleep(10 * time.Second)
				locktest.UseTimes(t, b.Mutex(t, b.Other, "/lock"), 1)
			}()
			for leader, err := range s.Leaders(ctx) {
				require.NoError(t, err)
				seen = append(seen, leader.Node != "")
			}
			require.False(t, seen[0])
			require.False(t, seen[len(seen)-1])
		})
	}
}

// Nobody will remove a znode that no session owns: whoever waits behind it is told so.
func TestAZnodeOfNoSessionInFront(t *testing.T) {
	for name, opts := range map[string][]recipes.Option{
		"without caching": nil,
		"with caching":    {recipes.WithCaching(locktest.LongIdle, 1)},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			const node = "/lock/" +
				"_c_0b2d2e5c-3b0b-4a0f-8f0b-1e6f1e7a9c55-lock-0000000000"
			world := zk.WorldACL(zk.PermAll)
			for _, path := range []string{"/lock", node} {
				_, err := b.Other.Create(path, []byte("x"), 0, world)
				require.NoError(t, err)
			}
			const says = "which belongs to no session: nobody will remove it"
			lock := b.Mutex(t, b.Ours, "/lock", opts...)
			err := recipes.Do(
				t.Context(), lock, locktest.Nothing, recipes.WaitAtMost(time.Minute))
			require.ErrorIs(t, err, recipes.ErrBusy)
			require.ErrorContains(t, err, "1 ahead, behind "+node+", "+says)
			ok, err := lock.AcquireTimeout(locktest.Owner(t), 0)
			require.NoError(t, err)
			require.False(t, ok)

			s, err := recipes.NewLeaderSelector(b.Ours, "/lock")
			require.NoError(t, err)
			leader, leads, err := s.Leader(t.Context())
			require.NoError(t, err)
			require.True(t, leads)
			require.Zero(t, leader.Session)
			require.Contains(t, leader.String(), "no session: nobody will remove it")

			ctx := locktest.Owner(t)
			waits := locktest.Start(func() error { return lock.Acquire(ctx) })
			time.Sleep(time.Second)
			require.NoError(t, b.Other.Delete(node, -1))
			require.NoError(t, <-waits)
			require.NoError(t, lock.Release(ctx))
		})
	}
}
