package recipes_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

const maxHold = 5 * time.Second

// Every hold ends by itself, and the lock passes on: at once, or once the margin is over.
func TestAHoldEndsByItself(t *testing.T) {
	for name, d := range map[string]time.Duration{
		"without a margin": 0, "with a margin": margin,
	} {
		t.Run(name, func(t *testing.T) {
			forAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k kind) {
				endsByItself(t, b, k, d)
			})
		})
	}
}

func endsByItself(t *testing.T, b *locktest.Bubble, k kind, d time.Duration) {
	t.Helper()
	ctx := locktest.Owner(t)
	lock, err := k.make(b.Ours, "/lock",
		recipes.WithMaxHold(maxHold), recipes.WithLossMargin(d))
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, lock.Acquire(ctx))
	reentrant := !strings.Contains(k.recipe, "semaphore")
	var granted []<-chan error
	for _, conn := range []recipes.Conn{b.Ours, b.Other} {
		rival, err := k.makeRival(conn, "/lock")
		require.NoError(t, err)
		granted = append(granted, locktest.Start(func() error {
			return recipes.Do(locktest.Owner(t), rival, func(
				context.Context, *recipes.Hold,
			) error {
				passed := time.Since(began)
				require.GreaterOrEqual(t, passed, maxHold+d)
				require.Less(t, passed, maxHold+d+settle)
				return nil
			})
		}))
		time.Sleep(settle)
	}
	if reentrant { // which renews nothing
		require.NoError(t, lock.Acquire(ctx))
	}
	<-lost(ctx, lock)
	require.InDelta(t, maxHold, time.Since(began), float64(settle/10))
	require.False(t, lock.IsAcquiredInThisProcess())
	for _, hold := range holdsOf(ctx, lock)[:1] {
		<-hold.Lost() // another part of a multi lock may have been the first
		requireExpired(t, hold.Err())
		_, err := hold.Multi()
		requireExpired(t, err)
		_, err = b.Ours.Multi(hold.Check())
		require.Error(t, err)
	}
	if reentrant {
		requireExpired(t, lock.Acquire(ctx))
		requireExpired(t, lock.Release(ctx))
	}
	requireExpired(t, lock.Release(ctx))
	for _, g := range granted {
		require.NoError(t, <-g)
	}
	require.NoError(t, lock.Acquire(ctx), "the owner is none the worse")
	require.NoError(t, lock.Release(ctx))
	time.Sleep(time.Hour)
	require.Empty(t, znodes(b))
}

func requireExpired(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, recipes.ErrHoldExpired)
	require.ErrorIs(t, err, recipes.ErrLockLost)
}

// A hold that is released in time does not end any more, and the next has all of its own.
func TestAHoldEndsAtItsOwnTime(t *testing.T) {
	forAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k kind) {
		lock, err := k.make(b.Ours, "/lock", recipes.WithMaxHold(maxHold))
		require.NoError(t, err)
		ctx := locktest.Owner(t)
		var before []*recipes.Hold
		for range 5 {
			require.NoError(t, lock.Acquire(ctx))
			before = append(before, holdsOf(ctx, lock)...)
			time.Sleep(maxHold - settle)
			require.True(t, lock.IsAcquiredInThisProcess())
			require.NoError(t, lock.Release(ctx))
		}
		time.Sleep(time.Hour)
		for _, hold := range before {
			require.NoError(t, hold.Err())
		}
	})
}

// A check that was taken before passes for as long as the znode is there, which keeps
// others out; one that is taken after that does not.
func TestTheCheckOfAHoldThatHasEnded(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		held := visitLock(t, b.Mutex(t, b.Ours, "/lock",
			recipes.WithMaxHold(maxHold), recipes.WithLossMargin(margin)))
		hold := held.entered()
		before := hold.Check()
		<-hold.Lost()
		_, err := b.Ours.Multi(before)
		require.NoError(t, err)
		_, err = b.Ours.Multi(hold.Check())
		require.ErrorIs(t, err, zk.ErrBadVersion)
		time.Sleep(margin + settle)
		for _, check := range []*zk.CheckVersionRequest{before, hold.Check()} {
			_, err = b.Ours.Multi(check)
			require.ErrorIs(t, err, zk.ErrNoNode)
		}
	})
}

// Owners of a kept place have each their time; the place ends with the first that is
// over, and the next in this process waits for the margin as others do.
func TestAKeptPlaceEndsWithAHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 3),
			recipes.WithMaxHold(maxHold), recipes.WithLossMargin(margin))
		first := use(t, lock)
		time.Sleep(time.Minute) // idle
		held := visitLock(t, lock)
		require.Equal(t, first.Path(), held.hold().Path())
		next := visitLock(t, lock)
		<-held.hold().Lost()
		at := time.Now()
		require.NoError(t, first.Err(), "it was released before")
		granted := next.entered()
		require.GreaterOrEqual(t, time.Since(at), margin)
		require.NotEqual(t, first.Path(), granted.Path())
		requireExpired(t, lock.Release(held.ctx))
		next.leave()
	})
}

// Readers who are in a place together have each their time. The place goes with the last
// of them, and not before the margin of each is over.
func TestReadersEndEachAtHisTime(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		read := cachedRW(t, b.Ours, recipes.WithCaching(longIdle, 1),
			recipes.WithMaxHold(maxHold), recipes.WithLossMargin(margin)).ReadLock()
		first := visitLock(t, read)
		first.entered()
		time.Sleep(maxHold / 2)
		second := visitLock(t, read)
		require.Equal(t, first.hold().Path(), second.hold().Path())
		writers := map[recipes.Conn]*visit{}
		for _, conn := range []recipes.Conn{b.Ours, b.Other} {
			writers[conn] = visitLock(t, cachedRW(t, conn).WriteLock())
		}
		<-first.hold().Lost()
		at := time.Now()
		requireExpired(t, first.hold().Err())
		require.NoError(t, second.hold().Err(), "its own time is not over")
		released := locktest.Start(func() error { return read.Release(second.ctx) })
		writers[b.Ours].entered()
		require.GreaterOrEqual(t, time.Since(at), margin)
		require.NoError(t, <-released)
		writers[b.Ours].leave()
		writers[b.Other].entered()
		writers[b.Other].leave()
		requireExpired(t, read.Release(first.ctx))
	})
}

// A member of a multi lock that has ended is the end of all of it.
func TestAMultiLockEndsWithAMember(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		short := b.Mutex(t, b.Ours, "/short", recipes.WithMaxHold(maxHold))
		multi := recipes.NewInterProcessMultiLockOf(b.Lock, short)
		ctx := locktest.Owner(t)
		err := recipes.Do(ctx, multi, func(ctx context.Context, _ *recipes.Hold) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		requireExpired(t, err)
		time.Sleep(settle) // nobody waits for the delete of what was lost
		require.Empty(t, znodes(b))
	})
}

// The end that was planned for a hold is forgotten with one that is lost before.
func TestAHoldThatIsLostIsLetGo(t *testing.T) {
	for name, opts := range map[string][]recipes.Option{
		"alone": nil, "of a kept place": {recipes.WithCaching(longIdle, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				use := visitLock(t, b.Mutex(t, b.Ours, "/other")) // of the connection
				opts := append(opts, recipes.WithMaxHold(24*time.Hour))
				lost := loseOne(t, b, b.Mutex(t, b.Ours, "/lock", opts...))
				time.Sleep(time.Minute)
				runtime.GC()
				require.Nil(t, lost.Value())
				use.leave()
			})
		})
	}
}

func loseOne(
	t *testing.T, b *locktest.Bubble, lock *recipes.InterProcessMutex,
) weak.Pointer[recipes.Hold] {
	t.Helper()
	ctx := locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	hold := lock.Hold(ctx)
	b.Lose(t, hold)
	require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
	return weak.Make(hold)
}
