package semaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestSemaphoreMutexIsNotReentrant(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		m, ctx := locktest.SemaphoreMutex(p, path), locktest.Owner(t)
		require.NoError(t, m.Acquire(ctx))
		require.False(t, locktest.Gets(ctx, t, m))
		ok, err := m.AcquireTimeout(ctx, 200*time.Millisecond)
		require.NoError(t, err)
		require.False(t, ok)
		again := locktest.Start(func() error { return m.Acquire(ctx) })
		p.AwaitChildren(path+"/locks", 1)
		p.AwaitChildren(path+"/leases", 2)
		first := m.Hold(ctx)
		require.NoError(t, m.Release(ctx))
		require.NoError(t,
			locktest.Within(t, again, "the second Acquire of the same owner"))
		require.Greater(t, m.Hold(ctx).FencingToken(), first.FencingToken())
		require.NoError(t, m.Release(ctx))
		require.ErrorIs(t, m.Release(ctx), recipes.ErrNotOwner)
	})
}

func TestAnybodyReleasesASemaphoreMutex(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p := zkserver.Path(t), locktest.SharedPeer(t)
		m := locktest.SemaphoreMutex(p, path)
		ctx, other := locktest.Owner(t), locktest.Owner(t)
		err := m.Release(ctx)
		require.ErrorIs(t, err, recipes.ErrNotOwner, "where it is not held")
		require.ErrorContains(t, err, "release "+path)
		require.Nil(t, m.Hold(ctx))
		require.False(t, m.IsAcquiredInThisProcess())

		require.NoError(t, m.Acquire(ctx))
		require.NotNil(t, m.Hold(other), "the hold is the value's, whoever asks")
		require.Same(t, m.Hold(ctx), m.Hold(other))
		require.Same(t, m.Hold(ctx), m.Hold(t.Context()))
		require.Equal(
			t, []string{m.Hold(other).Path()[len(path+"/leases/"):]},
			p.Children(path+"/leases"),
		)
		require.ErrorIs(
			t, locktest.SemaphoreMutex(p, path).Release(ctx), recipes.ErrNotOwner,
			"held through another value",
		)
		require.NoError(t, m.Release(other))
		require.ErrorIs(t, m.Release(ctx), recipes.ErrNotOwner)
		p.AwaitChildren(path+"/leases", 0)
	})
}

// A hold that was lost stays for its owner to release. Curator raced here, too
// (CURATOR-376).
func TestReleaseOfALostSemaphoreMutexSparesTheNextHold(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		m := locktest.SemaphoreMutex(p, path)
		first, second := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, m.Acquire(first))
		lost := m.Hold(first)
		require.NoError(t, other.Conn.Delete(lost.Path(), -1))
		locktest.Within(t, lost.Lost(), "the loss")
		require.Same(t, lost, m.Hold(first))
		require.Same(t, lost, m.Hold(second), "the value's")
		require.False(t, m.IsAcquiredInThisProcess())

		require.NoError(t, m.Acquire(second))
		held := m.Hold(second)
		require.NotSame(t, lost, held)
		require.Same(t, lost, m.Hold(first), "no other's token for the one who lost it")
		require.ErrorIs(t, m.Release(first), recipes.ErrLockLost)
		require.True(t, m.IsAcquiredInThisProcess())
		require.Same(t, held, m.Hold(second))
		require.Same(t, held, m.Hold(first), "the value's, to whoever has none")
		require.NoError(t, held.Err())
		require.False(
			t, locktest.Gets(first, t, locktest.SemaphoreMutex(other, path)),
			"it is still held",
		)
		require.NoError(t, m.Release(first), "anybody may release what is held now")
		require.ErrorIs(t, m.Release(second), recipes.ErrNotOwner)
	})
}

// The same when both holds are of one owner: the lost one is released last.
func TestSemaphoreMutexAcquiredAnewAfterALoss(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		m, ctx := locktest.SemaphoreMutex(p, path), locktest.Owner(t)
		require.NoError(t, m.Acquire(ctx))
		lost := m.Hold(ctx)
		require.NoError(t, other.Conn.Delete(lost.Path(), -1))
		locktest.Within(t, lost.Lost(), "the loss")
		require.NoError(t, m.Acquire(ctx))
		require.NotSame(t, lost, m.Hold(ctx), "the youngest")
		require.True(t, m.IsAcquiredInThisProcess())
		require.NoError(t, m.Release(ctx))
		require.False(t, m.IsAcquiredInThisProcess())
		require.Same(t, lost, m.Hold(ctx), "it is its owner's until it is released")
		require.ErrorIs(t, m.Release(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, m.Release(ctx), recipes.ErrNotOwner)
	})
}

// Whoever has nothing of its own releases what the value has, as in Curator: after a
// loss, the next holder's lease. What was lost before stays its owner's to release, and
// nobody else's.
func TestAStrangerReleasesWhatASemaphoreMutexHasNow(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		m := locktest.SemaphoreMutex(p, path)
		first, second, stranger := locktest.Owner(t), locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, m.Acquire(first))
		lost := m.Hold(first)
		require.NoError(t, other.Conn.Delete(lost.Path(), -1))
		locktest.Within(t, lost.Lost(), "the loss")
		require.NoError(t, m.Acquire(second))
		require.Same(t, m.Hold(second), m.Hold(stranger))
		require.NoError(t, m.Release(stranger))
		p.AwaitChildren(path+"/leases", 0)
		require.Nil(t, m.Hold(second))
		require.Nil(t, m.Hold(stranger))
		require.ErrorIs(t, m.Release(second), recipes.ErrNotOwner, "not the first one's")
		require.ErrorIs(t, m.Release(stranger), recipes.ErrNotOwner)
		require.Same(t, lost, m.Hold(first))
		require.ErrorIs(t, m.Release(first), recipes.ErrLockLost)
		require.ErrorIs(t, m.Release(first), recipes.ErrNotOwner)
	})
}
