package hold_test

import (
	"context"
	"errors"
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
			locktest.ForAllInBubbles(t, func(
				t *testing.T, b *locktest.Bubble, k locktest.Kind,
			) {
				endsByItself(t, b, k, d)
			})
		})
	}
}

func endsByItself(t *testing.T, b *locktest.Bubble, k locktest.Kind, d time.Duration) {
	t.Helper()
	ctx := locktest.Owner(t)
	lock := k.MustMake(t, b.Ours, "/lock",
		recipes.WithMaxHold(maxHold), recipes.WithLossMargin(d))
	began := time.Now()
	require.NoError(t, lock.Acquire(ctx))
	reentrant := !strings.Contains(k.Recipe, "semaphore")
	var granted []<-chan error
	for _, conn := range []recipes.Conn{b.Ours, b.Other} {
		rival := k.MustMakeRival(t, conn, "/lock")
		granted = append(granted, locktest.Start(func() error {
			return recipes.Do(locktest.Owner(t), rival, func(
				context.Context, *recipes.Hold,
			) error {
				passed := time.Since(began)
				require.GreaterOrEqual(t, passed, maxHold+d)
				require.Less(t, passed, maxHold+d+locktest.Settle)
				return nil
			})
		}))
		time.Sleep(locktest.Settle)
	}
	if reentrant { // which renews nothing
		require.NoError(t, lock.Acquire(ctx))
	}
	<-locktest.Lost(ctx, lock)
	require.InDelta(t, maxHold, time.Since(began), float64(locktest.Settle/10))
	require.False(t, lock.IsAcquiredInThisProcess())
	for _, hold := range locktest.HoldsOf(ctx, lock)[:1] {
		<-hold.Lost() // another part of a multi lock may have been the first
		requireExpired(t, hold.Err())
		_, err := hold.Multi()
		requireExpired(t, err)
		_, err = b.Ours.Multi(hold.CheckOp())
		if d > 0 || !errors.Is(err, zk.ErrNoNode) { // it stays for the margin
			require.ErrorIs(t, err, zk.ErrBadVersion)
		}
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
	require.Empty(t, locktest.Znodes(b))
}

func requireExpired(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, recipes.ErrHoldExpired)
	require.ErrorIs(t, err, recipes.ErrLockLost)
}

// A hold that is released in time does not end any more, and the next has all of its own.
func TestAHoldEndsAtItsOwnTime(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock", recipes.WithMaxHold(maxHold))
		ctx := locktest.Owner(t)
		var before []*recipes.Hold
		for range 5 {
			require.NoError(t, lock.Acquire(ctx))
			before = append(before, locktest.HoldsOf(ctx, lock)...)
			time.Sleep(maxHold - locktest.Settle)
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
		held := locktest.VisitLock(t, b.Mutex(t, b.Ours, "/lock",
			recipes.WithMaxHold(maxHold), recipes.WithLossMargin(margin)))
		hold := held.Entered()
		before := hold.CheckOp()
		<-hold.Lost()
		_, err := b.Ours.Multi(before)
		require.NoError(t, err)
		_, err = b.Ours.Multi(hold.CheckOp())
		require.ErrorIs(t, err, zk.ErrBadVersion)
		time.Sleep(margin + locktest.Settle)
		for _, check := range []*zk.CheckVersionRequest{before, hold.CheckOp()} {
			_, err = b.Ours.Multi(check)
			require.ErrorIs(t, err, zk.ErrNoNode)
		}
	})
}

// Owners of a kept place have each their time; the place ends with the first that is
// over, and the next in this process waits for the margin as others do.
func TestAKeptPlaceEndsWithAHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 3),
			recipes.WithMaxHold(maxHold), recipes.WithLossMargin(margin))
		first := locktest.Use(t, lock)
		time.Sleep(time.Minute) // idle
		held := locktest.VisitLock(t, lock)
		require.Equal(t, first.Path(), held.Hold().Path())
		next := locktest.VisitLock(t, lock)
		<-held.Hold().Lost()
		at := time.Now()
		require.NoError(t, first.Err(), "it was released before")
		granted := next.Entered()
		require.GreaterOrEqual(t, time.Since(at), margin)
		require.NotEqual(t, first.Path(), granted.Path())
		requireExpired(t, lock.Release(held.Ctx))
		next.Leave()
	})
}

// Readers who are in a place together have each their time. The place goes with the last
// of them, and not before the margin of each is over.
func TestReadersEndEachAtHisTime(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		read := locktest.ReadWriteLock(t, b.Ours,
			recipes.WithCaching(locktest.LongIdle, 1),
			recipes.WithMaxHold(maxHold), recipes.WithLossMargin(margin)).ReadLock()
		first := locktest.VisitLock(t, read)
		first.Entered()
		time.Sleep(maxHold / 2)
		second := locktest.VisitLock(t, read)
		require.Equal(t, first.Hold().Path(), second.Hold().Path())
		writers := map[recipes.Conn]*locktest.Visit{}
		for _, conn := range []recipes.Conn{b.Ours, b.Other} {
			writer := locktest.ReadWriteLock(t, conn).WriteLock()
			writers[conn] = locktest.VisitLock(t, writer)
		}
		<-first.Hold().Lost()
		at := time.Now()
		requireExpired(t, first.Hold().Err())
		require.NoError(t, second.Hold().Err(), "its own time is not over")
		released := locktest.Start(func() error { return read.Release(second.Ctx) })
		writers[b.Ours].Entered()
		require.GreaterOrEqual(t, time.Since(at), margin)
		require.NoError(t, <-released)
		writers[b.Ours].Leave()
		writers[b.Other].Entered()
		writers[b.Other].Leave()
		requireExpired(t, read.Release(first.Ctx))
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
		time.Sleep(locktest.Settle) // nobody waits for the delete of what was lost
		require.Empty(t, locktest.Znodes(b))
	})
}

// The end that was planned for a hold is forgotten with one that is lost before.
func TestAHoldThatIsLostIsLetGo(t *testing.T) {
	for name, opts := range map[string][]recipes.Option{
		"alone": nil, "of a kept place": {recipes.WithCaching(locktest.LongIdle, 1)},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			// A use of the connection.
			use := locktest.VisitLock(t, b.Mutex(t, b.Ours, "/other"))
			opts := append(opts, recipes.WithMaxHold(24*time.Hour))
			lost := loseOne(t, b, b.Mutex(t, b.Ours, "/lock", opts...))
			time.Sleep(time.Minute)
			runtime.GC()
			require.Nil(t, lost.Value())
			use.Leave()
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

// A waiter for a lease holds its place at the gate, which is no hold of the caller's: it
// does not end by itself, so nobody overtakes the waiter.
func TestThePlaceAtTheGateDoesNotEndByItself(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		visit := func(conn recipes.Conn, opts ...recipes.Option) *locktest.Visit {
			lock, err := locktest.MakeLeaseLock(1)(conn, "/lock", opts...)
			require.NoError(t, err)
			return locktest.VisitLock(t, lock)
		}
		held := visit(b.Other)
		held.Entered()
		first := visit(b.Ours, recipes.WithMaxHold(maxHold))
		second := visit(b.Other)
		time.Sleep(10 * maxHold)
		held.Leave()
		require.True(t, first.Holds(), "it was overtaken")
		require.False(t, second.Holds())
		first.Leave()
		second.Entered()
		second.Leave()
	})
}
