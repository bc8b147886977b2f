package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A member is released under a time of its own where the others could not be acquired: the caller's is over, and in an outage that
// would take as long as the session.
func TestAMultiLockGivesBackInTime(t *testing.T) {
	const timeout = time.Second
	for name, acquire := range map[string]func(ctx context.Context, lock *recipes.InterProcessMultiLock) error{
		"timeout": func(ctx context.Context, lock *recipes.InterProcessMultiLock) error {
			ok, err := lock.AcquireTimeout(ctx, timeout)
			require.False(t, ok)
			require.ErrorIs(t, err, recipes.ErrUnavailable, "it was cut off meanwhile")
			return nil
		},
		"cancelled": func(ctx context.Context, lock *recipes.InterProcessMultiLock) error {
			ctx, cancel := context.WithTimeoutCause(ctx, timeout, errChangedMind)
			defer cancel()
			err := lock.Acquire(ctx)
			require.ErrorIs(t, err, errChangedMind)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zktest.Start(t)
				client, other := locktest.ConnectThrough(t, server, "ours"), locktest.ConnectThrough(t, server, "other")
				last, err := recipes.NewInterProcessMutex(other, "/d")
				require.NoError(t, err)
				require.NoError(t, last.Acquire(locktest.Owner(t)))
				lock, err := recipes.NewInterProcessMultiLock(client, []string{"/a", "/b", "/c", "/d"})
				require.NoError(t, err)
				time.AfterFunc(timeout/2, server.Link("ours").Cut)

				began := time.Now()
				require.NoError(t, acquire(locktest.Owner(t), lock))
				require.LessOrEqual(t, time.Since(began), timeout+250*time.Millisecond)
				server.Link("ours").Heal()
				time.Sleep(5 * time.Second)
				require.Equal(t, 4+1, len(server.Znodes()), "the four directories, and the holder's: %v", server.Znodes())
			})
		})
	}
}

// The client keeps a delete that it could not send, and sends it in the next session: that the znode is gone then proves nothing.
func TestAReleaseThatOutlivesItsSessionIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.WithServers(3))
		client := locktest.ConnectThrough(t, server, "ours")
		lock, err := recipes.NewInterProcessMutex(client, "/lock")
		require.NoError(t, err)
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		session := client.SessionID()
		server.Link("ours").Stall(zktest.ToServer)
		released := locktest.Start(func() error { return lock.Release(ctx) })
		synctest.Wait()
		server.Link("ours").Reset()        // the delete is lost
		time.Sleep(100 * time.Millisecond) // it tries again, and the client to connect
		server.ExpireSession(session)
		time.Sleep(100 * time.Millisecond)
		server.Link("ours").Heal()
		require.ErrorIs(t, <-released, recipes.ErrLockLost)
	})
}

// While it waits for one member, a multi lock can lose another.
func TestAMultiLockHoldsAllItsMembers(t *testing.T) {
	for name, lose := range map[string]func(server *zktest.Server, client, other *recipes.Client){
		"expired": func(server *zktest.Server, client, _ *recipes.Client) { server.ExpireSession(client.SessionID()) },
		"deleted": func(_ *zktest.Server, _, other *recipes.Client) {
			nodes, _, err := other.Children("/a")
			require.NoError(t, err)
			require.NoError(t, other.Delete("/a/"+nodes[0], -1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zktest.Start(t)
				client, other := locktest.ConnectThrough(t, server, "ours"), locktest.ConnectThrough(t, server, "other")
				multi, err := recipes.NewInterProcessMultiLock(client, []string{"/a", "/b"})
				require.NoError(t, err)
				a, err := recipes.NewInterProcessMutex(other, "/a")
				require.NoError(t, err)
				b, err := recipes.NewInterProcessMutex(other, "/b")
				require.NoError(t, err)
				ctx, others := locktest.Owner(t), locktest.Owner(t)
				require.NoError(t, b.Acquire(others))
				acquired := locktest.Start(func() error { return multi.Acquire(ctx) })
				time.Sleep(time.Second)
				lose(server, client, other)
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
		server := zktest.Start(t)
		client := locktest.ConnectThrough(t, server, "ours")
		a, err := recipes.NewInterProcessMutex(client, "/a")
		require.NoError(t, err)
		last := &sideEffect{do: func() {
			require.True(t, server.ExpireSession(client.SessionID()))
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
