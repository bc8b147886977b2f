package hazards_test

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// isLost checks what an owner is told that acquired the lock a number of times and lost
// it: no re-entry, ErrLockLost for each Release and its hold until the last, and after
// that an owner like any other.
func (s *scene) isLost(t *testing.T, hold *recipes.Hold, times int) {
	t.Helper()
	locktest.Within(t, hold.Lost(), "Lost is not told")
	require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
	require.False(t, s.lock.IsOwned(s.ctx))
	require.False(t, s.lock.IsAcquiredInThisProcess())
	require.Empty(t, s.lock.LockPath(s.ctx))
	for range times {
		require.Equal(t, hold.Path(), s.lock.Hold(s.ctx).Path(),
			"it is its owner's until it is released")
		require.ErrorIs(t, s.lock.Acquire(s.ctx), recipes.ErrLockLost, "it is re-entered")
		require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrLockLost)
	}
	require.Nil(t, s.lock.Hold(s.ctx))
	require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrNotOwner)
	require.ErrorIs(t, s.steps.Nth(t, recipes.EventLost, 1).Err, recipes.ErrLockLost)
}

// After the session's end the owner re-entered from a local table, and was told that it
// had the lock (CURATOR-206; kazoo and zk.Lock besides could never be used again).
func TestHazardA1_3_SessionExpiredWhileHolding(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newSceneWith(t, locktest.NewPeer(t, locktest.ManyNames(t), locktest.Short))
		for range 3 {
			s.acquired(t)
		}
		hold := s.lock.Hold(s.ctx)
		s.expire(t, hold.Path())
		s.isLost(t, hold, 3)
		s.acquired(t)
		s.holdsAlone(t)
	})
}

// The session was told to be over, and the server still has the znode: the hold is over
// at once all the same.
func TestHazardA1_3_SessionToldExpiredWhileHolding(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		s.tellExpired(t)
		s.isLost(t, hold, 1)
	})
}

// A listener that blocks, called in the client's event thread with the recipe's monitor
// held, kept the client from reconnecting (CURATOR-495).
func TestHazardA1_15_ListenerThatBlocks(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		zkserver.Resuming(t)
		s := newScene(t)
		called, release := make(chan struct{}), make(chan struct{})
		t.Cleanup(func() { close(release) })
		var once sync.Once
		s.lock.MakeRevocable(func() {
			once.Do(func() { close(called) })
			<-release
		})
		s.acquired(t)
		require.NoError(
			t, recipes.AttemptRevoke(t.Context(), s.other.Conn, s.lock.LockPath(s.ctx)),
		)
		locktest.Within(t, called, "the listener is not called")
		asked := locktest.Start(func() error {
			s.lock.IsOwned(s.ctx)
			return nil
		})
		require.NoError(t, locktest.Within(t, asked, "the listener holds up the lock"))
		s.Tap.Cut()
		s.holdsAlone(t)
		s.acquired(t)
		s.holdsAlone(t)
	})
}

// The own znode is deleted by a stranger while the lock is held.
func TestHazardA2_DeletedWhileHeld(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.acquired(t)
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		s.delete(t, hold.Path())
		s.isLost(t, hold, 2)
		s.acquired(t)
		s.holdsAlone(t)
	})
}

// The owner releases before it can have been told that its znode is gone: its work was
// not protected to the end.
func TestHazardA2_DeletedJustBeforeRelease(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.dropEvents()
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		s.awaitWatch(t, hold.Path(), 1)
		s.delete(t, hold.Path())
		require.NoError(t, hold.Err(), "the event was dropped")
		require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrLockLost)
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		locktest.Within(t, hold.Lost(), "Lost is not told")
		require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrNotOwner)
	})
}

// Where the session timeout is not known, no disconnect can be told from a loss.
func TestHazardE5_UnknownSessionTimeout(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		lock := locktest.NewMutex(
			t, s.Conn, s.path, recipes.WithObserver(s.steps.Observe),
		)
		s.lock = lock
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		release := make(chan struct{})
		s.Tap.NthRequest(wiretap.Connect, 1, wiretap.Hold(release))
		s.Tap.Cut()
		s.isLost(t, hold, 1)
		close(release)
		// it would block others for as long as the session lasts
		s.other.AwaitChildren(s.path, 0)
	})
}

// A forgetfulLine is a connection whose first packet, once told to forget, asks for a new
// session instead of the old one.
type forgetfulLine struct {
	net.Conn
	forget bool
}

func (l *forgetfulLine) Write(b []byte) (int, error) {
	const length, version, zxid, timeout, session = 4, 4, 8, 4, 8
	if l.forget {
		l.forget = false
		b = append([]byte{}, b...)
		binary.BigEndian.PutUint64(b[length+version+zxid+timeout:][:session], 0)
	}
	return l.Conn.Write(b)
}

// newForgetfulPeer opens a session. After forget each reconnect gives the client another
// session without a word of the old one's end, as ClickHouse Keeper does.
func newForgetfulPeer(t *testing.T) (p *locktest.Peer, forget func()) {
	t.Helper()
	var forgets atomic.Bool
	line := func(conn net.Conn) net.Conn {
		return &forgetfulLine{Conn: conn, forget: forgets.Load()}
	}
	p = locktest.NewPeerOver(t, locktest.ManyNames(t), locktest.Lasting, line)
	return p, func() { forgets.Store(true) }
}

// The session id changes, and "expired" is never told (ClickHouse 116690): the hold is
// over at once, and not only when its znode goes.
func TestHazardE8_NewSessionWithoutAWord(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, forget := newForgetfulPeer(t)
		s := newSceneWith(t, p)
		old := s.Conn.SessionID()
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		forget()
		s.Tap.Cut()
		s.isLost(t, hold, 1)
		require.NotEqual(t, old, s.Conn.SessionID())
		require.Equal(t, zk.StateHasSession, s.Conn.State())
		s.acquired(t) // the server goes on to keep the old session, and its znode
		s.holdsAlone(t)
	})
}

// A waiter does not wait behind its own znode of the session before.
func TestHazardE8_NewSessionWithoutAWordWhileWaiting(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, forget := newForgetfulPeer(t)
		s := newSceneWith(t, p)
		leave := s.occupy(t)
		done := s.acquire()
		first := s.steps.Nth(t, recipes.EventQueued, 1).Node
		forget()
		s.Tap.Cut()
		second := s.steps.Nth(t, recipes.EventQueued, 2).Node
		require.NotEqual(t, first, second)
		leave()
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		require.Equal(t, second, s.lock.LockPath(s.ctx))
		s.holdsAlone(t)
	})
}
