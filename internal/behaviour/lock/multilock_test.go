package lock_test

import (
	"context"
	"errors"
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

// A script is what happened to stubs, in order.
type script struct {
	mu    sync.Mutex
	steps []string
}

func (s *script) add(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
}

func (s *script) take() (steps []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps, s.steps = s.steps, nil
	return steps
}

// A stub is a user's own lock. It is not comparable, and no holder.
type stub struct {
	name   string
	script *script
	wait   time.Duration // what its Acquire takes, if there is so much time
	errs   []error       // of Acquire, of Release
}

func (s stub) err(i int) error {
	if i < len(s.errs) {
		return s.errs[i]
	}
	return nil
}

func (s stub) Acquire(context.Context) error {
	s.script.add("acquire " + s.name)
	return s.err(0)
}

func (s stub) AcquireTimeout(_ context.Context, timeout time.Duration) (bool, error) {
	time.Sleep(min(s.wait, timeout))
	s.script.add("try " + s.name)
	return s.err(0) == nil && s.wait <= timeout, s.err(0)
}

func (s stub) Release(context.Context) error {
	s.script.add("release " + s.name)
	return s.err(1)
}

func (s stub) IsAcquiredInThisProcess() bool { return s.err(0) == nil }

func TestMultiLockOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	refuses, stuck, stuckToo := errors.New("refuses"), errors.New("stuck"), errors.New(
		"stuck, too",
	)
	var did script
	a, b := stub{name: "a", script: &did, errs: []error{nil, stuck}}, stub{
		name: "b", script: &did, errs: []error{nil, stuckToo},
	}
	no, z := stub{
		name: "no", script: &did, errs: []error{refuses},
	}, stub{name: "z", script: &did}
	m := recipes.NewInterProcessMultiLockOf(a, b, no, z)
	err := m.Acquire(t.Context())
	for _, want := range []error{refuses, stuck, stuckToo} {
		require.ErrorIs(t, err, want)
	}
	require.Equal(
		t, []string{"acquire a", "acquire b", "acquire no", "release b", "release a"},
		did.take(),
	)
	ok, err := m.AcquireTimeout(t.Context(), time.Hour)
	require.False(t, ok)
	for _, want := range []error{refuses, stuck, stuckToo} {
		require.ErrorIs(t, err, want)
	}
	require.Equal(
		t, []string{"try a", "try b", "try no", "release b", "release a"}, did.take(),
	)
	require.False(t, m.IsAcquiredInThisProcess())

	m = recipes.NewInterProcessMultiLockOf(a, z, b)
	require.NoError(t, m.Acquire(t.Context()))
	require.True(t, m.IsAcquiredInThisProcess())
	err = m.Release(t.Context())
	require.ErrorIs(t, err, stuck)
	require.ErrorIs(t, err, stuckToo)
	require.Equal(t, []string{
		"acquire a", "acquire z", "acquire b", "release b", "release z", "release a",
	}, did.take())
}

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
		for why, locks := range map[string][]recipes.InterProcessLock{
			"is empty":              nil,
			"lock 2 is nil":         {mutex, nil},
			"lock 1 is nil":         {(*recipes.InterProcessMutex)(nil), mutex},
			"lock 3 is given twice": {mutex, p.Mutex(path + "/b"), mutex},
			"lock 2 is nil, embeds": {mutex, (*lockThatLogs)(nil)},
		} {
			why, _, _ := strings.Cut(why, ",")
			m := recipes.NewInterProcessMultiLockOf(locks...)
			require.ErrorContains(t, m.Acquire(t.Context()), why)
			err := recipes.Do(locktest.Owner(t), m, locktest.Nothing)
			require.ErrorContains(t, err, why)
			ok, err := m.AcquireTimeout(t.Context(), 0)
			require.False(t, ok)
			require.ErrorContains(t, err, why)
			require.ErrorContains(t, m.Release(t.Context()), why)
			require.False(t, m.IsAcquiredInThisProcess())
			require.False(t, mutex.IsAcquiredInThisProcess())
		}
	})
}

// Curator gives every lock the whole timeout: 2 s for two paths took it 3.5 s.
func TestHazardA1_20_OneDeadlineForAll(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		require.NoError(t, b.Mutex(t, b.Other, "/lock").Acquire(ctx))
		var did script
		slow, last := stub{
			name: "slow", script: &did, wait: timeout - timeout/4,
		}, stub{name: "last", script: &did}
		m := recipes.NewInterProcessMultiLockOf(slow, b.Lock, last)
		began := time.Now()
		ok, err := m.AcquireTimeout(ctx, timeout)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, timeout, time.Since(began).Round(time.Millisecond))
		require.Equal(
			t, []string{"try slow", "release slow"}, did.take(),
			"it stops at the first failure",
		)
		nodes, _, err := b.Other.Children("/lock")
		require.NoError(t, err)
		require.Len(t, nodes, 1)
	})
}

func TestMultiLockHolds(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		var did script
		ctx, stranger := locktest.Owner(t), locktest.Owner(t)
		first := p.Mutex(path + "/a")
		rw := readWriteLock(p, path+"/b")
		last := locktest.SemaphoreMutex(p, path+"/c")
		// so that the last one has not the greatest token
		require.NoError(t, last.Acquire(ctx))
		m := recipes.NewInterProcessMultiLockOf(
			first, stub{name: "own", script: &did}, rw.WriteLock(),
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
		require.Equal(t, holds[2].Check(), hold.Check())
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

// A late lock is granted at the very end of its time.
type late struct{ stub }

func (l late) AcquireTimeout(_ context.Context, timeout time.Duration) (bool, error) {
	time.Sleep(timeout)
	l.script.add("try " + l.name)
	return true, nil
}

// A member that took all the time leaves none to the next; a timeout of 0 would be a try,
// which may last longer in an outage.
func TestMultiLockEndsWithItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s script
		m := recipes.NewInterProcessMultiLockOf(late{
			stub{name: "a", script: &s},
		}, stub{name: "b", script: &s})
		ok, err := m.AcquireTimeout(t.Context(), time.Second)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, []string{"try a", "release a"}, s.take())
		ok, err = m.AcquireTimeout(t.Context(), 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, []string{"try a", "try b"}, s.take())
	})
}

// A hanging lock's release lasts as long as it may.
type hanging struct{ stub }

func (h hanging) Release(ctx context.Context) error {
	began := time.Now()
	<-ctx.Done()
	h.script.add("release " + h.name + " in " + time.Since(began).String())
	return ctx.Err()
}

// What it gives back shares the time for that, however long one takes.
func TestAMultiLockGivesEachTimeToBeGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s script
		refuses := errors.New("refuses")
		m := recipes.NewInterProcessMultiLockOf(
			hanging{stub{name: "a", script: &s}}, hanging{stub{name: "b", script: &s}},
			stub{name: "no", script: &s, errs: []error{refuses}},
		)
		require.ErrorIs(t, m.Acquire(t.Context()), refuses)
		require.Equal(t, []string{
			"acquire a", "acquire b", "acquire no",
			"release b in 40ms", "release a in 40ms",
		}, s.take())

		m = recipes.NewInterProcessMultiLockOf(hanging{stub{name: "a", script: &s}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.Release(ctx), context.DeadlineExceeded)
		require.Equal(t, []string{"release a in 1s"}, s.take(), "its own time")
	})
}

// What it gives back is what it has got: a member that any caller may release can be
// another's by then.
func TestAMultiLockGivesBackWhatItHasGot(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		taken := s.Mutex(t, s.Other, "/taken")
		require.NoError(t, taken.Acquire(locktest.Owner(t)))
		m, err := recipes.NewInterProcessSemaphoreMutex(s.Ours, "/mutex")
		require.NoError(t, err)
		both := recipes.NewInterProcessMultiLockOf(m, s.Mutex(t, s.Ours, "/taken"))
		done := locktest.Start(func() error {
			_, err := both.AcquireTimeout(locktest.Owner(t), time.Minute)
			return err
		})
		time.Sleep(time.Second)
		next := locktest.Owner(t)
		require.NoError(t, m.Release(next))
		require.NoError(t, m.Acquire(next))
		require.ErrorIs(t, <-done, recipes.ErrNotOwner, "it had lost one")
		require.True(t, m.IsAcquiredInThisProcess(), "the next one's was given back")
		require.NoError(t, m.Release(next))
	})
}

// The owner's first lease is lost while a multi lock waits for the second. It has got the
// second, and would wait for itself if it gave back the first.
func TestAMultiLockKnowsItsOwnLeaseFromItsOwners(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		m, err := recipes.NewInterProcessSemaphoreMutex(b.Ours, "/s")
		require.NoError(t, err)
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
		require.ErrorIs(t, m.Release(ctx), recipes.ErrLockLost, "the first one")
		require.NoError(t, multi.Hold(ctx).Err())
		require.NoError(t, multi.Release(ctx))
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := zktest.Start(t)
				client := locktest.ConnectThrough(t, cluster, "ours")
				other := locktest.ConnectThrough(t, cluster, "other")
				last, err := recipes.NewInterProcessMutex(other, "/d")
				require.NoError(t, err)
				require.NoError(t, last.Acquire(locktest.Owner(t)))
				lock, err := recipes.NewInterProcessMultiLock(client, []string{
					"/a", "/b", "/c", "/d",
				})
				require.NoError(t, err)
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
		})
	}
}

// A member of the caller's own kind may acquire for another owner than that of the call.
func TestAMultiLockHoldsAMemberOfAnotherOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		leases := func(conn recipes.Conn) *recipes.InterProcessSemaphoreMutex {
			lock, err := recipes.NewInterProcessSemaphoreMutex(conn, "/a")
			require.NoError(t, err)
			return lock
		}
		ours, theirs := leases(b.Ours), leases(b.Other)
		multi := recipes.NewInterProcessMultiLockOf(
			&anyRelease{ours}, b.Mutex(t, b.Ours, "/b"),
		)
		busy := b.Mutex(t, b.Other, "/b")
		ctx, others := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, busy.Acquire(others))
		acquired := locktest.Start(func() error { return multi.Acquire(ctx) })
		time.Sleep(time.Second)
		require.NoError(t, b.Other.Delete(ours.Hold(ctx).Path(), -1))
		require.NoError(t, theirs.Acquire(others))
		time.Sleep(time.Second)
		require.NoError(t, busy.Release(others))
		time.Sleep(time.Second)
		require.Empty(t, acquired, "it holds /b, and somebody else /a")
		require.NoError(t, theirs.Release(others))
		require.NoError(t, <-acquired)
		require.NoError(t, multi.Release(ctx))
	})
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := zktest.Start(t)
				client := locktest.ConnectThrough(t, cluster, "ours")
				other := locktest.ConnectThrough(t, cluster, "other")
				multi, err := recipes.NewInterProcessMultiLock(client, []string{
					"/a", "/b",
				})
				require.NoError(t, err)
				a, err := recipes.NewInterProcessMutex(other, "/a")
				require.NoError(t, err)
				b, err := recipes.NewInterProcessMutex(other, "/b")
				require.NoError(t, err)
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
		})
	}
}

// A single try is one, also where a member is lost on the way.
func TestAMultiLockIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		a, err := recipes.NewInterProcessMutex(client, "/a")
		require.NoError(t, err)
		last := &sideEffect{do: func() {
			require.True(t, cluster.ExpireSession(client.SessionID()))
			time.Sleep(5 * time.Second)
		}}
		ctx := locktest.Owner(t)
		ok, err := recipes.NewInterProcessMultiLockOf(a, last).AcquireTimeout(ctx, 0)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, 1, last.tries)
		require.ErrorIs(t, a.Release(ctx), recipes.ErrNotOwner, "it was given back")
	})
}

// A sideEffect is a lock that is always free; something happens meanwhile.
type sideEffect struct {
	recipes.InterProcessLock
	do    func()
	tries int
}

func (s *sideEffect) AcquireTimeout(context.Context, time.Duration) (bool, error) {
	s.tries++
	s.do()
	return true, nil
}

func (s *sideEffect) Release(context.Context) error { return nil }

// With a round trip of 100 ms four members take one, and not four.
func TestAMultiLockReleasesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		lock, err := recipes.NewInterProcessMultiLock(client, []string{
			"/a", "/b", "/c", "/d",
		})
		require.NoError(t, err)
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		cluster.Link("ours").Delay(50*time.Millisecond, 50*time.Millisecond)
		began := time.Now()
		require.NoError(t, lock.Release(ctx))
		require.Less(t, time.Since(began), 150*time.Millisecond)
	})
}

// A lockThatLogs embeds one of ours and has a Release of its own, which counts.
type lockThatLogs struct {
	*recipes.InterProcessMutex
	released *int
}

func (l lockThatLogs) Release(ctx context.Context) error {
	*l.released++
	return l.InterProcessMutex.Release(ctx)
}

func TestAMultiLockCallsTheReleaseOfItsMember(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		released, ctx := 0, locktest.Owner(t)
		lock := recipes.NewInterProcessMultiLockOf(lockThatLogs{s.Lock, &released})
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		require.Equal(t, 1, released)
	})
}

// A lockThatPanics embeds one of ours and panics once it is released.
type lockThatPanics struct{ *recipes.InterProcessMutex }

func (l lockThatPanics) Release(ctx context.Context) error {
	if err := l.InterProcessMutex.Release(ctx); err != nil {
		return err
	}
	panic("oh")
}

func TestAMultiLockReleasesTheOthersOfOneThatPanics(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		first, last := s.Mutex(t, s.Ours, "/first"), s.Mutex(t, s.Ours, "/last")
		lock := recipes.NewInterProcessMultiLockOf(
			first, lockThatPanics{s.Lock}, last)
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		require.PanicsWithValue(t, "oh", func() { _ = lock.Release(ctx) })
		for _, l := range []*recipes.InterProcessMutex{first, s.Lock, last} {
			require.False(t, l.IsAcquiredInThisProcess())
		}
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
		mutex, err := recipes.NewInterProcessSemaphoreMutex(s.Ours, "/s")
		require.NoError(t, err)
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
		multi, err := recipes.NewInterProcessMultiLock(conn, []string{"/a", "/b"},
			recipes.WithObserver(func(_ context.Context, e recipes.Event) {
				if e.Kind != recipes.EventAcquired {
					return
				}
				if acquired++; !conn.renewed.Swap(true) {
					require.NoError(t, b.Other.Delete(e.Node, -1)) // with the session
				}
			}))
		require.NoError(t, err)
		ctx := locktest.Owner(t)
		require.NoError(t, multi.Acquire(ctx))
		require.Equal(t, 4, acquired, "the first member was lost before the second")
		time.Sleep(time.Second)
		require.NoError(t, multi.Hold(ctx).Err())
		require.NoError(t, multi.Release(ctx))
	})
}
