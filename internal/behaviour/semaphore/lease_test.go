package semaphore_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A Lease is a hold, with all that one can do.
func TestLeaseHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		semaphore := locktest.NewSemaphore(t, s.Ours, "/semaphore", 2)
		leases, err := semaphore.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		hold := leases[0].Hold()
		require.Same(t, hold, leases[0].Hold())
		require.NotSame(t, hold, leases[1].Hold())
		require.Equal(t, "/semaphore/leases/"+leases[0].NodeName(), hold.Path())
		ctx := hold.Context(t.Context())
		released := leases[1].Hold().Context(t.Context())
		_, err = hold.Multi()
		require.NoError(t, err)
		s.Lose(t, hold)
		<-ctx.Done()
		require.Equal(t, leases[0].Err(), hold.Err())
		require.NoError(t, leases[1].Hold().Err())
		require.NoError(t, released.Err())
		require.NoError(t, leases[1].Release(t.Context()))
		require.ErrorIs(t, context.Cause(released), recipes.ErrNotOwner)
		require.ErrorIs(t, leases[0].Release(t.Context()), recipes.ErrLockLost)
	})
}

func TestLease(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		s := locktest.NewSemaphore(
			t, p.Conn, dir, 3, recipes.WithData([]byte("mine")),
			recipes.WithSessionTimeout(p.Timeout),
		)
		leases, err := s.AcquireN(t.Context(), 3)
		require.NoError(t, err)
		for _, l := range leases {
			require.Regexp(t, `^_c_[0-9a-f-]{36}-lease-[0-9]{10}$`, l.NodeName())
			data, err := l.Data(t.Context())
			require.NoError(t, err)
			require.Equal(t, "mine", string(data))
			require.NoError(t, l.Err())
			_, stat, err := other.Conn.Get(dir + "/leases/" + l.NodeName())
			require.NoError(t, err)
			require.GreaterOrEqual(t, l.FencingToken(), stat.Czxid)
		}
		require.NoError(t, leases[0].Release(t.Context()))
		require.NoError(t, leases[0].Release(t.Context()), "again, which does nothing")
		_, err = leases[0].Data(t.Context())
		require.ErrorIs(t, err, zk.ErrNoNode)
		select {
		case <-leases[0].Lost():
			t.Fatal("a release is no loss")
		default:
		}
		for _, l := range leases[1:] {
			require.NoError(t, other.Conn.Delete(dir+"/leases/"+l.NodeName(), -1))
			locktest.Within(t, l.Lost(), "the loss")
			require.ErrorIs(t, l.Err(), recipes.ErrLockLost)
		}
		err = s.ReturnAll(t.Context(), leases)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		for _, l := range leases[1:] {
			require.ErrorContains(t, err, l.NodeName(), "all errors are joined")
			require.NoError(t, l.Release(t.Context()))
		}
		require.NoError(t, s.ReturnAll(t.Context(), nil))
	})
}
