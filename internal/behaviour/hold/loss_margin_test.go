package hold_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A margined lock is one of each kind with a loss margin, and a plain one without, both
// held through one connection. Another process waits for the first.
type margined struct {
	*locktest.Bubble
	lock, plain recipes.InterProcessLock
	ctx         context.Context // the owner's
	granted     chan time.Time  // when the other process got the lock
}

const margin = 2 * time.Second

// forMargined runs a test in a bubble for each kind of lock.
func forMargined(
	t *testing.T, test func(t *testing.T, m *margined), opts ...recipes.Option,
) {
	t.Helper()
	opts = append(opts, recipes.WithLossMargin(margin))
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		m := &margined{
			Bubble: b, ctx: locktest.Owner(t), granted: make(chan time.Time, 1),
		}
		m.lock = k.MustMake(t, b.Ours, "/lock", opts...)
		m.plain = k.MustMake(t, b.Ours, "/plain")
		rival := k.MustMakeRival(t, b.Other, "/lock")
		require.NoError(t, m.plain.Acquire(m.ctx))
		require.NoError(t, m.lock.Acquire(m.ctx))
		ctx := locktest.Owner(t)
		go func() {
			if rival.Acquire(ctx) == nil {
				m.granted <- time.Now()
			}
		}()
		time.Sleep(10 * time.Second)
		test(t, m)
		require.NoError(t, rival.Release(ctx))
	})
}

// whenLost waits for the loss of the lock, until all its members know: one that does not
// yet is released as one that is held.
func (m *margined) whenLost() (at time.Time) {
	<-locktest.Lost(m.ctx, m.lock)
	at = time.Now()
	synctest.Wait()
	return at
}

// The session ends: others hold the lock when they would have without a margin, and Lost
// has told so much earlier.
func TestALossMarginIsLeftWhereTheSessionEnds(t *testing.T) {
	forMargined(t, func(t *testing.T, m *margined) {
		m.Cluster.Link("ours").Stall(zktest.Both)
		at := m.whenLost()
		<-locktest.Lost(m.ctx, m.plain)
		require.Equal(t, margin, time.Since(at))
		require.GreaterOrEqual(t, (<-m.granted).Sub(at), margin)
		require.ErrorIs(t, m.lock.Release(m.ctx), recipes.ErrLockLost)
	})
}

// The session lives: the znode goes by itself, and not before the margin is over.
func TestALossMarginIsLeftWhereTheSessionLives(t *testing.T) {
	forMargined(t, func(t *testing.T, m *margined) {
		session := m.Ours.SessionID()
		m.Cluster.Link("ours").Stall(zktest.Both)
		at := m.whenLost()
		m.Cluster.Link("ours").Heal()
		err := m.lock.Release(m.ctx)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorContains(t, err, "of which the loss margin is 2s")
		waited := (<-m.granted).Sub(at)
		require.GreaterOrEqual(t, waited, margin)
		require.Less(t, waited, margin+3*time.Second)
		require.Equal(t, session, m.Ours.SessionID())
		require.NoError(t, m.plain.Release(m.ctx), "it was not lost")
	})
}

// What nobody can foresee is told at once, and others follow at once.
func TestALossMarginIsForSilenceAlone(t *testing.T) {
	for name, end := range map[string]func(m *margined){
		"expired": func(m *margined) { m.Cluster.ExpireSession(m.Ours.SessionID()) },
		"closed":  func(m *margined) { m.Ours.Close() },
		"deleted": func(m *margined) {
			for _, hold := range locktest.HoldsOf(m.ctx, m.lock) {
				_ = m.Other.Delete(hold.Path(), -1)
			}
			// the other leases, which no hold tells one by one
			seen, _ := recipes.Inspect(m.ctx, m.Other, "/lock")
			for _, p := range seen {
				if p.Session == m.Ours.SessionID() {
					_ = m.Other.Delete(p.Node, -1)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			forMargined(t, func(t *testing.T, m *margined) {
				began := time.Now()
				end(m)
				require.Less(t, m.whenLost().Sub(began), time.Second)
				require.Less(t, (<-m.granted).Sub(began), margin)
			})
		})
	}
}

func TestALossMarginMustSuitTheSession(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock", recipes.WithLossMargin(margin+time.Second))
		b.Cluster.Link("ours").Stall(zktest.Both)
		began, ctx := time.Now(), locktest.Owner(t)
		err := lock.Acquire(ctx)
		require.Zero(t, time.Since(began))
		for _, text := range []string{
			"recipes: acquire /lock", "WithLossMargin: 3s exceeds",
			"exceeds the maximum of 2.5s for a session timeout of 10s",
			"request a session timeout of at least 12s",
		} {
			require.ErrorContains(t, err, text)
		}
		_, err = lock.AcquireTimeout(ctx, 0)
		require.ErrorContains(t, err, "WithLossMargin")
		b.Cluster.Link("ours").Heal()
		require.Empty(t, locktest.Znodes(b))
	})
}

// Of a session whose timeout is not known little is relied on.
func TestALossMarginOfAnUnknownSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		conn := locktest.ConnectBare(
			t, cluster.Link("ours"), cluster.Leader().Addr(), 10*time.Second,
		)
		ctx := locktest.Owner(t)
		lock := func(d time.Duration) *recipes.InterProcessMutex {
			return locktest.NewMutex(t, conn, "/lock", recipes.WithLossMargin(d))
		}
		err := lock(300 * time.Millisecond).Acquire(ctx)
		require.ErrorContains(t, err, "see WithSessionTimeout")
		most := lock(250 * time.Millisecond)
		require.NoError(t, most.Acquire(ctx))
		time.Sleep(time.Hour)
		require.NoError(t, most.Hold(ctx).Err())
		require.NoError(t, most.Release(ctx))
	})
}

// What is acquired is not lost a moment later with nothing amiss, whatever the connection
// has done before: of one that was idle nothing but its pings is known.
func TestALossMarginIsNoFalseAlarm(t *testing.T) {
	for _, timeout := range []time.Duration{
		time.Second, 10 * time.Second, 60 * time.Second,
	} {
		for _, share := range []time.Duration{4, 8, 16, 40} {
			for _, ticks := range []bool{false, true} {
				name := fmt.Sprint(timeout, "/", int(share), " ", ticks)
				t.Run(name, func(t *testing.T) {
					for phase := 0; phase < 23; phase += 7 {
						acquireAfterIdling(t, timeout, timeout/share, ticks, phase)
					}
				})
			}
		}
	}
}

func acquireAfterIdling(
	t *testing.T, timeout, margin time.Duration, ticks bool, phase int,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithTick(timeout/10))
		link := cluster.Link("ours")
		link.Delay(timeout/1000, timeout/200)
		client := locktest.Connect(t, link, cluster.Leader().Addr(), timeout)
		opts := []recipes.Option{recipes.WithLossMargin(margin)}
		most := timeout*3/10 + 600*time.Millisecond // the last is a pause of a retry
		if ticks {
			opts = append(opts, recipes.WithServerTick(timeout/10))
			most = timeout / 20
		}
		lock := locktest.NewMutex(t, client, "/lock", opts...)
		time.Sleep(timeout * time.Duration(phase%4))
		for range 3 {
			time.Sleep(timeout * time.Duration(phase) / 17)
			ctx, began := locktest.Owner(t), time.Now()
			require.NoError(t, lock.Acquire(ctx))
			require.LessOrEqual(t, time.Since(began), most)
			time.Sleep(3 * timeout)
			require.NoError(t, lock.Hold(ctx).Err(), "phase %d", phase)
			require.NoError(t, lock.Release(ctx))
		}
	})
}

// A notification can come while the requests of the one who waits are not answered any
// more. What it grants is not held within the margin.
func TestNothingIsGrantedWithinTheLossMargin(t *testing.T) {
	for name, d := range map[string]time.Duration{"without": 0, "with": margin} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			before := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
			const early = 2500 * time.Millisecond
			told := locktest.VisitLock(t, b.Mutex(
				t, b.Ours, "/told", recipes.WithLossMargin(early),
			))
			next := locktest.VisitLock(t, b.Mutex(
				t, b.Ours, "/lock", recipes.WithLossMargin(d),
			))
			time.Sleep(10 * time.Second)
			b.Cluster.Link("ours").Stall(zktest.ToServer)
			<-told.Hold().Lost()
			time.Sleep(early - margin/2)
			before.Leave()
			require.Equal(t, d == 0, next.Holds())
			b.Cluster.Link("ours").Heal()
			hold := next.Entered()
			time.Sleep(time.Minute)
			require.NoError(t, hold.Err())
		})
	}
}

// The margin is that of the entry, also for an owner that finds it idle.
func TestALossMarginInAPlaceThatIsKept(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithLossMargin(margin),
			recipes.WithCaching(locktest.LongIdle, 9))
		first := locktest.Use(t, lock)
		held := locktest.VisitLock(t, lock)
		require.Equal(t, first.Path(), held.Hold().Path())
		plain := locktest.VisitLock(t, b.Mutex(t, b.Ours, "/plain"))
		other := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		time.Sleep(10 * time.Second)
		b.Cluster.Link("ours").Stall(zktest.Both)
		<-held.Hold().Lost()
		require.NoError(t, plain.Hold().Err())
		at := time.Now()
		b.Cluster.Link("ours").Heal()
		other.Entered()
		require.GreaterOrEqual(t, time.Since(at), margin)
		require.NoError(t, plain.Hold().Err())
	})
}

// An entry that is lost while nobody uses it has nobody who needs the margin to stop.
func TestALossMarginOfAnIdlePlace(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		locktest.Use(t, b.Mutex(t, b.Ours, "/lock", recipes.WithLossMargin(margin),
			recipes.WithCaching(locktest.LongIdle, 9)))
		plain := locktest.VisitLock(t, b.Mutex(t, b.Ours, "/plain",
			recipes.WithLossMargin(margin)))
		time.Sleep(10 * time.Second)
		b.Cluster.Link("ours").Stall(zktest.Both)
		<-plain.Hold().Lost()
		b.Cluster.Link("ours").Heal()
		time.Sleep(margin / 2)
		require.Len(t, locktest.Znodes(b), 1, "the one that was held")
		require.Contains(t, locktest.Znodes(b)[0], "/plain/")
	})
}

// A margin is that of the owner who has it: others, who cache an entry of their own, lose
// nothing by it, whenever it comes, and it loses nothing of its time.
func TestALossMarginIsItsOwnersAlone(t *testing.T) {
	caching := recipes.WithCaching(locktest.LongIdle, 9)
	outlasts := func(
		t *testing.T, b *locktest.Bubble, margined recipes.InterProcessLock,
	) {
		t.Helper()
		locktest.Use(t, margined)
		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(5500 * time.Millisecond)
		b.Cluster.Link("ours").Heal()
		time.Sleep(20 * time.Second)
	}
	for name, test := range map[string]func(
		t *testing.T, b *locktest.Bubble, margined recipes.InterProcessLock,
	){
		"it was here before": outlasts, "it began the stay": outlasts,
		"it comes in the silence": func(
			t *testing.T, b *locktest.Bubble, margined recipes.InterProcessLock,
		) {
			t.Helper()
			b.Cluster.Link("ours").Stall(zktest.Both)
			time.Sleep(4700 * time.Millisecond)
			ok, err := margined.AcquireTimeout(locktest.Owner(t), 0)
			require.ErrorIs(t, err, recipes.ErrUnavailable)
			require.False(t, ok)
			comes := locktest.VisitLock(t, margined)
			time.Sleep(500 * time.Millisecond)
			require.Nil(t, comes.Hold())
			b.Cluster.Link("ours").Heal()
			comes.Entered()
			comes.Leave()
		},
		"it is here": func(
			t *testing.T, b *locktest.Bubble, margined recipes.InterProcessLock,
		) {
			t.Helper()
			here := locktest.VisitLock(t, margined)
			hold := here.Entered()
			other := locktest.VisitLock(t, locktest.ReadWriteLock(t, b.Other).WriteLock())
			b.Cluster.Link("ours").Stall(zktest.Both)
			<-hold.Lost()
			require.ErrorContains(t, hold.Err(), "of which the loss margin is 2s")
			time.Sleep(100 * time.Millisecond)
			b.Cluster.Link("ours").Heal()
			time.Sleep(time.Minute)
			require.Nil(t, other.Hold(), "the one without a margin is still here")
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			plain := locktest.ReadWriteLock(t, b.Ours, caching).ReadLock()
			margined := locktest.ReadWriteLock(
				t, b.Ours, caching, recipes.WithLossMargin(margin)).ReadLock()
			if name == "it began the stay" {
				locktest.Use(t, margined)
			}
			v := locktest.VisitLock(t, plain)
			hold := v.Entered()
			time.Sleep(10 * time.Second)
			test(t, b, margined)
			require.NoError(t, hold.Err())
			v.Leave()
		})
	}
}
