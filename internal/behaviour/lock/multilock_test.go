package lock_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

func TestMultiLockIsRefused(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		_, err := recipes.NewInterProcessMultiLock(p.Conn, nil)
		require.ErrorContains(t, err, "is empty")
		_, err = recipes.NewInterProcessMultiLock(p.Conn,
			[]string{path, path + "/b", path})
		require.ErrorContains(t, err, path+": paths contains it twice")
		_, err = recipes.NewInterProcessMultiLock(p.Conn, []string{path, "bad"})
		require.ErrorContains(
			t, err, `recipes: NewInterProcessMultiLock: path "bad" does not`,
		)
		require.ErrorIs(t, err, zk.ErrInvalidPath)
		_, err = recipes.NewInterProcessMultiLock(nil, []string{path})
		require.ErrorContains(t, err, "nil")

		mutex := p.Mutex(path)
		alone := locktest.NewSemaphoreMutex(t, p.Conn, path+"/c")
		of := func(locks ...recipes.InterProcessLock) recipes.InterProcessLock {
			return recipes.NewInterProcessMultiLockOf(locks...)
		}
		var none *recipes.InterProcessMultiLock
		for why, locks := range map[string][]recipes.InterProcessLock{
			"is empty":              nil,
			"lock 2 is nil":         {mutex, nil},
			"lock 1 is nil":         {(*recipes.InterProcessMutex)(nil), mutex},
			"lock 3 is nil":         {mutex, alone, none},
			"lock 2: the one in a ": {mutex, &wrapper{wrapper{}}},
			"lock 3 is given twice": {mutex, p.Mutex(path + "/b"), mutex},
			"lock 2 is given twice": {of(of(mutex), of(mutex, alone)), alone},
		} {
			m := recipes.NewInterProcessMultiLockOf(locks...)
			require.ErrorContains(t, m.Acquire(t.Context()), why)
			err := recipes.Do(locktest.Owner(t), m, locktest.Nothing)
			require.ErrorContains(t, err, why)
			ok, err := m.AcquireTimeout(t.Context(), 0)
			require.False(t, ok)
			require.ErrorContains(t, err, why)
			require.ErrorContains(t, m.Release(t.Context()), why)
			require.Nil(t, m.Hold(t.Context()))
			require.False(t, m.IsAcquiredInThisProcess())
			require.False(t, mutex.IsAcquiredInThisProcess())
			require.False(t, alone.IsAcquiredInThisProcess())
		}
		fine := of(of(mutex), mutex, alone)
		require.NoError(t, recipes.Do(t.Context(), fine, locktest.Nothing))
	})
}

// Curator gives every lock the whole timeout: 2 s for two paths took it 3.5 s.
func TestHazardA1_20_OneDeadlineForAll(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx, others := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, b.Mutex(t, b.Other, "/lock").Acquire(others))
		slow := b.Mutex(t, b.Other, "/slow")
		require.NoError(t, slow.Acquire(others))
		time.AfterFunc(timeout-timeout/4, func() { _ = slow.Release(others) })
		m := recipes.NewInterProcessMultiLockOf(
			b.Mutex(t, b.Ours, "/slow"), b.Lock, b.Mutex(t, b.Ours, "/last"))
		began := time.Now()
		ok, err := m.AcquireTimeout(ctx, timeout)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, timeout, time.Since(began).Round(time.Millisecond))
		time.Sleep(time.Second)
		require.Len(t, b.Cluster.Znodes(), 3, "it stops at the first failure: %v",
			b.Cluster.Znodes())
	})
}

func TestMultiLockHolds(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		ctx, stranger := locktest.Owner(t), locktest.Owner(t)
		first := p.Mutex(path + "/a")
		rw := readWriteLock(p, path+"/b")
		last := locktest.SemaphoreMutex(p, path+"/c")
		// so that the last one has not the greatest token
		require.NoError(t, last.Acquire(ctx))
		m := recipes.NewInterProcessMultiLockOf(
			first, rw.WriteLock(),
			recipes.NewInterProcessMultiLockOf(last),
		)
		require.Nil(t, m.Hold(ctx))
		require.Empty(t, m.Holds(ctx))
		require.NoError(t, last.Release(ctx))
		require.NoError(t, m.Acquire(ctx))
		holds := m.Holds(ctx)
		require.Len(t, holds, 3)
		require.Same(t, first.Hold(ctx), holds[0])
		require.Same(t, rw.WriteLock().Hold(ctx), holds[1])
		hold := m.Hold(ctx)
		require.Equal(t, holds[2].Path(), hold.Path())
		require.Equal(t, holds[2].CheckOp(), hold.CheckOp())
		require.Equal(
			t, max(
				holds[0].FencingToken(), holds[1].FencingToken(), holds[2].FencingToken(),
			),
			hold.FencingToken(),
		)
		require.Nil(t, m.Hold(stranger))
		require.Nil(t, m.Holds(stranger))
		require.Same(t, hold, m.Hold(ctx), "the same value for the same holds")
		require.NoError(t, hold.Err())

		require.NoError(t, other.Conn.Delete(holds[0].Path(), -1))
		locktest.Within(t, hold.Lost(), "the loss of one member")
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.ErrorContains(t, hold.Err(), holds[0].Path())
		require.Same(t, hold, m.Hold(ctx), "it is its owner's until it is released")
		require.Equal(t, holds, m.Holds(ctx))
		require.False(t, m.IsAcquiredInThisProcess())
		require.ErrorIs(t, m.Acquire(ctx), recipes.ErrLockLost)
		require.Equal(t, holds, m.Holds(ctx))
		require.ErrorIs(t, m.Release(ctx), recipes.ErrLockLost)
		require.Nil(t, m.Hold(ctx))
		require.ErrorIs(t, m.Release(ctx), recipes.ErrNotOwner)
		other.AwaitChildren(path+"/b", 0)
		other.AwaitChildren(path+"/c/leases", 0)

		require.NoError(t, m.Acquire(ctx))
		require.NotSame(t, hold, m.Hold(ctx))
		require.NoError(t, m.Release(ctx))
	})
}

// The greatest token is not always the last member's.
func TestMultiLockHasTheGreatestToken(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		ctx := locktest.Owner(t)
		early, late := p.Mutex(path+"/early"), p.Mutex(path+"/late")
		require.NoError(t, early.Acquire(ctx))
		m := recipes.NewInterProcessMultiLockOf(late, early)
		require.NoError(t, m.Acquire(ctx), "it re-enters the one that is held")
		require.Less(t, early.Hold(ctx).FencingToken(), late.Hold(ctx).FencingToken())
		require.Equal(t, late.Hold(ctx).FencingToken(), m.Hold(ctx).FencingToken())
		require.NoError(t, m.Acquire(ctx), "as reentrant as its members")
		require.NoError(t, m.Release(ctx))
		require.True(t, m.IsAcquiredInThisProcess())
		require.NoError(t, m.Release(ctx))
		require.False(t, late.IsOwned(ctx))
		require.True(t, early.IsOwned(ctx))
		require.NoError(t, early.Release(ctx))
		p.AwaitChildren(path+"/late", 0)
	})
}

// Two owners can hold a multi lock of shared locks at once: each has a Hold of its own
// that stays the same.
func TestMultiLockOfReaders(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		m := recipes.NewInterProcessMultiLockOf(
			readWriteLock(p, path+"/a").ReadLock(),
			readWriteLock(p, path+"/b").ReadLock(),
		)
		one, two := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, m.Acquire(one))
		require.NoError(t, m.Acquire(two))
		first, second := m.Hold(one), m.Hold(two)
		require.NotEqual(t, first.Path(), second.Path())
		require.Same(t, first, m.Hold(one))
		require.Same(t, second, m.Hold(two))
		require.NoError(t, m.Release(one))
		require.Nil(t, m.Hold(one))
		require.Same(t, second, m.Hold(two))
		require.NoError(t, m.Release(two))
	})
}

// What it gives back is what it has got: a member that any caller may release can be
// another's by then. The error says that, and as well how the wait has ended.
func TestAMultiLockGivesBackWhatItHasGot(t *testing.T) {
	for name, acquire := range map[string]func(
		ctx context.Context, lock recipes.InterProcessLock,
	) error{
		"AcquireTimeout": func(ctx context.Context, lock recipes.InterProcessLock) error {
			_, err := lock.AcquireTimeout(ctx, time.Minute)
			return err
		},
		"WaitAtMost": func(ctx context.Context, lock recipes.InterProcessLock) error {
			_, err := recipes.Acquire(ctx, lock, recipes.WaitAtMost(time.Minute))
			return err
		},
		"ctx": func(ctx context.Context, lock recipes.InterProcessLock) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return lock.Acquire(ctx)
		},
	} {
		locktest.Run(t, name, func(t *testing.T, s *locktest.Bubble) {
			taken := s.Mutex(t, s.Other, "/taken")
			require.NoError(t, taken.Acquire(locktest.Owner(t)))
			m := locktest.NewSemaphoreMutex(t, s.Ours, "/mutex")
			both := recipes.NewInterProcessMultiLockOf(m, s.Mutex(t, s.Ours, "/taken"))
			ctx := locktest.Owner(t)
			done := locktest.Start(func() error { return acquire(ctx, both) })
			time.Sleep(time.Second)
			next := locktest.Owner(t)
			require.NoError(t, m.Release(next))
			require.NoError(t, m.Acquire(next))
			err := <-done
			require.ErrorIs(t, err, recipes.ErrNotOwner, "it had lost one")
			require.ErrorIs(t, err, recipes.ErrBusy)
			var busy *recipes.BusyError
			require.ErrorAs(t, err, &busy)
			require.Equal(t, "/taken", busy.Path)
			require.True(t, m.IsAcquiredInThisProcess(), "the next one's was given back")
			require.NoError(t, m.Release(next))
		})
	}
}

// The owner's first lease is lost while a multi lock waits for the second. It has got the
// second, and would wait for itself if it gave back the first.
func TestAMultiLockKnowsItsOwnLeaseFromItsOwners(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m := locktest.NewSemaphoreMutex(t, b.Ours, "/s")
		multi, ctx := recipes.NewInterProcessMultiLockOf(m), locktest.Owner(t)
		require.NoError(t, m.Acquire(ctx))
		lost := m.Hold(ctx)
		acquired := locktest.Start(func() error {
			ok, err := multi.AcquireTimeout(ctx, 5*time.Second)
			assert.True(t, ok)
			return err
		})
		time.Sleep(time.Second)
		b.Lose(t, lost)
		require.NoError(t, <-acquired)
		require.NotSame(t, lost, m.Hold(ctx), "the multi lock's")
		require.NoError(t, multi.Hold(ctx).Err())
		require.NoError(t, multi.Release(ctx))
		require.ErrorIs(t, m.Release(ctx), recipes.ErrLockLost, "the first one")
		require.False(t, m.IsAcquiredInThisProcess())
	})
}

// A member is released under a time of its own where the others could not be acquired:
// the caller's is over, and in an outage that would take as long as the session.
func TestAMultiLockGivesBackInTime(t *testing.T) {
	const timeout = time.Second
	for name, acquire := range map[string]func(
		ctx context.Context, lock *recipes.InterProcessMultiLock,
	) error{
		"timeout": func(ctx context.Context, lock *recipes.InterProcessMultiLock) error {
			ok, err := lock.AcquireTimeout(ctx, timeout)
			require.False(t, ok)
			require.ErrorIs(t, err, recipes.ErrUnavailable, "it was cut off meanwhile")
			return nil
		},
		"cancelled": func(
			ctx context.Context, lock *recipes.InterProcessMultiLock,
		) error {
			ctx, cancel := context.WithTimeoutCause(ctx, timeout, locktest.ErrChangedMind)
			defer cancel()
			err := lock.Acquire(ctx)
			require.ErrorIs(t, err, locktest.ErrChangedMind)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			return nil
		},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			client := locktest.ConnectThrough(t, cluster, "ours")
			other := locktest.ConnectThrough(t, cluster, "other")
			last := locktest.NewMutex(t, other, "/d")
			require.NoError(t, last.Acquire(locktest.Owner(t)))
			lock := locktest.NewMultiLock(t, client, []string{
				"/a", "/b", "/c", "/d",
			})
			time.AfterFunc(timeout/2, cluster.Link("ours").Cut)

			began := time.Now()
			require.NoError(t, acquire(locktest.Owner(t), lock))
			require.LessOrEqual(t, time.Since(began), timeout+250*time.Millisecond)
			cluster.Link("ours").Heal()
			time.Sleep(5 * time.Second)
			require.Equal(
				t, 4+1, len(cluster.Znodes()),
				"the four directories, and the holder's: %v", cluster.Znodes(),
			)
		})
	}
}

// While it waits for one member, a multi lock can lose another.
func TestAMultiLockHoldsAllItsMembers(t *testing.T) {
	for name, lose := range map[string]func(
		c *zktest.Cluster, ours, other *recipes.Client,
	){
		"expired": func(c *zktest.Cluster, client, _ *recipes.Client) {
			c.ExpireSession(client.SessionID())
		},
		"deleted": func(_ *zktest.Cluster, _, other *recipes.Client) {
			nodes, _, err := other.Children("/a")
			require.NoError(t, err)
			require.NoError(t, other.Delete("/a/"+nodes[0], -1))
		},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			client := locktest.ConnectThrough(t, cluster, "ours")
			other := locktest.ConnectThrough(t, cluster, "other")
			multi := locktest.NewMultiLock(t, client, []string{
				"/a", "/b",
			})
			a := locktest.NewMutex(t, other, "/a")
			b := locktest.NewMutex(t, other, "/b")
			ctx, others := locktest.Owner(t), locktest.Owner(t)
			require.NoError(t, b.Acquire(others))
			acquired := locktest.Start(func() error { return multi.Acquire(ctx) })
			time.Sleep(time.Second)
			lose(cluster, client, other)
			require.NoError(t, a.Acquire(others))
			time.Sleep(time.Second)
			require.NoError(t, b.Release(others))
			time.Sleep(time.Second)
			require.Empty(t, acquired, "it holds /b, and somebody else /a")
			require.NoError(t, a.Release(others))
			require.NoError(t, <-acquired)
			require.NoError(t, multi.Hold(ctx).Err())
			require.True(t, multi.IsAcquiredInThisProcess())
			require.NoError(t, multi.Release(ctx))
		})
	}
}

// So it does where that member is in another of its members, too: the inner multi lock
// said that the lock was lost, which nobody had yet.
func TestAMultiLockStartsOverWithAMemberThatIsInTwo(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		busy := locktest.Acquire(t.Context(), t, b.Mutex(t, b.Other, "/busy"))
		multi := recipes.NewInterProcessMultiLockOf(b.Lock,
			recipes.NewInterProcessMultiLockOf(b.Lock, b.Mutex(t, b.Ours, "/busy")))
		done := locktest.Start(func() error {
			return recipes.Do(t.Context(), multi, locktest.Nothing)
		})
		time.Sleep(time.Second)
		nodes, _, err := b.Other.Children("/lock")
		require.NoError(t, err)
		require.NoError(t, b.Other.Delete("/lock/"+nodes[0], -1))
		time.Sleep(time.Second)
		require.NoError(t, busy.Release(t.Context()))
		require.NoError(t, <-done)
	})
}

// With a round trip of 100 ms four members take one, and not four.
func TestAMultiLockReleasesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		lock := locktest.NewMultiLock(t, client, []string{
			"/a", "/b", "/c", "/d",
		})
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		cluster.Link("ours").Delay(50*time.Millisecond, 50*time.Millisecond)
		began := time.Now()
		require.NoError(t, lock.Release(ctx))
		require.Less(t, time.Since(began), 150*time.Millisecond)
	})
}

// The multi lock's token outruns that of the next holder of one member, who joined that
// member's queue before the multi lock joined the last one's. The member's own does not.
func TestAMembersTokenGrowsWithItsHolders(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		b, next := s.Mutex(t, s.Other, "/b"), s.Mutex(t, s.Other, "/lock")
		multi := recipes.NewInterProcessMultiLockOf(
			s.Lock, s.Mutex(t, s.Ours, "/b"), s.Mutex(t, s.Ours, "/c"))
		ctx, others, later := locktest.Owner(t), locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, b.Acquire(others))
		// has /lock, waits for /b
		held := locktest.Start(func() error { return multi.Acquire(ctx) })
		time.Sleep(time.Second)
		granted := locktest.Start(func() error { return next.Acquire(later) })
		time.Sleep(time.Second)
		require.NoError(t, b.Release(others))
		require.NoError(t, <-held)
		all, member := multi.Hold(ctx), multi.Holds(ctx)[0]
		require.NoError(t, multi.Release(ctx))
		require.NoError(t, <-granted)
		token := next.Hold(later).FencingToken()
		require.Greater(
			t, all.FencingToken(), token, "so a store of /lock cannot take it",
		)
		require.Less(t, member.FencingToken(), token)
	})
}

// A semaphore mutex that was lost does not tell it at the next Acquire: its multi lock
// does, instead of waiting for itself.
func TestAMultiLockWithALostSemaphoreMutexIsNotReentered(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		mutex := locktest.NewSemaphoreMutex(t, s.Ours, "/s")
		multi, ctx := recipes.NewInterProcessMultiLockOf(s.Lock, mutex), locktest.Owner(t)
		require.NoError(t, multi.Acquire(ctx))
		s.Lose(t, mutex.Hold(ctx))
		ok, err := multi.AcquireTimeout(ctx, time.Second)
		require.False(t, ok)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorIs(t, multi.Release(ctx), recipes.ErrLockLost)
		require.NoError(t, multi.Acquire(ctx))
		require.NoError(t, multi.Release(ctx))
	})
}

// A lost multi lock's own acquisition lasts until the multi lock is released, even if its
// owner has released each member by itself.
func TestALostMultiLockIsReleasedByItself(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		x, y := b.Mutex(t, b.Ours, "/x"), b.Mutex(t, b.Ours, "/y")
		multi, ctx := recipes.NewInterProcessMultiLockOf(x, y), locktest.Owner(t)
		require.NoError(t, multi.Acquire(ctx))
		hold := multi.Hold(ctx)
		b.Lose(t, x.Hold(ctx))
		<-hold.Lost()
		require.ErrorIs(t, x.Release(ctx), recipes.ErrLockLost)
		require.NoError(t, y.Release(ctx))
		require.Same(t, hold, multi.Hold(ctx))
		require.ErrorIs(t, multi.Acquire(ctx), recipes.ErrLockLost)
		require.Equal(t, 2, strings.Count(multi.Release(ctx).Error(), "released before"))
		require.Nil(t, multi.Hold(ctx))
		require.NoError(t, multi.Acquire(ctx))
		require.NoError(t, multi.Release(ctx))
	})
}

// Members that are lost at once do not change why the multi lock was lost, once that was
// told.
func TestAMultiLocksErrStays(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var paths []string
		for i := range 20 {
			paths = append(paths, "/"+strconv.Itoa(i))
		}
		multi := locktest.NewMultiLock(t, b.Ours, paths)
		for range 5 { // it depends on the order in which goroutines run
			hold := locktest.Acquire(t.Context(), t, multi)
			told := make(chan error, len(paths))
			for _, member := range multi.Holds(hold.Context(t.Context())) {
				go func() {
					<-member.Lost()
					told <- hold.Err()
				}()
			}
			b.Cluster.ExpireSession(b.Ours.SessionID())
			first := <-told
			require.ErrorIs(t, first, recipes.ErrSessionEnded)
			for range len(paths) - 1 {
				require.Same(t, first, <-told)
			}
			synctest.Wait()
			require.Same(t, first, hold.Err())
			require.Same(t, first, context.Cause(hold.Context(t.Context())))
			require.Equal(t, len(paths), locktest.Losses(hold.Release(t.Context())))
		}
	})
}

// A renewingConn has another session from the moment on that it is told to.
type renewingConn struct {
	*recipes.Client
	renewed atomic.Bool
}

func (c *renewingConn) SessionID() int64 {
	if c.renewed.Load() {
		return c.Client.SessionID() + 1
	}
	return c.Client.SessionID()
}

// The session can end as the first member is held. The connection knows it at once, and
// tells it at its next look.
func TestAMultiLockHoldsAllItsMembersInOneSession(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		conn := &renewingConn{Client: b.Ours}
		acquired := 0
		multi := locktest.NewMultiLock(t, conn, []string{"/a", "/b"},
			recipes.WithObserver(func(_ context.Context, e recipes.Event) {
				if e.Kind != recipes.EventAcquired {
					return
				}
				if acquired++; !conn.renewed.Swap(true) {
					require.NoError(t, b.Other.Delete(e.Node, -1)) // with the session
				}
			}))
		ctx := locktest.Owner(t)
		require.NoError(t, multi.Acquire(ctx))
		require.Equal(t, 4, acquired, "the first member was lost before the second")
		time.Sleep(time.Second)
		require.NoError(t, multi.Hold(ctx).Err())
		require.NoError(t, multi.Release(ctx))
	})
}

// A single attempt that loses a member meanwhile starts over, within its second. It said
// busy, and nobody held a member, or waited for one.
func TestASingleAttemptThatLosesAMember(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		paths := []string{"/lock", "/x", "/y"}
		multi := locktest.NewMultiLock(t, b.Ours, paths)
		locktest.UseTimes(t, multi, 1)
		b.Cluster.Link("ours").Delay(20*time.Millisecond, 20*time.Millisecond)
		ctx, got := locktest.Owner(t), false
		done := locktest.Start(func() (err error) {
			got, err = multi.AcquireTimeout(ctx, 0)
			return err
		})
		time.Sleep(50 * time.Millisecond) // it has the first one
		nodes := locktest.Znodes(b)
		require.Len(t, nodes, 1)
		require.NoError(t, b.Other.Delete(nodes[0], -1))
		require.NoError(t, <-done)
		require.True(t, got)
		require.NoError(t, multi.Hold(ctx).Err())
		require.NoError(t, multi.Release(ctx))
		require.Empty(t, locktest.Znodes(b))
	})
}

// A second release of a multi lock's hold took a member away from another multi lock of
// its owner, whose hold said nothing of it.
func TestASecondReleaseLeavesOtherMultiLocksAlone(t *testing.T) {
	for _, by := range []string{
		"the hold, twice", "the lock, then the hold", "Acquire, the lock, then the hold",
	} {
		locktest.Run(t, by, func(t *testing.T, b *locktest.Bubble) {
			x, y := b.Mutex(t, b.Ours, "/x"), b.Mutex(t, b.Ours, "/y")
			ctx := locktest.Owner(t)
			withX := recipes.NewInterProcessMultiLockOf(b.Lock, x)
			if strings.HasPrefix(by, "Acquire") {
				locktest.Acquire(ctx, t, withX)
			} else {
				require.NoError(t, withX.Acquire(ctx))
			}
			first := withX.Hold(ctx)
			second := locktest.Acquire(
				ctx, t, recipes.NewInterProcessMultiLockOf(b.Lock, y))
			if strings.HasPrefix(by, "the hold") {
				require.NoError(t, first.Release(ctx))
			} else {
				require.NoError(t, withX.Release(ctx))
			}
			require.ErrorIs(t, first.Release(ctx), recipes.ErrNotOwner)
			require.NoError(t, second.Err())
			locktest.RequireBusy(t.Context(), t, b.Mutex(t, b.Other, "/lock"))
			require.NoError(t, second.Release(ctx))
			locktest.Acquire(t.Context(), t, b.Mutex(t, b.Other, "/lock"))
		})
	}
}

// As many releases as acquisitions, by whichever doors, leave nothing held.
func TestAMultiLockIsReleasedAsOftenAsAcquired(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := locktest.NewMultiLock(t, b.Ours, []string{"/x", "/y"})
		ctx := locktest.Owner(t)
		outer := locktest.Acquire(ctx, t, lock)
		require.NoError(t, lock.Acquire(ctx))           // a function that is called
		require.NoError(t, lock.Hold(ctx).Release(ctx)) // and releases what it acquired
		require.NoError(t, outer.Release(ctx))
		require.False(t, lock.IsAcquiredInThisProcess())
		locktest.Acquire(t.Context(), t, b.Mutex(t, b.Other, "/x"))

		lock = locktest.NewMultiLock(t, b.Ours, []string{"/v", "/w"})
		isReleasedAsOftenAsAcquired(ctx, t, lock)
		locktest.Acquire(t.Context(), t, b.Mutex(t, b.Other, "/v"))
	})
}

// isReleasedAsOftenAsAcquired lets an owner on 100 goroutines release at once what they
// have acquired: two of them took the same acquisition, and one was left.
func isReleasedAsOftenAsAcquired(
	ctx context.Context, t *testing.T, lock recipes.InterProcessLock,
) {
	t.Helper()
	for range 20 {
		var acquired, released sync.WaitGroup
		acquired.Add(100)
		for range 100 {
			released.Go(func() {
				assert.NoError(t, lock.Acquire(ctx))
				acquired.Done()
				acquired.Wait()
				assert.NoError(t, lock.Release(ctx))
			})
		}
		released.Wait()
		require.False(t, lock.IsAcquiredInThisProcess())
	}
}

func TestLeasesAreReleasedAsOftenAsAcquired(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := locktest.NewSemaphore(t, b.Ours, "/s", 100)
		isReleasedAsOftenAsAcquired(locktest.Owner(t), t, s.AsLock(1))
	})
}

// Any caller may release a semaphore mutex. A multi lock's owner has of it what it has
// acquired itself.
func TestAMultiLockDoesNotReachAnOthersSemaphoreMutex(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m := locktest.NewSemaphoreMutex(t, b.Ours, "/m")
		multi := recipes.NewInterProcessMultiLockOf(m)
		other, stranger := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, m.Acquire(other))
		require.Nil(t, multi.Hold(stranger))
		require.Nil(t, multi.Holds(stranger))
		require.ErrorIs(t, multi.Release(stranger), recipes.ErrNotOwner)
		require.NoError(t, m.Hold(other).Err())
		require.NoError(t, m.Release(other))

		require.NoError(t, multi.Acquire(other))
		require.Nil(t, multi.Hold(stranger))
		require.ErrorIs(t, multi.Release(stranger), recipes.ErrNotOwner)
		hold := multi.Hold(other)
		require.NoError(t, m.Release(stranger), "as any caller may")
		require.NoError(t, m.Acquire(stranger))
		_, err := hold.Multi()
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		require.ErrorIs(t, multi.Release(other), recipes.ErrNotOwner)
		require.NoError(t, m.Hold(stranger).Err())
	})
}

// One whose members end before all are acquired starts over after a pause, and ends when
// its caller says so.
func TestAMultiLockPausesBeforeItStartsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var transactions atomic.Int64
		cluster := zktest.Start(t, zktest.WithLog(func(zktest.Transaction) {
			transactions.Add(1)
		}))
		client := locktest.ConnectThrough(t, cluster, "ours")
		cluster.Link("ours").Delay(time.Millisecond, time.Millisecond)
		multi := locktest.NewMultiLock(
			t, client, []string{"/x", "/y"}, recipes.WithMaxHold(1))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, multi.Acquire(ctx), context.DeadlineExceeded)
		require.Less(t, time.Since(began), 10*time.Second+250*time.Millisecond)
		require.Less(t, transactions.Load(), int64(300))
	})
}

// Each level of nesting took 80 ms more to return where a wait was cancelled in an
// outage.
func TestNestedMultiLocksGiveUpTogether(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		require.NoError(t, b.Mutex(t, b.Other, "/busy").Acquire(locktest.Owner(t)))
		var nested recipes.InterProcessLock = b.Mutex(t, b.Ours, "/busy")
		for level := range 5 {
			nested = recipes.NewInterProcessMultiLockOf(
				b.Mutex(t, b.Ours, "/"+strconv.Itoa(level)), nested)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, b.Cluster.Link("ours").Cut)
		began := time.Now()
		require.ErrorIs(t, nested.Acquire(ctx), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(began), 2*time.Second+250*time.Millisecond)
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Minute)
		began = time.Now()
		held, err := nested.AcquireTimeout(t.Context(), 0)
		require.NoError(t, err)
		require.False(t, held)
		require.LessOrEqual(t, time.Since(began), time.Second)
	})
}

// Do's ctx of a semaphore mutex ends as another caller releases it. That of a multi lock
// of it did not: the work went on beside the next owner's.
func TestAMultiLocksCtxEndsWithAMember(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m := locktest.NewSemaphoreMutex(t, b.Ours, "/m")
		for name, lock := range map[string]recipes.InterProcessLock{
			"alone": m,
			"multi": recipes.NewInterProcessMultiLockOf(m, b.Lock),
			"nested": recipes.NewInterProcessMultiLockOf(
				recipes.NewInterProcessMultiLockOf(m), b.Lock),
		} {
			err := recipes.Do(t.Context(), lock, func(
				ctx context.Context, hold *recipes.Hold,
			) error {
				require.NoError(t, m.Release(locktest.Owner(t)))
				synctest.Wait()
				require.ErrorIs(t, context.Cause(ctx), recipes.ErrNotOwner, name)
				late := hold.Context(t.Context())
				require.ErrorIs(t, context.Cause(late), recipes.ErrNotOwner, name)
				return nil
			})
			require.ErrorIs(t, err, recipes.ErrNotOwner, name)
		}
	})
}

// The pause before it starts over went on for up to half a second after its time was up.
func TestAMultiLockKeepsItsTimeoutInAPause(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		b.Cluster.Link("ours").Delay(time.Millisecond, time.Millisecond)
		multi := locktest.NewMultiLock(
			t, b.Ours, []string{"/x", "/y"}, recipes.WithMaxHold(1))
		for _, ms := range []int{700, 1000, 1300, 1700, 2000} {
			timeout := time.Duration(ms) * time.Millisecond
			began := time.Now()
			_, err := multi.AcquireTimeout(t.Context(), timeout)
			require.ErrorIs(t, err, recipes.ErrUnavailable)
			require.LessOrEqual(t, time.Since(began), timeout+150*time.Millisecond)
		}
	})
}

// What is made for each use leaves nothing at a lock that is held on: not even a multi
// lock whose own record was ended by its member's Release. A wrapper left some 300 bytes.
func TestHeapOfWhatIsMadeForEachUse(t *testing.T) {
	type use func(ctx context.Context, t *testing.T, lock *recipes.InterProcessMutex)
	for name, once := range map[string]use{
		"a wrapper": func(
			ctx context.Context, t *testing.T, lock *recipes.InterProcessMutex,
		) {
			t.Helper()
			wrapper := struct{ *recipes.InterProcessMutex }{lock}
			require.NoError(t, locktest.Acquire(ctx, t, wrapper).Release(ctx))
		},
		"a multi lock": func(
			ctx context.Context, t *testing.T, lock *recipes.InterProcessMutex,
		) {
			t.Helper()
			multi := recipes.NewInterProcessMultiLockOf(lock)
			require.NoError(t, locktest.Acquire(ctx, t, multi).Release(ctx))
		},
		"a multi lock whose member is released": func(
			ctx context.Context, t *testing.T, lock *recipes.InterProcessMutex,
		) {
			t.Helper()
			hold := locktest.Acquire(ctx, t, recipes.NewInterProcessMultiLockOf(lock))
			require.NoError(t, lock.Release(ctx))
			require.ErrorIs(t, hold.Release(ctx), recipes.ErrNotOwner)
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			ctx := locktest.Owner(t)
			require.NoError(t, b.Lock.Acquire(ctx)) // for a long time
			before := locktest.Heap()
			const times = 10_000
			for range times {
				once(ctx, t, b.Lock)
			}
			require.Less(t, (locktest.Heap()-before)/times, int64(50), "bytes")
		})
	}
}

// Nor does one whose member was released in the moment in which the multi lock got it: it
// watched that member for as long as others held it on.
func TestAMultiLockLetsGoOfAMemberThatIsReleasedAtOnce(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx, multi := locktest.Owner(t), recipes.NewInterProcessMultiLockOf(b.Lock)
		long := locktest.Acquire(ctx, t, b.Lock)
		var released []*recipes.Hold
		for range 10_000 {
			done := locktest.Start(func() error {
				for b.Lock.Hold(ctx) == long {
					runtime.Gosched()
				}
				return b.Lock.Hold(ctx).Release(ctx)
			})
			err := multi.Acquire(ctx)
			require.NoError(t, <-done)
			if err != nil {
				require.ErrorIs(t, err, recipes.ErrNotOwner, "it was released too soon")
				continue
			}
			hold := multi.Hold(ctx)
			require.ErrorIs(t, hold.Release(ctx), recipes.ErrNotOwner)
			released = append(released, hold)
		}
		b.Lose(t, long)
		synctest.Wait()
		for _, hold := range released {
			require.NoError(t, hold.Err(), "it was told of the loss of what it had not")
		}
	})
}
