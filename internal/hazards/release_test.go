package hazards_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// The delete must be done, whatever becomes of its request: else a released lock stays
// locked (CURATOR-42). That it finds nothing at its second attempt is no loss.
func TestHazardA1_6_DeleteLost(t *testing.T) {
	t.Parallel()
	zkserver.Resuming(t)
	for name, lose := range map[string]func(s *scene) <-chan struct{}{
		"the reply": func(s *scene) <-chan struct{} {
			return s.Tap.LoseReply(wiretap.Delete, 1)
		},
		"the request": func(s *scene) <-chan struct{} {
			return s.Tap.LoseRequest(wiretap.Delete, 1)
		},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			s.acquired(t)
			hold := s.lock.Hold(s.ctx)
			lost := lose(s)
			require.NoError(t, s.lock.Release(s.ctx))
			locktest.Within(t, lost, "nothing was lost")
			require.Empty(
				t, s.other.Children(s.path),
				"Release returned before its outcome was known",
			)
			require.NoError(t, hold.Err())
			require.Equal(
				t, []string{hold.Path(), hold.Path()}, s.requests(wiretap.Delete),
			)
			s.acquired(t)
			s.holdsAlone(t)
		})
	}
}

// Release in an outage, by a caller who does not want to wait: it says so in time, and
// the znode goes as soon as ZooKeeper is back.
func TestHazardA1_6_ReleaseInAnOutage(t *testing.T) {
	t.Parallel()
	zkserver.Resuming(t)
	for name, limit := range map[string]time.Duration{
		"ctx ends during Release": 50 * time.Millisecond,
		"ctx has ended before":    0,
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			s.acquired(t)
			hold, session := s.lock.Hold(s.ctx), s.Conn.SessionID()
			s.Tap.Refuse(true)
			s.Tap.Cut()
			ctx, cancel := context.WithTimeout(s.ctx, limit)
			defer cancel()
			err := locktest.Within(
				t, locktest.Start(func() error { return s.lock.Release(ctx) }),
				"Release waits for ZooKeeper",
			)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, recipes.ErrLockLost)
			require.ErrorContains(t, err, hold.Path())
			require.False(t, s.lock.IsOwned(s.ctx))
			require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrNotOwner)
			require.Len(t, s.other.Children(s.path), 1)
			s.Tap.Refuse(false)
			s.other.AwaitChildren(s.path, 0)
			require.Equal(
				t, session, s.Conn.SessionID(), "it is not the session's end that did it",
			)
			s.acquired(t)
			s.holdsAlone(t)
		})
	}
}

// The delete is not answered yet: the same owner acquired anew behind its own dying znode
// (CURATOR-678). A late retry of that delete must not hit the new hold, either (etcd
// 22082).
func TestHazardA1_5_AcquireBehindTheOwnDyingZnode(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		zkserver.Resuming(t)
		s := newScene(t)
		s.acquired(t)
		first := s.lock.LockPath(s.ctx)
		dropped := s.Tap.NthRequest(wiretap.Delete, 1, wiretap.Drop)
		ctx, cancel := context.WithCancel(s.ctx)
		released := locktest.Start(func() error { return s.lock.Release(ctx) })
		locktest.Within(t, dropped, "no delete")
		cancel()
		require.ErrorIs(
			t, locktest.Within(t, released, "Release does not heed its ctx"),
			context.Canceled,
		)
		s.acquired(t)
		second := s.lock.Hold(s.ctx)
		require.Len(t, s.other.Children(s.path), 2)
		require.NotEqual(t, first, second.Path())
		require.False(
			t, locktest.Try(t, s.other, s.path), "another process holds the lock, too",
		)
		s.Tap.Cut() // ends the call that waits for the answer
		locktest.Eventually(
			t, func() bool { return len(s.requests(wiretap.Delete)) == 2 },
			"the delete is not retried",
		)
		s.holdsAlone(t)
		require.NoError(t, second.Err())
		require.Equal(t, []string{first, first, second.Path()},
			s.requests(wiretap.Delete))
	})
}
