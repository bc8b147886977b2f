package lock_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestEveryLockExcludes(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		path := zkserver.Path(t)
		first := locktest.SharedPeer(t)
		count := locktest.NewCounter(t, first)
		const each = 20
		var workers []<-chan error
		for i := range 4 {
			p := locktest.SharedPeer(t)
			lock := k.Lock(p, path)
			if k.Recipe == "read lock" && i > 0 { // readers would share
				lock = k.NewRival(p, path)
			}
			for range 2 {
				if k.Recipe == "read lock" && i == 0 && len(workers) > 0 {
					continue // only one reader
				}
				ctx, lock := locktest.Owner(t), lock
				if _, election := lock.(*locktest.Candidate); election {
					lock = k.Lock(p, path)
				}
				workers = append(workers, locktest.Start(func() error {
					for range each {
						if err := locktest.Do(ctx, lock, func() error {
							return count.Increment(p.Conn)
						}); err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
		for _, w := range workers {
			require.NoError(t, locktest.Within(t, w, "a worker"))
		}
		n, err := count.Value(first.Conn)
		require.NoError(t, err)
		require.EqualValues(t, each*len(workers), n)
		k.AwaitNodes(first, path, 0)
	})
}

func TestEveryLockWaitsAndGivesUp(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		held, waiter := k.NewRival(locktest.SharedPeer(t), path), k.Lock(p, path)
		ctx, other := locktest.Owner(t), locktest.Owner(t)
		before := k.Acquire(ctx, p, path, held)
		for _, timeout := range []time.Duration{
			-1, 0, time.Millisecond, 50 * time.Millisecond,
		} {
			if _, ok := waiter.(*locktest.Candidate); ok && timeout <= 0 {
				continue // it cannot try once
			}
			began := time.Now()
			ok, err := waiter.AcquireTimeout(other, timeout)
			require.False(t, ok)
			if timeout > 0 {
				locktest.RequireOutOfTime(t, err)
			} else {
				require.NoError(t, err)
			}
			require.Less(
				t, time.Since(began)-max(0, timeout), realGrace, "AcquireTimeout(%v)",
				timeout,
			)
		}
		changedMind := errors.New("changed mind")
		cancelled, cancel := context.WithCancelCause(other)
		waiting := locktest.Start(func() error { return waiter.Acquire(cancelled) })
		locktest.Eventually(
			t, func() bool { return len(k.Nodes(p, path)) > len(before) },
			"nobody queues",
		)
		began := time.Now()
		cancel(changedMind)
		require.ErrorIs(t, locktest.Within(t, waiting, "cancelled"), changedMind)
		require.Less(t, time.Since(began), realGrace)
		k.AwaitNodes(p, path, len(before))
		require.Equal(t, before, k.Nodes(p, path))
		require.False(t, waiter.IsAcquiredInThisProcess())
		require.ErrorIs(t, waiter.Release(other), recipes.ErrNotOwner)

		waiting = locktest.Start(func() error { return waiter.Acquire(other) })
		locktest.Eventually(
			t, func() bool { return len(k.Nodes(p, path)) > len(before) },
			"nobody queues",
		)
		require.True(t, held.IsAcquiredInThisProcess())
		require.NoError(t, held.Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the waiter's turn"))
		require.True(t, waiter.IsAcquiredInThisProcess())
		require.NoError(t, waiter.Release(other))
		k.AwaitNodes(p, path, 0)
	})
}

func TestEveryLockGivesUpInAnOutage(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		path := zkserver.Path(t)
		p, watcher := locktest.SharedPeer(t), locktest.SharedPeer(t)
		held, waiter := k.NewRival(watcher, path), k.Lock(p, path)
		ctx := locktest.Owner(t)
		before := k.Acquire(ctx, watcher, path, held)
		const timeout = 300 * time.Millisecond
		for name, fault := range map[string]func(){
			"before": p.Tap.Partition, "while queued": p.Tap.PartitionIn,
		} {
			if name == "before" {
				fault()
			} else {
				p.AwaitSession()
				p.Tap.NthRequest(wiretap.Create, 1, wiretap.Pass)
				time.AfterFunc(timeout/3, fault)
			}
			began := time.Now()
			ok, err := waiter.AcquireTimeout(locktest.Owner(t), timeout)
			require.False(t, ok, name)
			require.Less(t, time.Since(began)-timeout, realGrace, name)
			if name == "before" {
				require.ErrorIs(t, err, recipes.ErrUnavailable)
			} else if !errors.Is(err, recipes.ErrUnavailable) {
				require.NoError(t, err, name) // seen less than a second before
			}
			p.Tap.Heal()
			k.AwaitNodes(watcher, path, len(before))
		}
		require.NoError(t, held.Release(ctx))
		require.NoError(t, waiter.Acquire(ctx), "the value is of use after an outage")
		require.NoError(t, waiter.Release(ctx))
	})
}

func TestEveryLockIsLostInTime(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		path := zkserver.Path(t)
		p, other := locktest.NewPeer(
			t, zkserver.Shared(t).Connect(), time.Second,
		), locktest.SharedPeer(t)
		held, heir := k.Lock(p, path), k.NewRival(other, path)
		ctx := locktest.Owner(t)
		before := len(k.Acquire(ctx, other, path, held))
		gone := locktest.Lost(ctx, held)
		waiting := locktest.Start(func() error { return heir.Acquire(ctx) })
		locktest.Eventually(
			t, func() bool { return len(k.Nodes(other, path)) > before },
			"the heir does not queue",
		)
		p.Tap.Partition()
		require.NoError(t, locktest.Within(t, waiting, "the lock does not pass on"))
		select {
		case <-gone:
		default:
			t.Fatal("two hold the lock, and the first does not know")
		}
		require.False(t, held.IsAcquiredInThisProcess())
		require.ErrorIs(t, held.Release(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, held.Release(ctx), recipes.ErrNotOwner)
		p.Tap.Heal()
		require.NoError(t, heir.Release(ctx))
		require.NoError(t, held.Acquire(ctx), "the value is of use after a loss")
		require.NoError(t, held.Release(ctx))
		k.AwaitNodes(other, path, 0)
	})
}

func TestEveryLockIsLostWithItsZnode(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		lock, ctx := k.Lock(p, path), locktest.Owner(t)
		require.NoError(t, other.Conn.Delete(k.Acquire(ctx, other, path, lock)[0], -1))
		locktest.Eventually(
			t, func() bool { return !lock.IsAcquiredInThisProcess() },
			"the loss is not told",
		)
		err := lock.Release(ctx)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		k.AwaitNodes(other, path, 0)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
	})
}

func TestEveryLockSurvivesLostReplies(t *testing.T) {
	zkserver.Resuming(t)
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		// For each fault the client pauses for a second. What is held then is to be lost
		// for no silence, of which a session of four seconds bears no more than 1.4 right
		// after an idle time.
		path, other := zkserver.Path(t), locktest.SharedPeer(t)
		p := locktest.NewPeer(t, zkserver.Shared(t).Connect(), locktest.Lasting)
		lock, ctx := k.Lock(p, path), locktest.Owner(t)
		n := len(k.Acquire(ctx, other, path, lock))
		require.NoError(t, lock.Release(ctx))
		k.AwaitNodes(other, path, 0)
		nth := map[wiretap.Op]int{}
		for _, op := range k.Free { // the first create, the first list, …
			nth[op]++
			happened := p.Tap.LoseReply(op, nth[op])
			require.Len(t, k.Acquire(ctx, other, path, lock), n)
			require.NoError(t, lock.Release(ctx))
			locktest.Within(t, happened, "the fault")
			p.AwaitSession()
			k.AwaitNodes(other, path, 0)
		}
	})
}

func TestEveryLockJoinsAnewWhenItsSessionExpires(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		path := zkserver.Path(t)
		p, other := locktest.NewPeer(
			t, zkserver.Shared(t).Connect(), time.Second,
		), locktest.SharedPeer(t)
		held, waiter := k.NewRival(other, path), k.Lock(p, path)
		ctx := locktest.Owner(t)
		before := len(k.Acquire(ctx, other, path, held))
		waiting := locktest.Start(func() error { return waiter.Acquire(ctx) })
		locktest.Eventually(
			t, func() bool { return len(k.Nodes(other, path)) > before }, "nobody queues",
		)
		session := p.Conn.SessionID()
		p.Tap.Partition()
		k.AwaitNodes(other, path, before)
		p.Tap.Heal()
		locktest.Eventually(
			t, func() bool { return len(k.Nodes(other, path)) > before },
			"the waiter does not queue anew",
		)
		require.NotEqual(t, session, p.Conn.SessionID())
		require.NoError(t, held.Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the waiter's turn"))
		require.NoError(t, waiter.Release(ctx))
	})
}

func TestEveryLockOnAClosedConnection(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		held := k.NewRival(other, path)
		ctx := locktest.Owner(t)
		before := len(k.Acquire(ctx, other, path, held))
		waiter := k.Lock(p, path)
		waiting := locktest.Start(func() error { return waiter.Acquire(ctx) })
		locktest.Eventually(
			t, func() bool { return len(k.Nodes(other, path)) > before }, "nobody queues",
		)
		p.Conn.Close()
		require.ErrorIs(
			t, locktest.Within(t, waiting, "the wait"), zk.ErrConnectionClosed,
		)
		require.ErrorIs(t, locktest.Within(
			t, locktest.Start(func() error { return waiter.Acquire(ctx) }), "Acquire",
		), zk.ErrConnectionClosed)
		other.Conn.Close()
		require.ErrorIs(t, locktest.Within(
			t, locktest.Start(func() error { return held.Release(ctx) }), "Release",
		), recipes.ErrLockLost)
	})
}

// tally counts how often each request was made.
func tally(requests []wiretap.Op) map[wiretap.Op]int {
	n := map[wiretap.Op]int{}
	for _, op := range requests {
		n[op]++
	}
	return n
}

func TestEveryLockCostsWhatItMust(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		if k.Cached {
			t.Skip("it costs nothing, or more: see the tests of caching")
		}
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		observer := locktest.SharedPeer(t)
		lock, ctx := k.Lock(p, path), locktest.Owner(t)
		once := func() {
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
			k.AwaitNodes(observer, path, 0)
		}
		once()
		want := tally(k.Free)
		var exact bool
		for range 50 {
			p.Tap.Reset()
			once()
			got := tally(p.Asked(path))
			exact = exact || maps.Equal(want, got)
			// A list is sent by a goroutine of its own, and so is each of several
			// creates. One that overtakes its create is sent again, once.
			lists := want[wiretap.GetChildren2]
			require.LessOrEqual(t, got[wiretap.GetChildren2], 2*lists)
			got[wiretap.GetChildren2] = lists
			// What is held for 20 ms, in a slow round, is watched.
			require.LessOrEqual(t, got[wiretap.GetData], want[wiretap.Create])
			delete(got, wiretap.GetData)
			require.Equal(t, want, got)
		}
		require.True(t, exact, "some request is always repeated")
	})
}

func TestEveryLockSharesItsWatches(t *testing.T) {
	locktest.ForAll(t, func(t *testing.T, k locktest.Kind) {
		server, path := zkserver.Start(t).Servers[0], zkserver.Path(t)
		const session = time.Minute // that of a busy machine is not to be lost
		p := locktest.NewPeer(t, server.Addr, session)
		other := locktest.NewPeer(t, server.Addr, session)
		held := k.NewRival(other, path)
		ctx := locktest.Owner(t)
		require.NoError(t, held.Acquire(ctx))
		for range 100 {
			ok, err := k.Lock(p, path).AcquireTimeout(
				locktest.Owner(t), 10*time.Millisecond,
			)
			locktest.RequireOutOfTime(t, err)
			require.False(t, ok)
		}
		left := 0
		for watched, watchers := range locktest.WatchersOf(t, server) {
			if strings.HasPrefix(watched, path) {
				left += watchers
			}
		}
		require.LessOrEqual(t, left, 5, "what a hundred impatient waiters have left")
		require.NoError(t, held.Release(ctx))
	})
}
