package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A farBack is a lock of a process that others hold and wait for.
type farBack struct {
	*locktest.Bubble
	ours  *zktest.Link
	leave func() // ends all that is ahead, at the same time
}

// inFarBack runs a test with two ahead, each of another process.
func inFarBack(t *testing.T, test func(t *testing.T, b farBack)) {
	t.Helper()
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		first := b.Mutex(t, b.Other, "/lock")
		second := b.Mutex(t, locktest.ConnectThrough(t, b.Cluster, "second"), "/lock")
		require.NoError(t, first.Acquire(ctx))
		waiting, cancel := context.WithCancel(locktest.Owner(t))
		defer cancel()
		ended := locktest.Start(func() error { return second.Acquire(waiting) })
		locktest.AwaitChildren(t, b.Other, "/lock", 2)
		left := false
		leave := func() {
			if !left {
				left = true
				cancel()
				require.Error(t, <-ended)
				require.NoError(t, first.Release(ctx))
			}
		}
		test(t, farBack{b, b.Cluster.Link("ours"), leave})
		leave()
	})
}

// waysToWaitFarBack are ways to wait with a limit, some of which leave the requests to
// others.
var waysToWaitFarBack = map[string]func(
	ctx context.Context, t *testing.T, b farBack, limit time.Duration,
) error{
	"AcquireTimeout": func(
		ctx context.Context, _ *testing.T, b farBack, limit time.Duration,
	) error {
		return acquireWithin(ctx, b.Lock, limit)
	},
	"a deadline": func(
		ctx context.Context, _ *testing.T, b farBack, limit time.Duration,
	) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return b.Lock.Acquire(ctx)
	},
	"caching": func(
		ctx context.Context, t *testing.T, b farBack, limit time.Duration,
	) error {
		t.Helper()
		caching := recipes.WithCaching(time.Minute, 1)
		return acquireWithin(ctx, b.Mutex(t, b.Ours, "/lock", caching), limit)
	},
	"another goroutine": func(
		ctx context.Context, _ *testing.T, b farBack, limit time.Duration,
	) error {
		waiting, cancel := context.WithCancel(ctx)
		ended := locktest.Start(func() error { return b.Lock.Acquire(waiting) })
		time.Sleep(time.Millisecond) // that one queues
		err := acquireWithin(ctx, b.Lock, limit)
		cancel()
		if first := <-ended; !errors.Is(first, context.Canceled) {
			return fmt.Errorf("the first goroutine: %w", first)
		}
		return err
	},
}

// acquireWithin is AcquireTimeout, with ErrBusy for false.
func acquireWithin(
	ctx context.Context, lock *recipes.InterProcessMutex, limit time.Duration,
) error {
	held, err := lock.AcquireTimeout(ctx, limit)
	if !held && err == nil {
		return recipes.ErrBusy
	}
	return err
}

// A waiter with two ahead sends nothing until shortly before its time is up. Then it
// asks, and so it knows whether ZooKeeper answers, and what is ahead.
func TestAWaiterFarBackAsksBeforeItsTimeIsUp(t *testing.T) {
	const limit, late = 20 * time.Second, 17 * time.Second
	for name, c := range map[string]struct {
		at, until   time.Duration // of what happens
		begin       func(ours *zktest.Link)
		unavailable bool
	}{
		"nothing": {late, late, func(*zktest.Link) {}, false},
		"silence": {
			late, limit, func(l *zktest.Link) { l.Stall(zktest.Both) }, true,
		},
		"silence of the servers": {
			late, limit, func(l *zktest.Link) { l.Stall(zktest.ToClient) }, true,
		},
		"a silence that is over": {
			limit / 2, late, func(l *zktest.Link) { l.Stall(zktest.Both) }, false,
		},
		"no connection":       {late, limit, (*zktest.Link).Cut, true},
		"a broken connection": {late, late, (*zktest.Link).Reset, false},
	} {
		for way, wait := range waysToWaitFarBack {
			t.Run(name+" "+way, func(t *testing.T) {
				inFarBack(t, func(t *testing.T, b farBack) {
					began := time.Now()
					ended := locktest.Start(func() error {
						return wait(locktest.Owner(t), t, b, limit)
					})
					time.Sleep(c.at)
					c.begin(b.ours)
					time.Sleep(c.until - c.at)
					if c.until < limit {
						b.ours.Heal()
					}
					err := <-ended
					require.LessOrEqual(t, time.Since(began), limit+250*time.Millisecond)
					b.ours.Heal()
					if c.unavailable {
						require.ErrorIs(t, err, recipes.ErrUnavailable)
						require.NotErrorIs(t, err, recipes.ErrBusy)
					} else {
						require.ErrorIs(t, err, recipes.ErrBusy)
						require.NotErrorIs(t, err, recipes.ErrUnavailable)
					}
					time.Sleep(limit)
					require.Len(t, locktest.Children(t, b.Other, "/lock"), 2)
				})
			})
		}
	}
}

// What a waiter far back sends while it waits, and when its time is nearly up.
func TestWhatAWaiterFarBackSends(t *testing.T) {
	inFarBack(t, func(t *testing.T, b farBack) {
		client, tap := locktest.ConnectTapped(
			t, b.Cluster.Link("tapped"), b.Cluster.Names()[0], 10*time.Second)
		lock := b.Mutex(t, client, "/lock")
		ended := locktest.Start(func() error {
			held, err := lock.AcquireTimeout(locktest.Owner(t), 29*time.Second)
			require.False(t, held)
			return err
		})
		sent := func(until time.Duration) (ops []wiretap.Op) {
			time.Sleep(until)
			for _, r := range tap.Requests() {
				ops = append(ops, r.Op)
			}
			tap.Reset()
			return ops
		}
		sent(5 * time.Second)
		require.Empty(t, sent(22*time.Second))
		require.Equal(t, []wiretap.Op{wiretap.Sync, wiretap.GetData},
			sent(1900*time.Millisecond))
		require.NoError(t, <-ended)
	})
}

// The time of many goroutines is up at once, and those ahead of them are far from their
// turn. Each asked whether ZooKeeper answers; one sync tells all.
func TestManyFarBackAskOnceBeforeTheirTimeIsUp(t *testing.T) {
	const many, limit = 200, 20 * time.Second
	for name, opts := range map[string][]recipes.Option{
		"a znode each": nil, "caching": {recipes.WithCaching(time.Minute, 1)},
	} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " silent ", silent), func(t *testing.T) {
				inFarBack(t, func(t *testing.T, b farBack) {
					client, tap := locktest.ConnectTapped(
						t, b.Cluster.Link("tapped"), b.Cluster.Names()[0], 10*time.Second)
					lock := b.Mutex(t, client, "/lock", opts...)
					var ended []<-chan error
					for range many {
						ctx := locktest.Owner(t)
						ended = append(ended, locktest.Start(func() error {
							return acquireWithin(ctx, lock, limit)
						}))
					}
					time.Sleep(limit - 2*time.Second)
					tap.Reset()
					if silent {
						tap.Partition()
						defer tap.Heal()
					}
					time.Sleep(1900 * time.Millisecond)
					// Later, who finds that its neighbour has left may ask for proof.
					asked := tap.Count(wiretap.Sync)
					unavailable := 0
					for _, e := range ended {
						if errors.Is(<-e, recipes.ErrUnavailable) {
							unavailable++
						}
					}
					if silent {
						require.Equal(t, many, unavailable)
						return
					}
					require.Zero(t, unavailable)
					// One of those with a znode each looks at what is ahead of all.
					require.LessOrEqual(t, asked, 2)
					require.Positive(t, asked)
				})
			})
		}
	}
}

func TestAWaiterFarBackIsCancelledInSilence(t *testing.T) {
	inFarBack(t, func(t *testing.T, b farBack) {
		ctx, cancel := context.WithCancelCause(locktest.Owner(t))
		ended := locktest.Start(func() error { return b.Lock.Acquire(ctx) })
		time.Sleep(20 * time.Second)
		b.ours.Stall(zktest.Both)
		time.Sleep(3 * time.Second)
		cancelled := time.Now()
		cancel(locktest.ErrChangedMind)
		require.ErrorIs(t, <-ended, locktest.ErrChangedMind)
		require.LessOrEqual(t, time.Since(cancelled), 250*time.Millisecond)
		b.ours.Heal()
		time.Sleep(10 * time.Second)
		require.Len(t, locktest.Children(t, b.Other, "/lock"), 2)
	})
}

// The connection of a waiter far back dies, and its turn comes meanwhile. It gets the
// lock if its session has survived. If not, it rejoins behind those who came later; at no
// time do two hold the lock.
func TestAWaiterFarBackWhoseTurnComesWhileItIsAway(t *testing.T) {
	for name, away := range map[string]func(*zktest.Link){
		"silent": func(l *zktest.Link) { l.Stall(zktest.Both) },
		"cut":    (*zktest.Link).Cut,
	} {
		for _, lasts := range []time.Duration{
			2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second,
			9 * time.Second, 10 * time.Second, 11 * time.Second, 20 * time.Second,
		} {
			t.Run(fmt.Sprint(name, " for ", lasts), func(t *testing.T) {
				inFarBack(t, func(t *testing.T, b farBack) {
					last := b.Mutex(
						t, locktest.ConnectThrough(t, b.Cluster, "last"), "/lock")
					ctx, lasting := locktest.Owner(t), locktest.Owner(t)
					ours := locktest.Start(func() error { return b.Lock.Acquire(ctx) })
					locktest.AwaitChildren(t, b.Other, "/lock", 3)
					theirs := locktest.Start(func() error {
						return last.Acquire(lasting)
					})
					time.Sleep(21 * time.Second)
					away(b.ours)
					time.Sleep(time.Second)
					b.leave()
					time.Sleep(lasts - time.Second)
					b.ours.Heal()
					for range 1000 {
						time.Sleep(20 * time.Millisecond)
						require.False(t, holds(ctx, b.Lock) && holds(lasting, last))
					}
					require.True(t, holds(ctx, b.Lock) || holds(lasting, last))
					if holds(ctx, b.Lock) {
						require.NoError(t, <-ours)
						require.NoError(t, b.Lock.Release(ctx))
						require.NoError(t, <-theirs)
						return
					}
					// Only pings, which are T/3 apart, have kept its session alive.
					require.Greater(t, lasts, 6*time.Second, "its session was over")
					require.NoError(t, <-theirs)
					require.NoError(t, last.Release(lasting))
					require.NoError(t, <-ours)
				})
			})
		}
	}
}

// holds reports whether ctx's owner holds the lock, as far as it knows.
func holds(ctx context.Context, lock *recipes.InterProcessMutex) bool {
	hold := lock.Hold(ctx)
	return hold != nil && hold.Err() == nil
}

// The session of a waiter far back ends. It rejoins at the tail, and rests there.
func TestAWaiterFarBackWhoseSessionEnds(t *testing.T) {
	inFarBack(t, func(t *testing.T, b farBack) {
		ctx := locktest.Owner(t)
		ended := locktest.Start(func() error { return b.Lock.Acquire(ctx) })
		locktest.AwaitChildren(t, b.Other, "/lock", 3)
		time.Sleep(20 * time.Second)
		session := b.Ours.SessionID()
		b.ours.Cut()
		time.Sleep(20 * time.Second)
		require.Len(t, locktest.Children(t, b.Other, "/lock"), 2)
		b.ours.Heal()
		time.Sleep(20 * time.Second)
		require.NotEqual(t, session, b.Ours.SessionID())
		require.Len(t, locktest.Children(t, b.Other, "/lock"), 3)
		b.leave()
		require.NoError(t, <-ended)
		require.NoError(t, b.Lock.Release(ctx))
	})
}

// Somebody deletes the znode of a waiter far back while its connection is away. It finds
// out once the connection is back, although it does not list the queue then, and rejoins.
func TestAWaiterFarBackWhoseZnodeIsDeletedWhileItIsAway(t *testing.T) {
	for name, long := range map[string]time.Duration{
		"just joined": time.Millisecond, "waits for long": 20 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			inFarBack(t, func(t *testing.T, b farBack) {
				ctx := locktest.Owner(t)
				ended := locktest.Start(func() error { return b.Lock.Acquire(ctx) })
				locktest.AwaitChildren(t, b.Other, "/lock", 3)
				time.Sleep(long)
				nodes := locktest.Children(t, b.Other, "/lock")
				slices.SortFunc(nodes, locktest.BySequence)
				b.ours.Cut()
				time.Sleep(time.Second)
				require.NoError(t, b.Other.Delete("/lock/"+nodes[2], -1))
				time.Sleep(time.Second)
				b.ours.Heal()
				time.Sleep(4 * time.Second)
				now := locktest.Children(t, b.Other, "/lock")
				require.Len(t, now, 3)
				require.NotContains(t, now, nodes[2])
				b.leave()
				require.NoError(t, <-ended)
				require.NoError(t, b.Lock.Release(ctx))
			})
		})
	}
}

// The connection of a waiter far back is closed: the wait ends.
func TestAWaiterFarBackWhoseConnectionIsClosed(t *testing.T) {
	const timeout = 10 * time.Second
	for name, silent := range map[string]bool{"": false, "in silence": true} {
		t.Run(name, func(t *testing.T) {
			inFarBack(t, func(t *testing.T, b farBack) {
				link := b.Cluster.Link("bare")
				conn, events := locktest.OpenBare(t, link, b.Cluster.Names()[0], timeout)
				bare := locktest.NewMutex(
					t, conn, "/lock", recipes.WithSessionTimeout(timeout))
				bareEnded := locktest.Start(func() error {
					return bare.Acquire(locktest.Owner(t))
				})
				ended := locktest.Start(func() error {
					return b.Lock.Acquire(locktest.Owner(t))
				})
				time.Sleep(2 * timeout)
				if silent {
					link.Stall(zktest.Both)
					b.ours.Stall(zktest.Both)
				}
				closed := time.Now()
				go conn.Close()
				b.Ours.Close()
				require.ErrorIs(t, <-ended, zk.ErrConnectionClosed)
				require.ErrorIs(t, <-bareEnded, zk.ErrConnectionClosed)
				require.Less(t, time.Since(closed), timeout)
				link.Heal()
				for range events {
				}
			})
		})
	}
}

// The server does not set the watches of a waiter far back again after an outage, in
// which all ahead have left, or somebody has deleted its znode. It looks for itself.
func TestAWaiterFarBackDoesNotRelyOnTheClientsWatches(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, b farBack, node string){
		"its turn came": func(_ *testing.T, b farBack, _ string) { b.leave() },
		"it was deleted": func(t *testing.T, b farBack, node string) {
			t.Helper()
			require.NoError(t, b.Other.Delete("/lock/"+node, -1))
		},
		"nothing": func(*testing.T, farBack, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			inFarBack(t, func(t *testing.T, b farBack) {
				client, tap := locktest.ConnectTapped(
					t, b.Cluster.Link("tapped"), b.Cluster.Names()[0], 10*time.Second)
				lock, ctx := b.Mutex(t, client, "/lock"), locktest.Owner(t)
				ended := locktest.Start(func() error { return lock.Acquire(ctx) })
				locktest.AwaitChildren(t, b.Other, "/lock", 3)
				nodes := locktest.Children(t, b.Other, "/lock")
				slices.SortFunc(nodes, locktest.BySequence)
				time.Sleep(20 * time.Second)
				tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
					if p.Op == wiretap.SetWatches {
						return wiretap.Drop
					}
					return wiretap.Pass
				})
				tap.Refuse(true)
				tap.Cut()
				time.Sleep(time.Second)
				happens(t, b, nodes[2])
				tap.Refuse(false)
				time.Sleep(4 * time.Second)
				if name == "its turn came" {
					require.True(t, holds(ctx, lock))
				} else {
					rejoined := !slices.Contains(
						locktest.Children(t, b.Other, "/lock"), nodes[2])
					require.Equal(t, name == "it was deleted", rejoined)
				}
				b.leave()
				time.Sleep(time.Second)
				require.True(t, holds(ctx, lock))
				require.NoError(t, <-ended)
				require.NoError(t, lock.Release(ctx))
			})
		})
	}
}
