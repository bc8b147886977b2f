package lock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// Single attempts that are about to fail neither hold the lock nor wait for it. If they
// came often enough, each met one that had met another one before it, and the free lock
// was busy for ever.
func TestSingleAttemptsAreNotInOneAnothersWay(t *testing.T) {
	const pollers, delay = 10, 20 * time.Millisecond // each way
	locktest.ForAllInBubbles(t, func(
		t *testing.T, b *locktest.Bubble, k locktest.Kind,
	) {
		holder := k.MustMake(t, b.Ours, "/lock")
		ctx := locktest.Owner(t)
		require.NoError(t, holder.Acquire(ctx))
		polling, stop := context.WithCancel(t.Context())
		var won atomic.Bool
		var all sync.WaitGroup
		for i := range pollers {
			name := fmt.Sprint("poller ", i)
			client := locktest.ConnectThrough(t, b.Cluster, name)
			b.Cluster.Link(name).Delay(delay, delay)
			lock := k.MustMakeRival(t, client, "/lock")
			all.Go(func() {
				time.Sleep(time.Duration(i) * 7 * delay / pollers)
				for polling.Err() == nil {
					owner := recipes.WithOwner(context.Background())
					if ok, _ := lock.AcquireTimeout(owner, 0); ok {
						won.Store(true) // it keeps it
						return
					}
					time.Sleep(delay)
				}
			})
		}
		time.Sleep(2 * time.Second)
		require.False(t, won.Load())
		require.NoError(t, holder.Release(ctx))
		time.Sleep(time.Second)
		require.True(t, won.Load(), "nobody holds it, or waits for it")
		stop()
		all.Wait()
	})
}

// One that has got the lock cannot be told from one on its way out: the queue is listed
// again once the latter would have gone.
func TestASingleAttemptBehindAnotherThatHolds(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const roundTrip = 20 * time.Millisecond
		for _, link := range []string{"ours", "other"} {
			b.Cluster.Link(link).Delay(roundTrip/2, roundTrip/2)
		}
		locktest.UseTimes(t, b.Lock, 1)
		other, ctx := b.Mutex(t, b.Other, "/lock"), locktest.Owner(t)
		ok, err := other.AcquireTimeout(ctx, 0)
		require.NoError(t, err)
		require.True(t, ok)
		began := time.Now()
		_, err = recipes.Acquire(t.Context(), b.Lock, recipes.WaitAtMost(0))
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.Contains(t, err.Error(), "1 ahead, behind "+other.LockPath(ctx))
		// its create and a list, twice that time, another list, and its delete
		require.Equal(t, 8*roundTrip, time.Since(began))

		// One of this process is known to hold it.
		began = time.Now()
		mine := b.Mutex(t, b.Other, "/lock")
		_, err = recipes.Acquire(t.Context(), mine, recipes.WaitAtMost(0))
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.LessOrEqual(t, time.Since(began), 2*roundTrip)
		require.Len(t, locktest.Znodes(b), 1)
		require.NoError(t, other.Release(ctx))
	})
}

// A single attempt behind another one that holds the lock is over soon, too, where it
// shares a cached entry; the owners that wait for that entry wait on.
func TestACachedSingleAttemptBehindOneThatHolds(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		b.Cluster.Link("ours").Delay(time.Millisecond, time.Millisecond)
		cached := locktest.NewMutex(t, b.Ours, "/lock", recipes.WithCaching(0, 1))
		try := func() (took time.Duration) {
			began := time.Now()
			held, err := cached.AcquireTimeout(locktest.Owner(t), 0)
			require.NoError(t, err)
			require.False(t, held)
			return time.Since(began)
		}
		holder, ctx := locktest.NewMutex(t, b.Other, "/lock"), locktest.Owner(t)
		held, err := holder.AcquireTimeout(ctx, 0)
		require.NoError(t, err)
		require.True(t, held)
		require.Less(t, try(), 50*time.Millisecond)
		waiter := locktest.Owner(t)
		waits := locktest.Start(func() error { return cached.Acquire(waiter) })
		time.Sleep(time.Minute)
		require.Less(t, try(), 50*time.Millisecond)
		require.Empty(t, waits)
		require.NoError(t, holder.Release(ctx))
		require.NoError(t, <-waits)
	})
}
