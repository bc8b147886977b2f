package recipes_test

import (
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A loss while the release waits for its answer is told from one that was there before:
// the work was done by then.
func TestALossWithinTheRelease(t *testing.T) {
	const within = "while it was being released"
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		link := s.Cluster.Link("ours")
		err := recipes.Do(t.Context(), s.Lock, func(
			_ context.Context, hold *recipes.Hold,
		) error {
			link.Freeze()
			return hold.Err()
		})
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorContains(
			t, err, "recipes: release /lock: "+within+": the lock was lost: ",
		)
		link.Thaw()

		semaphore, err := recipes.NewInterProcessSemaphoreV2(s.Ours, "/semaphore", 1)
		require.NoError(t, err)
		lease, err := semaphore.Acquire(t.Context())
		require.NoError(t, err)
		link.Freeze()
		require.ErrorContains(t, lease.Release(t.Context()), within)
		link.Thaw()
		time.Sleep(time.Minute)

		for name, lose := range map[string]func(*recipes.Hold){
			"known before": func(hold *recipes.Hold) { s.Lose(t, hold) },
			"deleted, and not seen": func(hold *recipes.Hold) {
				require.NoError(t, s.Other.Delete(hold.Path(), -1))
			},
		} {
			err := recipes.Do(t.Context(), s.Lock, func(
				_ context.Context, hold *recipes.Hold,
			) error {
				lose(hold)
				return nil
			})
			require.ErrorIs(t, err, recipes.ErrLockLost, name)
			require.NotContains(t, err.Error(), within, name)
		}
	})
}

func TestHold(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock, ctx := p.Mutex(path), locktest.Owner(t)
	require.Nil(t, lock.Hold(ctx))
	require.Empty(t, lock.LockPath(ctx))
	require.False(t, lock.IsOwned(ctx))
	require.False(t, lock.IsAcquiredInThisProcess())

	require.NoError(t, lock.Acquire(ctx))
	hold := lock.Hold(ctx)
	require.Equal(t, lock.LockPath(ctx), hold.Path())
	require.Equal(
		t, []string{strings.TrimPrefix(hold.Path(), path+"/")}, p.Children(path),
	)
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	require.Regexp(t, path+`/_c_`+uuid+`-lock-0000000000$`, hold.Path())
	require.Nil(t, lock.Hold(locktest.Owner(t)), "another owner's")
	require.True(t, lock.IsAcquiredInThisProcess())
	_, stat, err := p.Conn.Get(hold.Path())
	require.NoError(t, err)
	require.Equal(t, p.Conn.SessionID(), stat.EphemeralOwner)
	require.GreaterOrEqual(t, hold.FencingToken(), stat.Czxid)

	require.NoError(t, lock.Acquire(ctx))
	require.Same(t, hold, lock.Hold(ctx), "a re-entry is the same hold")
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, lock.Release(ctx))
	select {
	case <-hold.Lost():
		t.Fatal("a normal release closed Lost")
	default:
	}
	require.NoError(t, hold.Err())
	require.Nil(t, lock.Hold(ctx))
}

// Hold.Context ends with the hold, with its parent, and by its cancel; not by a release.
func TestHoldContext(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		owner := locktest.Owner(t)
		require.NoError(t, s.Lock.Acquire(owner))
		hold := s.Lock.Hold(owner)
		parent, end := context.WithCancelCause(t.Context())
		child, cancelChild := hold.Context(parent)
		defer cancelChild()
		canceled, cancel := hold.Context(t.Context())
		cancel()
		require.ErrorIs(t, context.Cause(canceled), context.Canceled)
		require.NoError(t, child.Err())
		end(errChangedMind)
		require.ErrorIs(t, context.Cause(child), errChangedMind)

		ctx, cancel := hold.Context(t.Context())
		defer cancel()
		s.Lose(t, hold)
		<-ctx.Done()
		require.Equal(t, hold.Err(), context.Cause(ctx))
		late, cancel := hold.Context(t.Context())
		defer cancel()
		require.Equal(
			t, hold.Err(), context.Cause(late),
			"of a hold that is lost it is done at once",
		)
		require.ErrorIs(t, s.Lock.Release(owner), recipes.ErrLockLost)

		require.NoError(t, s.Lock.Acquire(owner))
		released, cancel := s.Lock.Hold(owner).Context(t.Context())
		defer cancel()
		require.NoError(t, s.Lock.Release(owner))
		synctest.Wait()
		require.NoError(t, released.Err())
	})
}

// The token must lie below the czxid of whoever joins later, although it may be the
// parent's pzxid: also where somebody joined, or left, between our create and our list.
func TestTokenWhenSomebodySlippedIn(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
	_, err := other.Conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	created := p.Tap.NthReply(wiretap.Create, 1, wiretap.Pass)
	var node string
	var once sync.Once
	p.Tap.OnRequest(func(request wiretap.Packet) wiretap.Verdict {
		if request.Op == wiretap.GetChildren2 {
			once.Do(func() {
				<-created
				node, err = other.Conn.CreateProtectedEphemeralSequential(
					path+"/lock-", nil, zk.WorldACL(zk.PermAll),
				)
			})
		}
		return wiretap.Pass
	})
	lock, ctx := p.Mutex(path), locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	require.NoError(t, err)
	_, mine, err := p.Conn.Get(lock.LockPath(ctx))
	require.NoError(t, err)
	_, theirs, err := p.Conn.Get(node)
	require.NoError(t, err)
	require.Less(t, mine.Czxid, theirs.Czxid)
	require.Equal(t, mine.Czxid, lock.Hold(ctx).FencingToken())
	require.NoError(t, lock.Release(ctx))
}

func TestCheckGuardsAMulti(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock, ctx := p.Mutex(path), locktest.Owner(t)
	count := newCounter(t, p)
	set := &zk.SetDataRequest{
		Path: count.path, Data: binary.BigEndian.AppendUint64(nil, 7), Version: -1,
	}
	require.NoError(t, lock.Acquire(ctx))
	hold := lock.Hold(ctx)
	_, err := p.Conn.Multi(hold.Check(), set)
	require.NoError(t, err)
	require.NoError(t, lock.Release(ctx))
	set.Data = binary.BigEndian.AppendUint64(nil, 8)
	_, err = p.Conn.Multi(hold.Check(), set)
	require.ErrorIs(t, err, zk.ErrNoNode)
	n, err := count.value(p.Conn)
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
}
