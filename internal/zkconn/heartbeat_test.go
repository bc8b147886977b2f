package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// goodFor says how long a hold is good after the last contact that the leader surely has
// heard of, and unsure by how much the last contact of all may be ahead of that.
func goodFor(timeout time.Duration) time.Duration { return timeout * 19 / 20 }

func unsure(timeout time.Duration) time.Duration {
	tick := min(timeout/2, 10*time.Second)
	return tick/2 + max(tick/20, 25*time.Millisecond)
}

// hold returns an ephemeral that is held at path, in the session that conn has.
func hold(t *testing.T, s *zkconn.Conn, conn zkconn.Client, path string) *ephemeral {
	t.Helper()
	require.NoError(t, contact(s))
	l := newEphemeral()
	s.Track(path, conn.SessionID(), l)
	require.NoError(t, s.Hold(path, 0))
	return l
}

// CURATOR-460: the time of a suspended holder was counted from the moment at which the
// client noticed, which comes up to two thirds of the session timeout after the last word
// from the server. It counts from the last request that was answered, and from when that
// was sent: its answer may have taken long.
func TestAHoldIsLostInTimeByTheLastAnsweredRequest(t *testing.T) {
	for _, timeout := range []time.Duration{
		400 * time.Millisecond, 4 * time.Second, 40 * time.Second,
	} {
		for name, disconnectAfter := range map[string]time.Duration{
			"never noticed": time.Hour, "noticed late": timeout * 2 / 3,
		} {
			t.Run(timeout.String()+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					conn := newFake()
					conn.latency = min(timeout/20, 100*time.Millisecond)
					s := use(t, conn, timeout)
					held := hold(t, s, conn, "/held")
					time.Sleep(10 * timeout)
					require.False(t, held.isLost(), "the heartbeat keeps it")

					defer conn.silence()()
					noticed := time.AfterFunc(disconnectAfter, func() {
						conn.change(func() { conn.state = zk.StateConnecting })
					})
					defer noticed.Stop()
					held.await(t)
					require.ErrorIs(t, held.why, outcome.ErrOutOfTouch)
					after := held.at.Sub(conn.lastHeard())
					require.LessOrEqual(t, after, goodFor(timeout)-unsure(timeout))
					early := timeout/10 + 250*time.Millisecond
					require.Greater(t, after, goodFor(timeout)-unsure(timeout)-early)
				})
			})
		}
	}
}

// README: half a session timeout is none, once it has been held for a while; where that
// is short, a third.
func TestAnOutageWithinTheSessionIsNoLoss(t *testing.T) {
	for timeout, outage := range map[time.Duration]time.Duration{
		400 * time.Millisecond: 133 * time.Millisecond,
		time.Second:            333 * time.Millisecond,
		2 * time.Second:        time.Second,
		4 * time.Second:        2 * time.Second,
		6 * time.Second:        3 * time.Second,
		8 * time.Second:        4 * time.Second,
		10 * time.Second:       5 * time.Second,
		30 * time.Second:       15 * time.Second,
		60 * time.Second:       30 * time.Second,
	} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				conn.latency = time.Millisecond
				s := use(t, conn, timeout)
				held := hold(t, s, conn, "/held")
				time.Sleep(timeout / 2)
				for i := range time.Duration(40) { // at all times between two heartbeats
					end := conn.silence()
					conn.change(func() { conn.state = zk.StateConnecting })
					time.Sleep(outage)
					end()
					conn.change(func() { conn.state = zk.StateHasSession })
					time.Sleep(timeout/2 + i*timeout/400)
					require.False(t, held.isLost(), "outage %d", i)
				}
			})
		})
	}
}

// API: where it is unknown, a second without an answer counts as a loss; a disconnect by
// itself does not.
func TestWithoutATimeoutASecondWithoutAnAnswerIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		held := hold(t, s, conn, "/held")
		time.Sleep(time.Hour)
		require.False(t, held.isLost())
		for range 40 {
			conn.change(func() { conn.state = zk.StateConnecting })
			end := conn.silence()
			time.Sleep(750 * time.Millisecond)
			end()
			conn.change(func() { conn.state = zk.StateHasSession })
			time.Sleep(510 * time.Millisecond)
			require.False(t, held.isLost(), "%v", held.why)
		}
		defer conn.silence()() // the state shows nothing of it
		began := time.Now()
		held.await(t)
		require.ErrorIs(t, held.why, outcome.ErrOutOfTouch)
		require.LessOrEqual(t, held.at.Sub(began), time.Second)
		require.GreaterOrEqual(t, held.at.Sub(began), 800*time.Millisecond)
		require.EqualError(t, held.why,
			"out of touch with ZooKeeper (no response for 1s; "+
				"its session timeout is unknown: ask)")
	})
}

// A heartbeat five times a second is for what needs it.
func TestWithoutATimeoutTheHeartbeatIsSlowWhereNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		time.Sleep(time.Second)
		before := conn.beats()
		time.Sleep(time.Minute)
		require.Equal(t, 12, conn.beats()-before)
		s.Track("/waiting", 1, newEphemeral())
		time.Sleep(5 * time.Second)
		before = conn.beats()
		time.Sleep(time.Minute)
		require.InDelta(t, 300, conn.beats()-before, 1)
	})
}

func TestOneHeartbeatForAllThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 3 * time.Second
		conn := newFake()
		conn.latency = 10 * time.Millisecond
		s := use(t, conn, timeout)
		for _, path := range []string{"/a", "/b", "/c", "/d", "/e"} {
			use(t, conn, timeout)
			hold(t, s, conn, path)
		}
		time.Sleep(timeout) // the first ones come faster
		require.LessOrEqual(t, conn.beats(), 5+13, "five contacts of the test, and beats")
		before := conn.beats()
		time.Sleep(60 * timeout)
		require.InDelta(t, 10*60, conn.beats()-before, 1, "one every T/10")
	})
}

func TestTrafficSparesTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 3 * time.Second
		conn := newFake()
		s := use(t, conn, timeout)
		held := hold(t, s, conn, "/held")
		time.Sleep(timeout)
		before := conn.beats()
		for range 100 {
			require.NoError(t, contact(s))
			time.Sleep(timeout/10 - time.Millisecond)
		}
		require.Equal(t, 100, conn.beats()-before, "none but ours")
		require.False(t, held.isLost())
	})
}

// A sync is sent when it is due, whether the one before was answered or not: what is
// proved would be older by as much. A mute server gets no more than syncsAtMost.
func TestAMuteServerGetsFewHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		use(t, conn, time.Second)
		end := conn.silence()
		time.Sleep(time.Second)
		require.Equal(t, 10, conn.beats())
		time.Sleep(time.Minute)
		require.Equal(t, 20, conn.beats())
		end()
		time.Sleep(time.Second)
		require.Greater(t, conn.beats(), 1, "it goes on afterwards")
	})
}

// Without a connection nothing is answered, and one sync finds out if it was closed.
func TestAConnectionThatIsAwayGetsOneHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		use(t, conn, time.Second)
		defer conn.silence()()
		conn.change(func() { conn.state = zk.StateConnecting })
		time.Sleep(time.Minute)
		require.Equal(t, 1, conn.beats())
	})
}

// While a *zk.Conn looks for a server, the name of its server waits for the user's host
// provider, which may look names up. The holder must not.
func TestALossDoesNotWaitForTheHostProvider(t *testing.T) {
	const timeout = 4 * time.Second
	synctest.Test(t, func(t *testing.T) {
		conn, cfg := newFake(), config(timeout)
		chosen := make(chan struct{})
		defer close(chosen)
		cfg.Server = func() string {
			if conn.State() != zk.StateHasSession {
				<-chosen
			}
			return "a:2181"
		}
		s := useWith(t, conn, cfg)
		held := hold(t, s, conn, "/held")
		time.Sleep(time.Minute)
		require.False(t, held.isLost())
		defer conn.silence()()
		conn.change(func() { conn.state = zk.StateDisconnected })
		cut := time.Now()
		held.await(t)
		require.ErrorIs(t, held.why, outcome.ErrOutOfTouch)
		require.Less(t, time.Since(cut), timeout)
	})
}

// While all are far from their turn no sync is sent, unless the connection is away. The
// first that approaches has one sent, if it is due.
func TestTheHeartbeatRests(t *testing.T) {
	t.Run("*zk.Conn", func(t *testing.T) { heartbeatRests(t, use) })
	t.Run("wrapper", func(t *testing.T) { heartbeatRests(t, useWrapped) })
}

func heartbeatRests(
	t *testing.T, use func(*testing.T, zkconn.Client, time.Duration) *zkconn.Conn,
) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		conn := newFake()
		s := use(t, conn, timeout)
		require.NoError(t, contact(s))
		s.Track("/a", conn.SessionID(), newEphemeral())
		s.Track("/b", conn.SessionID(), newEphemeral())
		s.Rest("/a")
		s.Rest("/b")
		heard := conn.lastHeard()
		require.Nil(t, s.Approach("/b"), "none is due")
		s.Rest("/b")
		time.Sleep(10 * timeout)
		require.Equal(t, heard, conn.lastHeard())

		conn.change(func() { conn.state = zk.StateConnecting })
		time.Sleep(time.Second)
		require.NotEqual(t, heard, conn.lastHeard(), "is it closed?")
		conn.change(func() { conn.state = zk.StateHasSession })
		time.Sleep(time.Second)
		heard = conn.lastHeard()
		time.Sleep(10 * timeout)
		require.Equal(t, heard, conn.lastHeard())

		proof := s.Approach("/a")
		require.NotNil(t, proof)
		require.Nil(t, s.Approach("/b"), "one is under way")
		_, err := proof.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, conn.lastHeard(), time.Now())
		require.NoError(t, s.Hold("/a", 0))
		time.Sleep(10 * timeout)
		require.Less(t, time.Since(conn.lastHeard()), timeout/10+time.Millisecond)
		s.Untrack("/a", s.Ephemeral("/a"))
		s.Untrack("/b", s.Ephemeral("/b"))
	})
}

// The machine was suspended while an ephemeral was far from its turn, which then comes at
// once: the client's pings before that prove nothing.
func TestATurnAfterASuspension(t *testing.T) {
	for _, suspended := range []time.Duration{0, 8 * time.Second, time.Minute} {
		t.Run(suspended.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 10 * time.Second
				conn := newFake()
				s := use(t, conn, timeout)
				require.NoError(t, contact(s))
				s.Track("/a", conn.SessionID(), newEphemeral())
				s.Rest("/a")
				time.Sleep(3 * timeout)
				s.MoveWall(suspended)
				s.Epoch() // reads the clocks; the requests are sent after that
				time.Sleep(time.Nanosecond)
				resumed := time.Now()
				_, err := s.Approach("/a").Wait(t.Context())
				require.NoError(t, err)
				for s.Hold("/a", 0) != nil {
					time.Sleep(10 * time.Millisecond)
				}
				waited := time.Since(resumed)
				if suspended == 0 {
					require.Zero(t, waited)
				} else {
					require.GreaterOrEqual(t, waited, unsure(timeout))
					require.Less(t, waited, unsure(timeout)+timeout/10)
				}
				s.Untrack("/a", s.Ephemeral("/a"))
			})
		})
	}
}
