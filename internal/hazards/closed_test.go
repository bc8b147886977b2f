package hazards_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// calls is every call that asks ZooKeeper for something.
func (s *scene) calls() map[string]func(ctx context.Context) error {
	node := s.path + "/_c_gone-lock-0000000000"
	return map[string]func(context.Context) error{
		"Acquire": s.lock.Acquire,
		"AcquireTimeout": func(ctx context.Context) error {
			_, err := s.lock.AcquireTimeout(ctx, time.Hour)
			return err
		},
		"AcquireTimeout 0": func(ctx context.Context) error {
			_, err := s.lock.AcquireTimeout(ctx, 0)
			return err
		},
		"ParticipantNodes": func(ctx context.Context) error {
			_, err := s.lock.ParticipantNodes(ctx)
			return err
		},
		"Participants": func(ctx context.Context) error {
			_, err := s.lock.Participants(ctx)
			return err
		},
		"AttemptRevoke": func(ctx context.Context) error {
			return recipes.AttemptRevoke(ctx, s.Conn, node)
		},
	}
}

// startCalls makes all calls at once.
func (s *scene) startCalls(t *testing.T) map[string]<-chan error {
	t.Helper()
	results := map[string]<-chan error{}
	for name, call := range s.calls() {
		ctx := locktest.Owner(t)
		results[name] = locktest.Start(func() error { return call(ctx) })
	}
	return results
}

func requireClosed(t *testing.T, results map[string]<-chan error) {
	t.Helper()
	for name, result := range results {
		err := locktest.Within(t, result, name+" does not return")
		require.ErrorIs(t, err, zk.ErrConnectionClosed, name)
	}
}

// A closed connection fails every call at once, which it also does for a moment in an
// outage: to retry spins, or hangs for ever (kazoo 83, 482). No call tells that it is
// closed.
func TestHazardE15_ClosedBefore(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.acquired(t)
		require.NoError(t, s.lock.Release(s.ctx))
		s.Conn.Close()
		requireClosed(t, s.startCalls(t))
		require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrNotOwner)
	})
}

// It is closed while one holds and others wait.
func TestHazardE15_ClosedWhileHeld(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.dropEvents()
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		waiters := s.waiters(t)
		s.Conn.Close()
		requireClosed(t, waiters)
		locktest.Within(t, hold.Lost(), "Lost is not told")
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.ErrorIs(t, hold.Err(), zk.ErrConnectionClosed)
		require.False(t, s.lock.IsAcquiredInThisProcess())
		require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrLockLost)
		s.other.AwaitChildren(s.path, 0)
	})
}

// It is closed before the first Release has anything to tell it by.
func TestHazardE15_ClosedJustBeforeRelease(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.dropEvents()
		s.acquired(t)
		s.Conn.Close()
		err := locktest.Within(
			t, locktest.Start(func() error { return s.lock.Release(s.ctx) }),
			"Release does not return",
		)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
	})
}

// It is closed while another process holds the lock.
func TestHazardE15_ClosedWhileWaiting(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		leave := s.occupy(t)
		waiters := s.waiters(t)
		s.Conn.Close()
		requireClosed(t, waiters)
		s.other.AwaitChildren(s.path, 1)
		leave()
	})
}

// waiters are two owners that wait for the lock, with and without a time limit.
func (s *scene) waiters(t *testing.T) map[string]<-chan error {
	t.Helper()
	first, second := locktest.Owner(t), locktest.Owner(t)
	ahead := len(s.other.Children(s.path))
	results := map[string]<-chan error{
		"Acquire": locktest.Start(func() error { return s.lock.Acquire(first) }),
		"AcquireTimeout": locktest.Start(func() error {
			_, err := s.lock.AcquireTimeout(second, time.Hour)
			return err
		}),
	}
	s.other.AwaitChildren(s.path, ahead+2)
	return results
}

// It is closed during a hang: the client closes its watches only when its loop ends,
// after 12.7 s in a handshake with a session timeout of 2 s. With the one here that would
// be minutes.
func TestHazardE14_ClosedInAnOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			leave := s.occupy(t)
			waiters := s.waiters(t)
			t.Cleanup(func() { outage.end(s.Tap) }) // so that the client's loop can end
			outage.begin(s.Tap)
			calls := s.startCalls(t)
			s.Conn.Close()
			requireClosed(t, waiters)
			// It may be over before anybody can tell that the connection is closed.
			const try = "AcquireTimeout 0"
			tried := locktest.Within(t, calls[try], try)
			if !errors.Is(tried, zk.ErrConnectionClosed) {
				require.ErrorIs(t, tried, recipes.ErrUnavailable)
			}
			delete(calls, try)
			requireClosed(t, calls)
			leave()
		})
	}
}

// The handshake is frozen while the lock is held, and the owner closes the connection.
func TestHazardE14_ClosedInAFrozenHandshakeWhileHeld(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		dropped := s.Tap.NthRequest(wiretap.Connect, 1, wiretap.Drop)
		s.Tap.Cut()
		locktest.Within(t, dropped, "the client does not dial")
		s.Conn.Close()
		locktest.Within(t, hold.Lost(), "Lost is not told")
		require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrLockLost)
		s.Tap.Cut()
	})
}
