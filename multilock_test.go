package recipes_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
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
	refuses, stuck, stuckToo := errors.New("refuses"), errors.New("stuck"), errors.New("stuck, too")
	var did script
	a, b := stub{name: "a", script: &did, errs: []error{nil, stuck}}, stub{name: "b", script: &did, errs: []error{nil, stuckToo}}
	no, z := stub{name: "no", script: &did, errs: []error{refuses}}, stub{name: "z", script: &did}
	m := recipes.NewInterProcessMultiLockOf(a, b, no, z)
	err := m.Acquire(t.Context())
	for _, want := range []error{refuses, stuck, stuckToo} {
		require.ErrorIs(t, err, want)
	}
	require.Equal(t, []string{"acquire a", "acquire b", "acquire no", "release b", "release a"}, did.take())
	ok, err := m.AcquireTimeout(t.Context(), time.Hour)
	require.False(t, ok)
	for _, want := range []error{refuses, stuck, stuckToo} {
		require.ErrorIs(t, err, want)
	}
	require.Equal(t, []string{"try a", "try b", "try no", "release b", "release a"}, did.take())
	require.False(t, m.IsAcquiredInThisProcess())

	m = recipes.NewInterProcessMultiLockOf(a, z, b)
	require.NoError(t, m.Acquire(t.Context()))
	require.True(t, m.IsAcquiredInThisProcess())
	err = m.Release(t.Context())
	require.ErrorIs(t, err, stuck)
	require.ErrorIs(t, err, stuckToo)
	require.Equal(t, []string{"acquire a", "acquire z", "acquire b", "release b", "release z", "release a"}, did.take())
}

// Locks that do not tell their loss are not lost.
func TestDoWithLocksThatTellNoHold(t *testing.T) {
	t.Parallel()
	var did script
	inner := recipes.NewInterProcessMultiLockOf(stub{name: "a", script: &did})
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	mutex := p.Mutex(path)
	for name, m := range map[string]*recipes.InterProcessMultiLock{
		"one level": inner, "two levels": recipes.NewInterProcessMultiLockOf(inner), "beside a mutex": recipes.NewInterProcessMultiLockOf(mutex, inner),
	} {
		require.NoError(t, recipes.Do(t.Context(), m, func(ctx context.Context, _ *recipes.Hold) error {
			require.Equal(t, mutex.IsOwned(ctx), m.Hold(ctx) != nil, name)
			return context.Cause(ctx)
		}), name)
	}
}

func TestMultiLockIsRefused(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	_, err := recipes.NewInterProcessMultiLock(p.Conn, nil)
	require.ErrorContains(t, err, "there are none")
	_, err = recipes.NewInterProcessMultiLock(p.Conn, []string{path, path + "/b", path})
	require.ErrorContains(t, err, path+": paths: it is given twice")
	_, err = recipes.NewInterProcessMultiLock(p.Conn, []string{path, "bad"})
	require.ErrorContains(t, err, `recipes: NewInterProcessMultiLock: path "bad" does not`)
	require.ErrorIs(t, err, zk.ErrInvalidPath)
	_, err = recipes.NewInterProcessMultiLock(nil, []string{path})
	require.ErrorContains(t, err, "nil")

	mutex := p.Mutex(path)
	for why, locks := range map[string][]recipes.InterProcessLock{
		"there are none":          nil,
		"number 1 is nil":         {mutex, nil},
		"number 0 is nil":         {(*recipes.InterProcessMutex)(nil), mutex},
		"number 2 is given twice": {mutex, p.Mutex(path + "/b"), mutex},
	} {
		m := recipes.NewInterProcessMultiLockOf(locks...)
		require.ErrorContains(t, m.Acquire(t.Context()), why)
		ok, err := m.AcquireTimeout(t.Context(), 0)
		require.False(t, ok)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, m.Release(t.Context()), why)
		require.False(t, m.IsAcquiredInThisProcess())
		require.False(t, mutex.IsAcquiredInThisProcess())
	}
}

// Curator gives every lock the whole timeout: 2 s for two paths took it 3.5 s.
func TestHazardA1_20_OneDeadlineForAll(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
	ctx := locktest.Owner(t)
	require.NoError(t, other.Mutex(path).Acquire(ctx))
	var did script
	slow, last := stub{name: "slow", script: &did, wait: timeout - timeout/4}, stub{name: "last", script: &did}
	m := recipes.NewInterProcessMultiLockOf(slow, p.Mutex(path), last)
	began := time.Now()
	ok, err := m.AcquireTimeout(ctx, timeout)
	took := time.Since(began)
	require.NoError(t, err)
	require.False(t, ok)
	require.GreaterOrEqual(t, took, timeout)
	require.Less(t, took, timeout+grace)
	require.Equal(t, []string{"try slow", "release slow"}, did.take(), "it stops at the first failure")
	other.AwaitChildren(path, 1)
}

func TestMultiLockHolds(t *testing.T) {
	t.Parallel()
	path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
	var did script
	ctx, stranger := locktest.Owner(t), locktest.Owner(t)
	first := p.Mutex(path + "/a")
	rw := readWriteLock(p, path+"/b")
	last := semaphoreMutex(p, path+"/c")
	require.NoError(t, last.Acquire(ctx)) // so that the last one has not the greatest token
	m := recipes.NewInterProcessMultiLockOf(first, stub{name: "own", script: &did}, rw.WriteLock(), recipes.NewInterProcessMultiLockOf(last))
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
	require.Equal(t, max(holds[0].FencingToken(), holds[1].FencingToken(), holds[2].FencingToken()), hold.FencingToken())
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
}

// The greatest token is not always the last member's.
func TestMultiLockHasTheGreatestToken(t *testing.T) {
	t.Parallel()
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
}

// Two owners can hold a multi lock of shared locks at once: each has a Hold of its own that stays the same.
func TestMultiLockOfReaders(t *testing.T) {
	t.Parallel()
	path, p := zkserver.Path(t), locktest.SharedPeer(t)
	m := recipes.NewInterProcessMultiLockOf(readWriteLock(p, path+"/a").ReadLock(), readWriteLock(p, path+"/b").ReadLock())
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
}

func TestDoEndsWhenAnyMemberIsLost(t *testing.T) {
	t.Parallel()
	for member := range 3 {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		paths := []string{path + "/a", path + "/b", path + "/c"}
		m, err := recipes.NewInterProcessMultiLock(p.Conn, paths, recipes.WithSessionTimeout(p.Timeout))
		require.NoError(t, err)
		var nodes []string
		err = recipes.Do(t.Context(), m, func(ctx context.Context, _ *recipes.Hold) error {
			for _, hold := range m.Holds(ctx) {
				nodes = append(nodes, hold.Path())
			}
			require.NoError(t, other.Conn.Delete(nodes[member], -1))
			locktest.Within(t, ctx.Done(), "the loss is not told")
			require.ErrorIs(t, context.Cause(ctx), recipes.ErrLockLost)
			return nil
		})
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorContains(t, err, nodes[member])
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(nodes))), 3)
		for _, path := range paths {
			other.AwaitChildren(path, 0)
		}
	}
}

// A late lock is granted at the very end of its time.
type late struct{ stub }

func (l late) AcquireTimeout(_ context.Context, timeout time.Duration) (bool, error) {
	time.Sleep(timeout)
	l.script.add("try " + l.name)
	return true, nil
}

// A member that took all the time leaves none to the next; a timeout of 0 would be a try, which may last longer in an outage.
func TestMultiLockEndsWithItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s script
		m := recipes.NewInterProcessMultiLockOf(late{stub{name: "a", script: &s}}, stub{name: "b", script: &s})
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
