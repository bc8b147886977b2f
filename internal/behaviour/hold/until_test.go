package hold_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// heldUntil acquires a lock of that kind, and returns its hold.
func heldUntil(
	t *testing.T, b *locktest.Bubble, k locktest.Kind, opts ...recipes.Option,
) *recipes.Hold {
	t.Helper()
	lock := k.MustMake(t, b.Ours, "/lock", opts...)
	hold, err := recipes.Acquire(locktest.Owner(t), lock)
	require.NoError(t, err)
	synctest.Wait() // an answer under way moves Until on
	return hold
}

// Until moves on with each confirmation. In an outage it stands still, and is kept.
func TestUntilIsWhenLostCloses(t *testing.T) {
	for name, d := range map[string]time.Duration{
		"without a margin": 0, "with a margin": margin,
	} {
		t.Run(name, func(t *testing.T) {
			locktest.ForAllInBubbles(t, func(
				t *testing.T, b *locktest.Bubble, k locktest.Kind,
			) {
				hold := heldUntil(t, b, k, recipes.WithLossMargin(d))
				first := hold.Until()
				require.True(t, first.After(time.Now()))
				time.Sleep(time.Minute)
				last := hold.Until()
				require.Greater(t, last.Sub(first), 50*time.Second)
				b.Cluster.Link("ours").Cut()
				time.Sleep(locktest.Settle) // an answer may be under way
				last = hold.Until()
				<-hold.Lost()
				require.WithinDuration(t, last, time.Now(), 0)
				time.Sleep(time.Second)
				require.Equal(t, last.UnixNano(), hold.Until().UnixNano())
				_ = hold.Release(t.Context()) // it is lost
				require.Equal(t, last.UnixNano(), hold.Until().UnixNano())
			})
		})
	}
}

func TestUntilWhereAHoldEndsByItself(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		hold := heldUntil(t, b, k, recipes.WithMaxHold(maxHold))
		end := time.Now().Add(maxHold)
		require.WithinDuration(t, end, hold.Until(), 0)
		<-hold.Lost()
		require.WithinDuration(t, end, time.Now(), 0)
		time.Sleep(time.Second)
		require.WithinDuration(t, end, hold.Until(), 0)
	})
}

// A loss that nobody could foresee is dated by when it was known.
func TestUntilAfterADeletion(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		hold := heldUntil(t, b, k)
		require.NoError(t, b.Other.Delete(hold.Path(), -1))
		<-hold.Lost()
		when := time.Now()
		require.WithinDuration(t, when, hold.Until(), 0)
		time.Sleep(time.Second)
		require.WithinDuration(t, when, hold.Until(), 0)
	})
}

// What it was at the release stays, also where another owner uses the cached entry.
func TestUntilAfterARelease(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		hold := heldUntil(t, b, k)
		was := hold.Until()
		require.NoError(t, hold.Release(t.Context()))
		time.Sleep(time.Minute)
		require.WithinDuration(t, was, hold.Until(), 0)
	})
}

// A multi lock's is the earliest of its members'.
func TestUntilOfAMultiLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		bounded := b.Mutex(t, b.Ours, "/bounded", recipes.WithMaxHold(maxHold))
		multi := recipes.NewInterProcessMultiLockOf(b.Lock, bounded)
		hold, err := recipes.Acquire(locktest.Owner(t), multi)
		require.NoError(t, err)
		end := time.Now().Add(maxHold)
		require.WithinDuration(t, end, hold.Until(), 0)
		require.NoError(t, hold.Release(t.Context()))
		time.Sleep(time.Minute)
		require.WithinDuration(t, end, hold.Until(), 0)
	})
}

func TestUntilOfNoHold(t *testing.T) {
	require.Zero(t, (*recipes.Hold)(nil).Until())
	require.Zero(t, new(recipes.Hold).Until())
}

// An observer sees how long what was acquired can be relied on, as its owner does.
func TestUntilOfAnEvent(t *testing.T) {
	locktest.ForAllInBubbles(t, func(
		t *testing.T, b *locktest.Bubble, k locktest.Kind,
	) {
		seen := &locktest.Recorder{}
		hold := heldUntil(t, b, k, recipes.WithObserver(seen.Observe))
		time.Sleep(time.Minute)
		synctest.Wait() // an answer under way moves Until on
		events := seen.All()
		for _, e := range events {
			if e.Kind == recipes.EventAcquired {
				require.Equal(t, hold.Until(), e.Until())
			} else {
				require.Zero(t, e.Until())
			}
		}
		require.Equal(t, recipes.EventAcquired, events[len(events)-1].Kind)
	})
}
