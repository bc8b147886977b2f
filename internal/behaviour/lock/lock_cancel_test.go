package lock_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// The tests that look at all goroutines of the process, or measure short times, are not
// parallel.

// realGrace is that where time is real, and a busy machine has its share of it. What is
// exact is shown in bubbles.
const realGrace = 3 * time.Second

// leaks looks for goroutines of the library that have come since before. The client and
// the tap start new ones with each connection; no call of the library is among them.
func leaks() (find func() error) {
	opts := []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("github.com/go-zookeeper/zk.(*Conn).loop.func1"),
		goleak.IgnoreAnyFunction("github.com/go-zookeeper/zk.(*Conn).loop.func2"),
		// of a server in this process
		goleak.IgnoreAnyFunction("github.com/zkrecipes/recipes/zktest.(*conn).read"),
		goleak.IgnoreAnyFunction("github.com/zkrecipes/recipes/zktest.(*conn).write"),
		goleak.IgnoreAnyFunction("github.com/zkrecipes/recipes/zktest.(*Cluster).accept"),
		goleak.IgnoreAnyFunction(
			"github.com/zkrecipes/recipes/internal/wiretap.(*wire).collectRequests",
		),
		goleak.IgnoreAnyFunction(
			"github.com/zkrecipes/recipes/internal/wiretap.(*wire).collectReplies",
		),
		goleak.IgnoreAnyFunction(
			"github.com/zkrecipes/recipes/internal/wiretap.(*wire).deliver",
		),
	}
	return func() error { return goleak.Find(opts...) }
}

// awaitNoLeak waits until no goroutine is left over; then nothing that the library had
// begun is under way any more.
func awaitNoLeak(t *testing.T, find func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(locktest.Patience); time.Now().Before(deadline); {
		if err = find(); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

// A giveUp is one way in which the time of an acquire ends. It returns when that was, and
// what was answered.
type giveUp func(
	t *testing.T, lock recipes.InterProcessLock,
) (due time.Time, ok bool, err error)

// waitLong is enough for a waiter to be queued and watched before its time ends.
const waitLong = 150 * time.Millisecond

var giveUps = map[string]giveUp{
	"cancelled": func(
		t *testing.T, lock recipes.InterProcessLock,
	) (due time.Time, ok bool, err error) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(locktest.Owner(t))
		dues := make(chan time.Time, 1)
		time.AfterFunc(waitLong, func() {
			dues <- time.Now()
			cancel(locktest.ErrChangedMind)
		})
		err = lock.Acquire(ctx)
		due = locktest.Within(t, dues, "Acquire was to be cancelled")
		require.ErrorIs(t, err, locktest.ErrChangedMind)
		return due, false, nil
	},
	"deadline": func(
		t *testing.T, lock recipes.InterProcessLock,
	) (due time.Time, ok bool, err error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(locktest.Owner(t), waitLong)
		defer cancel()
		due, _ = ctx.Deadline()
		ok, err = lock.AcquireTimeout(ctx, time.Hour)
		require.ErrorIs(
			t, err, context.DeadlineExceeded, "the caller's own deadline is no timeout",
		)
		return due, ok, nil
	},
	"timeout": func(
		t *testing.T, lock recipes.InterProcessLock,
	) (due time.Time, ok bool, err error) {
		t.Helper()
		due = time.Now().Add(waitLong)
		ok, err = lock.AcquireTimeout(locktest.Owner(t), waitLong)
		return due, ok, err
	},
	"at once": func(
		t *testing.T, lock recipes.InterProcessLock,
	) (due time.Time, ok bool, err error) {
		t.Helper()
		due = time.Now().Add(waitLong)
		ctx, cancel := context.WithDeadlineCause(
			locktest.Owner(t), due, locktest.ErrChangedMind,
		)
		defer cancel()
		ok, err = lock.AcquireTimeout(ctx, 0)
		// In an outage it takes a second otherwise.
		if errors.Is(err, locktest.ErrChangedMind) {
			err = nil
		}
		return due, ok, err
	},
}

func gaveUpInTime(t *testing.T, how string, late time.Duration, ok bool, err error) {
	t.Helper()
	require.NoError(t, err, how)
	require.False(t, ok, how)
	require.Less(t, late, realGrace, how)
	if !strings.HasSuffix(how, "at once") {
		require.GreaterOrEqual(t, late, time.Duration(0), "%s: it did not wait", how)
	}
}

// An adversity is what keeps a waiter from the lock.
type adversity struct {
	begin, end func(p *locktest.Peer, server *zkserver.Server) error
}

var adversities = map[string]adversity{
	"another holder": {
		func(*locktest.Peer, *zkserver.Server) error { return nil },
		func(*locktest.Peer, *zkserver.Server) error { return nil },
	},
	"partition": {
		func(p *locktest.Peer, _ *zkserver.Server) error {
			p.Tap.Partition()
			return nil
		},
		func(p *locktest.Peer, _ *zkserver.Server) error { p.Tap.Heal(); return nil },
	},
	"nothing comes back": {
		func(p *locktest.Peer, _ *zkserver.Server) error {
			p.Tap.PartitionIn()
			return nil
		},
		func(p *locktest.Peer, _ *zkserver.Server) error { p.Tap.Heal(); return nil },
	},
	"frozen server": {
		func(_ *locktest.Peer, server *zkserver.Server) error { return server.Freeze() },
		func(_ *locktest.Peer, server *zkserver.Server) error { return server.Thaw() },
	},
	"refused connections": {
		func(p *locktest.Peer, _ *zkserver.Server) error {
			p.Tap.Refuse(true)
			p.Tap.Cut()
			return nil
		},
		func(p *locktest.Peer, _ *zkserver.Server) error {
			p.Tap.Refuse(false)
			return nil
		},
	},
}

func TestAcquireReturnsInTimeAndLeavesNothing(t *testing.T) {
	for name, trouble := range adversities {
		zkserver.Run(t, name, func(t *testing.T) {
			service := zkserver.Start(t)
			holder := locktest.NewPeer(t, service.Connect(), time.Minute)
			p := locktest.NewPeer(t, service.Connect(), 10*time.Second)
			path := zkserver.Path(t)
			held, ctx := holder.Mutex(path), locktest.Owner(t)
			require.NoError(t, held.Acquire(ctx))
			node := held.LockPath(ctx)
			locktest.Eventually(
				t, func() bool { return slices.Contains(holder.Watching(), node) },
				"the hold is not watched",
			)
			find := leaks()

			// the trouble begins when it stands in the queue
			for how, giveUp := range giveUps {
				begun := make(chan error, 1)
				due, ok, err := giveUp(t, p.Mutex(path, recipes.WithObserver(func(
					_ context.Context, e recipes.Event,
				) {
					if e.Kind == recipes.EventQueued {
						begun <- trouble.begin(p, service.Servers[0])
					}
				})))
				late := time.Since(due)
				require.NoError(t, locktest.Within(t, begun, how+": was not queued"))
				require.NoError(t, trouble.end(p, service.Servers[0]))
				if name != "another holder" && errors.Is(err, recipes.ErrUnavailable) {
					err = nil // or it was not noticed yet
				}
				gaveUpInTime(t, how, late, ok, err)
				p.AwaitSession()
			}
			require.NoError(t, trouble.begin(p, service.Servers[0]))
			for how, giveUp := range giveUps {
				due, ok, err := giveUp(t, p.Mutex(path))
				late := time.Since(due)
				if name != "another holder" && how == "timeout" {
					require.ErrorIs(t, err, recipes.ErrUnavailable)
					err = nil
				}
				gaveUpInTime(t, how, late, ok, err)
			}
			require.NoError(t, trouble.end(p, service.Servers[0]))
			awaitNoLeak(t, find)
			require.Equal(
				t, []string{strings.TrimPrefix(node, path+"/")}, holder.Children(path),
			)
			require.NoError(t, held.Release(ctx))
		})
	}
}

func TestAcquireReturnsInTimeBehindAHolderOfThisProcess(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		path := zkserver.Path(t)
		held, ctx := p.Mutex(path), locktest.Owner(t)
		require.NoError(t, held.Acquire(ctx))
		locktest.Eventually(
			t, func() bool { return len(p.Watching()) > 0 }, "the hold is not watched",
		)
		find := leaks()
		for name, lock := range map[string]*recipes.InterProcessMutex{
			"same value": held, "another value": p.Mutex(path),
		} {
			for how, giveUp := range giveUps {
				due, ok, err := giveUp(t, lock)
				gaveUpInTime(t, name+", "+how, time.Since(due), ok, err)
			}
		}
		awaitNoLeak(t, find)
		require.Len(t, p.Children(path), 1)
		require.NoError(t, held.Release(ctx))
	})
}

func TestASingleTry(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
		path, ctx, otherCtx := zkserver.Path(t), locktest.Owner(t), locktest.Owner(t)
		lock, others := p.Mutex(path), other.Mutex(path)
		for _, timeout := range []time.Duration{0, -1, math.MinInt64} {
			ok, err := lock.AcquireTimeout(ctx, timeout)
			require.NoError(t, err)
			require.True(t, ok, "the lock is free")
			p.Tap.Reset()
			ok, err = lock.AcquireTimeout(ctx, timeout)
			require.NoError(t, err)
			require.True(t, ok, "a re-entry")
			ok, err = others.AcquireTimeout(otherCtx, timeout)
			require.NoError(t, err)
			require.False(t, ok)
			require.Empty(t, other.Watching(), "it does not wait")
			require.Len(t, other.AwaitChildren(path, 1), 1)
			require.NoError(t, lock.Release(ctx))
			require.NoError(t, lock.Release(ctx))
		}
	})
}

// It gets a second, however long the session lasts.
func TestASingleTryInAnOutage(t *testing.T) {
	for name, trouble := range adversities {
		if name == "another holder" || name == "frozen server" {
			continue
		}
		zkserver.Run(t, name, func(t *testing.T) {
			p, other := locktest.NewPeer(
				t, zkserver.Shared(t).Connect(), locktest.Lasting,
			), locktest.SharedPeer(t)
			path := zkserver.Path(t)
			find := leaks()
			require.NoError(t, trouble.begin(p, nil))
			began := time.Now()
			ok, err := p.Mutex(path).AcquireTimeout(locktest.Owner(t), 0)
			took := time.Since(began)
			require.NoError(t, trouble.end(p, nil))
			require.ErrorIs(t, err, recipes.ErrUnavailable)
			require.False(t, ok)
			require.Less(t, took, time.Second+realGrace)
			awaitNoLeak(t, find)
			require.Empty(t, other.Children(path))
		})
	}
}

func TestADoneContextAsksNothing(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.SharedPeer(t)
		lock := p.Mutex(zkserver.Path(t))
		owner := locktest.Owner(t)
		ctx, cancel := context.WithCancelCause(owner)
		cancel(locktest.ErrChangedMind)
		refusesDoneContext(t, p, lock, ctx)
		require.NoError(t, lock.Acquire(owner))
		locktest.AwaitOwnWatch(t, p)
		refusesDoneContext(t, p, lock, ctx) // to re-enter, too
		require.NoError(t, lock.Release(owner))
		require.ErrorIs(t, lock.Release(owner), recipes.ErrNotOwner)
	})
}

func refusesDoneContext(
	t *testing.T, p *locktest.Peer, lock *recipes.InterProcessMutex,
	ctx context.Context, //nolint:revive // t comes first in tests
) {
	t.Helper()
	p.Tap.Reset()
	for range 10 {
		require.ErrorIs(t, lock.Acquire(ctx), locktest.ErrChangedMind)
		for _, timeout := range []time.Duration{-1, 0, time.Second, math.MaxInt64} {
			ok, err := lock.AcquireTimeout(ctx, timeout)
			require.ErrorIs(t, err, locktest.ErrChangedMind)
			require.False(t, ok)
		}
	}
	_, _, err := p.Conn.Get("/") // behind whatever was sent
	require.NoError(t, err)
	// the heartbeat
	ops := slices.DeleteFunc(p.Tap.Ops(), func(op wiretap.Op) bool {
		return op == wiretap.Sync
	})
	require.Equal(t, []wiretap.Op{wiretap.GetData}, ops)
}

func TestAHugeTimeout(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
		path, ctx, otherCtx := zkserver.Path(t), locktest.Owner(t), locktest.Owner(t)
		lock, others := p.Mutex(path), other.Mutex(path)
		ok, err := lock.AcquireTimeout(ctx, math.MaxInt64)
		require.NoError(t, err)
		require.True(t, ok)
		waiting := locktest.Start(func() error {
			ok, err := others.AcquireTimeout(otherCtx, math.MaxInt64)
			if !ok && err == nil {
				return errors.New("its time ran out")
			}
			return err
		})
		p.AwaitChildren(path, 2)
		require.NoError(t, lock.Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the lock does not pass on"))
		require.NoError(t, others.Release(otherCtx))
	})
}

// A watch that nobody waits for stays in the client and at the server, and cannot be
// dropped (docs/appendix/hazards.md, A1_14 and E12).
func TestImpatientWaitersLeaveNothing(t *testing.T) {
	zkserver.Real(t, "a heap of its own")
	server := zkserver.Start(t).Servers[0]
	for name, holds := range map[string]func(p, other *locktest.Peer) *locktest.Peer{
		"behind another process": func(_, other *locktest.Peer) *locktest.Peer {
			return other
		},
		"behind this process": func(p, _ *locktest.Peer) *locktest.Peer { return p },
	} {
		t.Run(name, func(t *testing.T) {
			p, other := locktest.NewPeer(
				t, server.Addr, time.Minute,
			), locktest.NewPeer(t, server.Addr, time.Minute)
			holder := holds(p, other)
			path, ctx := zkserver.Path(t), locktest.Owner(t)
			held := holder.Mutex(path)
			require.NoError(t, held.Acquire(ctx))
			locktest.Eventually(
				t, func() bool { return len(holder.Watching()) > 0 },
				"the hold is not watched",
			)

			impatient(t, p, path, 200) // what grows only once has grown
			if holder == other {
				// on a slow machine all of them gave up before they came to set a watch
				locktest.Eventually(t, func() bool {
					impatient(t, p, path, 50)
					return slices.Contains(p.Watching(), held.LockPath(ctx))
				}, "nobody watches the holder")
			}
			find := leaks()
			awaitNoLeak(t, find)
			heap := heapInUse(p, other)
			impatient(t, p, path, 2000)
			awaitNoLeak(t, find)
			require.NotContains(
				t, p.Watching(), held.LockPath(ctx), "those before have set a watch",
			)
			// It grows by some 10 KiB; by more where the crowd's peak was higher than
			// before, since the runtime keeps what its goroutines were described by. What
			// a waiter that is not let go of takes is 1 KiB and more, 2 MiB in all.
			require.Less(t, heapInUse(p, other), heap+1<<20, "waiters are not let go of")
			require.Len(t, other.Children(path), 1)
			watchers := locktest.WatchersOf(t, server)
			require.LessOrEqual(t, watchers[path], 1, "those behind their own, once")
			delete(watchers, path)
			require.Len(t, watchers, 1)
			require.LessOrEqual(
				t, watchers[held.LockPath(ctx)], 2,
				"the holder, and all who waited, with one for all",
			)
			require.NoError(t, held.Release(ctx))
		})
	}
}

// impatient makes n acquires of fresh lock values run out of time: half of them one after
// the other, then the others in a crowd.
func impatient(t *testing.T, p *locktest.Peer, path string, n int) {
	t.Helper()
	try := func(timeout time.Duration) {
		ok, err := p.Mutex(path).AcquireTimeout(locktest.Owner(t), timeout)
		if ok || !locktest.IsOutOfTime(err) {
			t.Errorf("got the lock: %v, %v", ok, err)
		}
	}
	for range n / 2 {
		try(2 * time.Millisecond)
	}
	const crowd = 50
	var wg sync.WaitGroup
	for range crowd {
		wg.Go(func() {
			for range n / 2 / crowd {
				try(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
}

// heapInUse is what is live now, without what the taps have noted.
func heapInUse(taps ...*locktest.Peer) uint64 {
	for _, p := range taps {
		p.Tap.Reset()
	}
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
