package lock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A single is a single attempt, and the one that the lock's queue has seen before.
type single struct {
	before, attempt recipes.InterProcessLock
}

// besideCached are the single attempts that find a cached entry in the way that another
// lock has left.
var besideCached = map[string]func(t *testing.T, b *locktest.Bubble) single{
	"to write, where one reads, by one value": func(
		t *testing.T, b *locktest.Bubble,
	) single {
		t.Helper()
		rw := locktest.ReadWriteLock(t, b.Ours, recipes.WithCaching(locktest.LongIdle, 5))
		return single{rw.ReadLock(), rw.WriteLock()}
	},
	"to read, where one writes, by one value": func(
		t *testing.T, b *locktest.Bubble,
	) single {
		t.Helper()
		rw := locktest.ReadWriteLock(t, b.Ours, recipes.WithCaching(locktest.LongIdle, 5))
		return single{rw.WriteLock(), rw.ReadLock()}
	},
	"by another value, without the option": func(
		t *testing.T, b *locktest.Bubble,
	) single {
		t.Helper()
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		return single{b.Mutex(t, b.Ours, "/lock", caching), b.Lock}
	},
	"by another process": func(t *testing.T, b *locktest.Bubble) single {
		t.Helper()
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		return single{b.Mutex(t, b.Other, "/lock", caching), b.Lock}
	},
	"by another process that caches": func(t *testing.T, b *locktest.Bubble) single {
		t.Helper()
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		return single{
			b.Mutex(t, b.Other, "/lock", caching), b.Mutex(t, b.Ours, "/lock", caching),
		}
	},
	"to write, by another process": func(t *testing.T, b *locktest.Bubble) single {
		t.Helper()
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		return single{
			locktest.ReadWriteLock(t, b.Other, caching).ReadLock(),
			locktest.ReadWriteLock(t, b.Ours).WriteLock(),
		}
	},
	"of a multi lock": func(t *testing.T, b *locktest.Bubble) single {
		t.Helper()
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		return single{
			b.Mutex(t, b.Other, "/lock", caching),
			recipes.NewInterProcessMultiLockOf(b.Mutex(t, b.Ours, "/a"), b.Lock),
		}
	},
}

// Nobody holds the lock or waits for it: the entry is asked to leave, and does. All said
// busy.
func TestASingleAttemptBesideAnIdleEntry(t *testing.T) {
	for name, newSingle := range besideCached {
		for _, delay := range []time.Duration{0, 40 * time.Millisecond} {
			locktest.Run(t, name+", each way "+delay.String(), func(
				t *testing.T, b *locktest.Bubble,
			) {
				s := newSingle(t, b)
				b.Cluster.Link("ours").Delay(delay, delay)
				b.Cluster.Link("other").Delay(delay, delay)
				for range 20 {
					locktest.UseTimes(t, s.before, 1)
					time.Sleep(time.Second)
					ctx, began := locktest.Owner(t), time.Now()
					ok, err := s.attempt.AcquireTimeout(ctx, 0)
					require.NoError(t, err)
					require.True(t, ok, "nobody holds it, or waits for it")
					require.Less(t, time.Since(began), time.Second)
					require.NoError(t, s.attempt.Release(ctx))
				}
			})
		}
	}
}

// An entry that is in use does not leave: the attempt finds that out within its second,
// at once if the entry is of this process.
func TestASingleAttemptBesideAnEntryInUse(t *testing.T) {
	for name, newSingle := range besideCached {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			s := newSingle(t, b)
			holder := locktest.VisitLock(t, s.before)
			hold, began := holder.Entered(), time.Now()
			ok, err := s.attempt.AcquireTimeout(locktest.Owner(t), 0)
			require.NoError(t, err)
			require.False(t, ok)
			require.Less(t, time.Since(began), time.Second)
			if name == "by another value, without the option" {
				require.Zero(t, time.Since(began), "it is known to be in use")
			}
			time.Sleep(locktest.Settle)
			require.Equal(t, []string{hold.Path()}, locktest.Znodes(b))
			require.NoError(t, hold.Err())
			holder.Leave()
		})
	}
}

// Whoever holds the lock without caching it is not waited for, not even if it leaves
// within the second.
func TestASingleAttemptWaitsForNoHolder(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		holder := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		holder.Entered()
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		for _, opts := range [][]recipes.Option{nil, {caching}} {
			began := time.Now()
			lock := b.Mutex(t, b.Ours, "/lock", opts...)
			ok, err := lock.AcquireTimeout(locktest.Owner(t), 0)
			require.NoError(t, err)
			require.False(t, ok)
			require.Zero(t, time.Since(began))
		}
		waiting := locktest.VisitLock(t, b.Mutex(t, b.Ours, "/lock", caching))
		third := locktest.ConnectThrough(t, b.Cluster, "third")
		began := time.Now()
		ok, err := b.Mutex(t, third, "/lock").AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, time.Since(began), "the one right ahead waits, too")
		holder.Leave()
		waiting.Entered()
		waiting.Leave()
	})
}

// Somebody who waits comes first, also behind an entry that nobody uses.
func TestASingleAttemptBehindOneThatWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const delay = 100 * time.Millisecond
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		locktest.UseTimes(t, b.Mutex(t, b.Other, "/lock", caching), 1)
		time.Sleep(time.Second)
		b.Cluster.Link("other").Delay(delay, delay)
		ctx := locktest.Owner(t)
		done := locktest.Start(func() error { return b.Lock.Acquire(ctx) })
		time.Sleep(delay / 2) // it is in the queue, and the entry has not heard of it
		require.Len(t, locktest.Znodes(b), 2)
		ok, err := b.Mutex(t, b.Ours, "/lock").AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, <-done)
		require.NoError(t, b.Lock.Release(ctx))
	})
}

// An owner that has to wait for a list, since others may have come, waits for nobody.
func TestASingleAttemptWhileItIsNotKnownWhoWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		b.Cluster.Link("ours").Delay(20*time.Millisecond, 20*time.Millisecond)
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 1))
		for range 20 {
			locktest.UseTimes(t, lock, 2)
			ctx := locktest.Owner(t)
			ok, err := lock.AcquireTimeout(ctx, 0)
			require.NoError(t, err)
			require.True(t, ok, "nobody holds it, or waits for it")
			require.NoError(t, lock.Release(ctx))
			require.NoError(t, b.Other.Delete(locktest.Znodes(b)[0], -1))
			time.Sleep(time.Second)
		}
	})
}
