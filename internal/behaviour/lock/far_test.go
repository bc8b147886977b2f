package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// farLocks make locks whose path does not exist.
var farLocks = map[string]locktest.Maker{
	"mutex":              locktest.MakeMutex,
	"mutex with caching": cachedMutex,
	"semaphore mutex":    locktest.MakeSemaphoreMutex,
	"leases":             locktest.MakeLeaseLock(2),
	"multi lock": func(
		conn recipes.Conn, path string, _ ...recipes.Option,
	) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMultiLock(conn, []string{path + "/a", path + "/b"})
	},
}

// A try far from the servers took away the parent znodes that it had had time to create,
// and said that ZooKeeper had not answered; so did the next one, for ever.
func TestASingleAttemptFarFromTheServers(t *testing.T) {
	for name, newLock := range farLocks {
		for _, trip := range []time.Duration{
			40 * time.Millisecond, 100 * time.Millisecond, 140 * time.Millisecond,
		} {
			for _, path := range []string{"/a", "/a/b/c/d", "/a/b/c/d/e/f/g/h/i/j"} {
				locktest.Run(t, fmt.Sprint(name, trip, path), func(
					t *testing.T, b *locktest.Bubble,
				) {
					b.Cluster.Link("ours").Delay(trip/2, trip/2)
					lock, err := newLock(b.Ours, path)
					require.NoError(t, err)
					attempts, ctx := 0, locktest.Owner(t)
					for ok := false; !ok; attempts++ {
						began := time.Now()
						ok, err = lock.AcquireTimeout(ctx, 0)
						require.LessOrEqual(t, time.Since(began), time.Second)
						if !ok {
							require.ErrorIs(t, err, recipes.ErrUnavailable)
						}
						if !ok && strings.HasPrefix(name, "mutex") { // one queue
							require.NotContains(t, err.Error(), "no response")
							require.ErrorContains(t, err, "stays for the next")
						}
						require.Less(t, attempts, 3)
						time.Sleep(5 * time.Second)
					}
					require.NoError(t, lock.Release(ctx))
				})
			}
		}
	}
}

// A positive time that is too short makes progress, too, and what it leaves goes by
// itself if there is no next time.
func TestATimeTooShortForTheParentZnodes(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		b.Cluster.Link("ours").Delay(50*time.Millisecond, 50*time.Millisecond)
		lock := b.Mutex(t, b.Ours, "/a/b/c/d")
		err := recipes.Do(
			t.Context(), lock, locktest.Nothing, recipes.WaitAtMost(350*time.Millisecond))
		require.ErrorIs(t, err, recipes.ErrUnavailable)
		time.Sleep(time.Second)
		require.Contains(t, b.Cluster.Znodes(), "/a/b/c/d")
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		require.NoError(t, recipes.Do(ctx, lock, locktest.Nothing))

		ctx, cancel = context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		err = recipes.Do(ctx, b.Mutex(t, b.Ours, "/x/y/z"), locktest.Nothing)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(10 * time.Minute)
		require.NotContains(t, b.Cluster.Znodes(), "/x")
		require.NotContains(t, b.Cluster.Znodes(), "/a")
	})
}

// Whoever cancels wants nothing more: what was created goes at once.
func TestACancelledAcquireTakesItsParentZnodesBack(t *testing.T) {
	const step = 25 * time.Millisecond
	for after := step; after < time.Second; after += step {
		locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
			b.Cluster.Link("ours").Delay(50*time.Millisecond, 50*time.Millisecond)
			owner := locktest.Owner(t)
			ctx, cancel := context.WithCancel(owner)
			time.AfterFunc(after, cancel)
			lock := b.Mutex(t, b.Ours, "/a/b/c/d")
			if lock.Acquire(ctx) == nil {
				require.NoError(t, lock.Release(owner))
			}
			time.Sleep(2 * time.Second)
			exists, _, err := b.Other.Unwrap().Exists("/a/b/c/d")
			require.NoError(t, err)
			if exists { // it had a child, so the servers delete it
				_, stat, err := b.Other.Get("/a/b/c/d")
				require.NoError(t, err)
				require.Positive(t, stat.Cversion, after)
			} else {
				require.NotContains(t, b.Cluster.Znodes(), "/a", after)
			}
		})
	}
}
