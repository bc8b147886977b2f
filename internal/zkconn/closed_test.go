package zkconn_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// HAZARDS E15: on a closed connection every call fails at once, and in an outage calls
// wait; nothing else tells.
func TestAClosedConnectionIsFoundOut(t *testing.T) {
	const never, soon = time.Duration(0), 500 * time.Millisecond
	lost := zk.ErrConnectionClosed
	traced := fmt.Errorf("traced: %w", lost)
	for name, c := range map[string]struct {
		err     error
		latency time.Duration
		state   zk.State
		within  time.Duration // of the first heartbeat that fails
	}{
		"closed":                     {lost, 0, zk.StateDisconnected, soon},
		"closed, behind a wrapper":   {traced, 0, zk.StateDisconnected, soon},
		"closed, and slow to end":    {lost, 0, zk.StateConnecting, 4 * time.Second},
		"lost, as in an outage":      {lost, time.Second, zk.StateConnecting, never},
		"lost, as nobody has seen":   {lost, time.Second, zk.StateDisconnected, never},
		"no server, at once":         {zk.ErrNoServer, 0, zk.StateConnecting, never},
		"no server, as nobody knows": {zk.ErrNoServer, 0, zk.StateDisconnected, never},
		"a refusal, at once":         {zk.ErrNoAuth, 0, zk.StateHasSession, never},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 12 * time.Second
				conn := newFake()
				s := use(t, conn, timeout)
				require.NoError(t, contact(s))
				conn.change(func() {
					conn.err, conn.latency, conn.state = c.err, c.latency, c.state
				})
				began := time.Now()
				select {
				case <-s.Closed():
					require.NotEqual(t, never, c.within)
					require.LessOrEqual(t, time.Since(began), timeout/10+c.within)
				case <-time.After(time.Minute):
					require.Equal(t, never, c.within)
				}
			})
		})
	}
}

// Somebody may wait for a connection without holding anything.
func TestAClosedConnectionIsFoundOutBeforeASyncIsDue(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			conn := newFake()
			s := use(t, conn, timeout)
			require.NoError(t, contact(s))
			conn.change(func() {
				conn.err, conn.state = zk.ErrConnectionClosed, zk.StateDisconnected
			})
			began := time.Now()
			<-s.Closed()
			require.Less(t, time.Since(began), 500*time.Millisecond)
		})
	}
}

// A wrapper may play an outage, in which every call fails at once, and tell of it by
// State or not. What goes through it goes on when it is over.
func TestAWrapperThatPlaysAnOutageIsNotTakenForClosed(t *testing.T) {
	const never, long = time.Duration(0), 12 * time.Second
	for name, c := range map[string]struct {
		timeout time.Duration
		state   zk.State
		within  time.Duration
	}{
		"state not told":        {long, zk.StateHasSession, never},
		"connecting":            {long, zk.StateConnecting, never},
		"disconnected for long": {long, zk.StateDisconnected, long + time.Second},
		"disconnected, short T": {
			time.Second, zk.StateDisconnected, 11 * time.Second,
		},
		"disconnected, T not known": {0, zk.StateDisconnected, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := useWrapped(t, conn, c.timeout)
				require.NoError(t, contact(s))
				conn.change(func() {
					conn.err, conn.state = zk.ErrConnectionClosed, c.state
				})
				began := time.Now()
				select {
				case <-s.Closed():
					require.InDelta(t, c.within, time.Since(began), float64(time.Second))
				case <-time.After(time.Hour):
					require.Equal(t, never, c.within)
				}
			})
		})
	}
}

// zk.ErrClosing is what a closed client ends its watches and pending calls with, and
// nothing else does.
func TestAConnectionThatSaysSoIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := useWrapped(t, conn, time.Hour)
		conn.err = fmt.Errorf("traced: %w", zk.ErrClosing)
		require.ErrorIs(t, contact(s), zk.ErrClosing)
		<-s.Closed()
	})
}

// Between two tries nobody waits for a watch; that it was ended so is seen all the same,
// and without a request.
func TestAWatchThatNobodyWaitsForTellsOfTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := useWrapped(t, conn, time.Hour)
		require.NoError(t, contact(s))
		_, err := s.Watch(t.Context(), "/ahead")
		require.NoError(t, err)
		conn.change(func() { conn.state = zk.StateDisconnected })
		conn.end("/ahead", zk.Event{Err: zk.ErrClosing})
		asked := conn.syncs
		select {
		case <-s.Closed():
		case <-time.After(time.Second):
			t.Fatal("not seen")
		}
		require.Equal(t, asked, conn.syncs)
	})
}

func TestAConnectionThatComesBackWasNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.deleted = func() error { return zk.ErrConnectionClosed }
		s := use(t, conn, time.Hour)
		for range 100 {
			conn.change(func() { conn.state = zk.StateDisconnected })
			for range 200 {
				require.ErrorIs(t, s.Delete("/x", -1), zk.ErrConnectionClosed)
			}
			conn.change(func() { conn.state = zk.StateHasSession })
			time.Sleep(10 * time.Second)
		}
		require.NoError(t, s.Pause(t.Context(), 0))
	})
}

// A connection that hangs for long and breaks again at once is no closed one.
func TestAFlappingConnectionIsNotTakenForClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 30*time.Second)
		hold(t, s, conn, "/held")
		time.Sleep(time.Second)
		// It breaks under a call.
		conn.change(func() { conn.err = zk.ErrConnectionClosed })
		require.ErrorIs(t, contact(s), zk.ErrConnectionClosed)
		mute := make(chan struct{}) // and calls wait from then on
		conn.change(func() { conn.mute, conn.state = mute, zk.StateConnecting })
		time.Sleep(5 * time.Second)
		// It is back, sends what waited, and breaks again, under one more.
		conn.change(func() { conn.mute = nil })
		close(mute)
		time.Sleep(150 * time.Millisecond)
		conn.change(func() { conn.err, conn.state = nil, zk.StateHasSession })
		time.Sleep(time.Second)
		select {
		case <-s.Closed():
			t.Fatal("taken for closed")
		default:
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
		require.NoError(t, s.Hold("/held", 0))
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
			require.ErrorIs(t, lost.why, outcome.ErrClosed)
			require.ErrorIs(t, lost.why, zk.ErrConnectionClosed)
		}
		require.ErrorIs(t, <-ends, outcome.ErrClosed)
		require.ErrorIs(t, <-ends, outcome.ErrClosed)
		require.ErrorIs(t, s.Hold("/held", 0), outcome.ErrClosed)
		end := conn.silence()
		_, err := calls.Call(t.Context(), s, func() (none struct{}, err error) {
			return none, contact(s)
		})
		require.ErrorIs(t, err, outcome.ErrClosed)
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
		s := zkconn.Use(conn, cfg)
		l := hold(t, s, conn, "/held")
		closeConn()
		require.True(t, l.isLost())
		require.ErrorIs(t, l.why, outcome.ErrClosed)
		<-s.Closed()
		s.Release()
		require.True(t, stopped, "the hook outlives the session")
	})
}

// A hold can be released long after its loss, by when its connection is forgotten.
func TestAForgottenConnThatIsUsedAgainIsToldOfTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closeConn func()
		hooks := 0
		cfg := config(time.Second)
		cfg.WhenClosed = func(f func()) func() {
			closeConn = f
			hooks++
			return func() { hooks-- }
		}
		s := zkconn.Use(newFake(), cfg)
		s.Release()
		require.Zero(t, hooks, "it is not forgotten")
		for range 2 {
			s.Retain()
			require.Equal(t, 1, hooks)
			s.Release()
			require.Zero(t, hooks)
		}
		s.Retain()
		closeConn()
		<-s.Closed()
		s.Release()
		require.Zero(t, hooks)
	})
}
