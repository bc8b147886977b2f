package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/session"
)

func TestUseSharesOneSessionPerConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newFake(), newFake()
		s := session.Use(one, config(time.Second))
		require.Same(t, s, session.Use(one, config(time.Second)))
		require.NotSame(t, s, use(t, other, time.Second))
		s.Release()
		require.Same(t, s, session.Use(one, config(time.Second)), "it has a user still")
		s.Release()
		s.Release()
		require.NotSame(t, s, use(t, one, time.Second), "it went with its last user")
	})
}

func TestASessionWithoutUsersAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := session.Use(conn, config(time.Second))
		time.Sleep(10 * time.Second)
		s.Release()
		synctest.Wait()
		asked := conn.beats()
		require.NotZero(t, asked)
		time.Sleep(time.Hour)
		require.Equal(t, asked, conn.beats())
	})
}

func TestTheShortestTimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		require.Zero(t, s.Timeout())
		for _, step := range []struct{ told, want time.Duration }{
			{8 * time.Second, 8 * time.Second}, {0, 8 * time.Second}, {4 * time.Second, 4 * time.Second}, {20 * time.Second, 4 * time.Second},
		} {
			use(t, conn, step.told)
			require.Equal(t, step.want, s.Timeout())
		}
	})
}

func TestAClosedConnectionEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 4*time.Second)
		waiting, held := newEphemeral(), newEphemeral()
		s.Track("/waiting", 1, waiting)
		s.Track("/held", 1, held)
		require.NoError(t, contact(s))
		require.NoError(t, s.Hold("/held"))
		conn.change(func() { conn.state = zk.StateDisconnected })
		ends := make(chan error, 2)
		go func() { ends <- awaitReady(t.Context(), s) }()
		go func() { ends <- s.Pause(t.Context(), time.Hour) }()
		synctest.Wait()
		require.Empty(t, ends)

		s.ConnClosed()
		s.ConnClosed() // again is no harm
		<-s.Closed()
		for _, lost := range []*ephemeral{waiting, held} {
			require.True(t, lost.isLost())
			require.ErrorIs(t, lost.why, session.ErrClosed)
			require.ErrorIs(t, lost.why, zk.ErrConnectionClosed)
		}
		require.ErrorIs(t, <-ends, session.ErrClosed)
		require.ErrorIs(t, <-ends, session.ErrClosed)
		require.ErrorIs(t, s.Hold("/held"), session.ErrClosed)
		end := conn.silence()
		_, err := session.Call(t.Context(), s, func() (struct{}, error) { return struct{}{}, contact(s) })
		require.ErrorIs(t, err, session.ErrClosed)
		end()
	})
}

func TestAConnThatTellsItsCloseFailsTheSessionBeforeCloseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		var closeConn func()
		stopped := false
		cfg := config(time.Second)
		cfg.WhenClosed = func(f func()) func() {
			closeConn = f
			return func() { stopped = true }
		}
		s := session.Use(conn, cfg)
		l := hold(t, s, conn, "/held")
		closeConn()
		require.True(t, l.isLost())
		require.ErrorIs(t, l.why, session.ErrClosed)
		<-s.Closed()
		s.Release()
		require.True(t, stopped, "the hook outlives the session")
	})
}

func TestEphemeralsAreTracked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Second)
		here := newEphemeral()
		require.Nil(t, s.Ephemeral("/a"))
		s.Track("/a", 1, here)
		require.Same(t, here, s.Ephemeral("/a"))
		require.Nil(t, s.Ephemeral("/b"))
		s.Untrack("/a")
		require.Nil(t, s.Ephemeral("/a"))
		require.ErrorIs(t, s.Hold("/a"), session.ErrSessionEnded)
		conn.change(func() { conn.id = 2 })
		time.Sleep(time.Second)
		require.False(t, here.isLost(), "it moved out")
	})
}

func TestReconnectedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 8*time.Second)
		before := s.Reconnected()
		conn.change(func() { conn.state = zk.StateConnecting })
		time.Sleep(time.Second)
		require.Equal(t, before, s.Reconnected(), "it is away still")
		conn.change(func() { conn.state = zk.StateHasSession })
		<-before
		after := s.Reconnected()
		time.Sleep(time.Second)
		require.Equal(t, after, s.Reconnected(), "nothing has happened since")
		conn.change(func() { conn.id = 2 }) // too short a gap to be seen, but another session
		<-after

		// Too short again, but a call was lost in it.
		after = s.Reconnected()
		conn.change(func() { conn.deleted = func() error { return zk.ErrConnectionClosed } })
		require.Error(t, s.Delete("/x", -1))
		<-after
	})
}

func TestContainersIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := session.Use(conn, config(time.Second))
		unimplemented := errors.New("unknown error: -6")
		conn.change(func() { conn.containers = unimplemented })
		require.ErrorIs(t, s.CreateContainer("/a", nil), unimplemented)
		require.NoError(t, s.CreateContainer("/a", nil))
		s.Release()
		time.Sleep(time.Hour)
		again := session.Use(conn, config(time.Second))
		require.NoError(t, again.CreateContainer("/a", nil), "to ask again would cost the connection")
		conn.change(func() { conn.state = zk.StateDisconnected }) // closed, as it seems
		again.Release()
		conn.change(func() { conn.state = zk.StateHasSession })
		require.ErrorIs(t, use(t, conn, time.Second).CreateContainer("/a", nil), unimplemented,
			"what was closed is forgotten")
	})
}

var errEnough = errors.New("enough")

func TestReadyAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 8*time.Second)
		began := time.Now()
		require.NoError(t, awaitReady(t.Context(), s))
		require.NoError(t, s.Pause(t.Context(), 0))
		require.Equal(t, began, time.Now())
		require.NoError(t, s.Pause(t.Context(), time.Second))
		require.Equal(t, began.Add(time.Second), time.Now())

		conn.change(func() { conn.id = 0 }) // authenticated, but not told the session yet
		ready := make(chan error, 1)
		go func() { ready <- awaitReady(t.Context(), s) }()
		time.Sleep(time.Second)
		require.Empty(t, ready)
		conn.change(func() { conn.id = 1 })
		require.NoError(t, <-ready)

		require.ErrorIs(t, s.Pause(cancelled(t, errEnough), 0), errEnough)
		require.ErrorIs(t, awaitReady(cancelled(t, errEnough), s), errEnough)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
		defer cancel()
		began = time.Now()
		require.ErrorIs(t, s.Pause(ctx, time.Hour), errEnough)
		require.Equal(t, began.Add(time.Second), time.Now())
	})
}
