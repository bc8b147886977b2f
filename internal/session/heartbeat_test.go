package session_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/session"
)

// goodFor says how long a hold is good after the last contact that the leader surely has
// heard of, and unsure by how much the last contact of all may be ahead of that.
func goodFor(timeout time.Duration) time.Duration { return timeout * 19 / 20 }

func unsure(timeout time.Duration) time.Duration { return min(timeout/4, 5*time.Second) }

// hold returns an ephemeral that is held at path, in the session that conn has.
func hold(t *testing.T, s *session.Session, conn session.Conn, path string) *ephemeral {
	t.Helper()
	require.NoError(t, contact(s))
	l := newEphemeral()
	s.Track(path, conn.SessionID(), l)
	require.NoError(t, s.Hold(path))
	return l
}

// CURATOR-460: the time of a suspended holder was counted from the moment at which the
// client noticed, which comes up to two thirds of the session timeout after the last word
// from the server. It counts from the last request that was answered, and from when that
// was sent: its answer may have taken long.
func TestAHoldIsLostInTimeByTheLastAnsweredRequest(t *testing.T) {
	for _, timeout := range []time.Duration{400 * time.Millisecond, 4 * time.Second, 40 * time.Second} {
		for name, disconnectAfter := range map[string]time.Duration{"never noticed": time.Hour, "noticed late": timeout * 2 / 3} {
			t.Run(timeout.String()+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					conn := newFake()
					conn.latency = min(timeout/20, 100*time.Millisecond)
					s := use(t, conn, timeout)
					held := hold(t, s, conn, "/held")
					time.Sleep(10 * timeout)
					require.False(t, held.isLost(), "the heartbeat keeps it")

					defer conn.silence()()
					noticed := time.AfterFunc(disconnectAfter, func() { conn.change(func() { conn.state = zk.StateConnecting }) })
					defer noticed.Stop()
					held.await(t)
					require.ErrorIs(t, held.why, session.ErrSuspended)
					after := held.at.Sub(conn.lastHeard())
					require.LessOrEqual(t, after, goodFor(timeout)-unsure(timeout))
					require.Greater(t, after, goodFor(timeout)-unsure(timeout)-timeout/10-250*time.Millisecond, "too early")
				})
			})
		}
	}
}

// README: half a session timeout is none, once it has been held for a while; where that
// is short, a third.
func TestAnOutageWithinTheSessionIsNoLoss(t *testing.T) {
	for timeout, outage := range map[time.Duration]time.Duration{
		400 * time.Millisecond: 133 * time.Millisecond, time.Second: 333 * time.Millisecond,
		2 * time.Second: time.Second, 4 * time.Second: 2 * time.Second, 6 * time.Second: 3 * time.Second, 8 * time.Second: 4 * time.Second,
		10 * time.Second: 5 * time.Second, 30 * time.Second: 15 * time.Second, 60 * time.Second: 30 * time.Second,
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

// Only what is held can be lost by silence: a waiter has nothing to lose but its place,
// which it keeps with the session.
func TestSilenceConcernsHoldersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 4*time.Second)
		waiting := newEphemeral()
		s.Track("/waiting", 1, waiting)
		defer conn.silence()()
		time.Sleep(time.Minute)
		require.False(t, waiting.isLost())
	})
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
		require.ErrorIs(t, held.why, session.ErrSuspended)
		require.LessOrEqual(t, held.at.Sub(began), time.Second)
		require.GreaterOrEqual(t, held.at.Sub(began), 800*time.Millisecond)
		require.EqualError(t, held.why, "out of touch with ZooKeeper (no answer for 1s; "+
			"its session timeout is not known, see WithSessionTimeout)")
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

// HAZARDS E8: a session can be replaced without the client having said that it expired.
func TestAnotherSessionLosesHoldersAndWaiters(t *testing.T) {
	for name, id := range map[string]int64{"none yet": 0, "the next": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, 4*time.Second)
				held, waiting := hold(t, s, conn, "/held"), newEphemeral()
				s.Track("/waiting", 1, waiting)
				conn.change(func() { conn.id = id })
				began := time.Now()
				for _, l := range []*ephemeral{held, waiting} {
					l.await(t)
					require.ErrorIs(t, l.why, session.ErrSessionEnded)
					require.LessOrEqual(t, l.at.Sub(began), 100*time.Millisecond)
				}
			})
		})
	}
}

func TestHoldWantsASessionThatCanBeReliedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 4 * time.Second
		conn := newFake()
		s := use(t, conn, timeout)
		s.Track("/a", 1, newEphemeral())
		require.ErrorIs(t, s.Hold("/a"), session.ErrSuspended, "nothing was answered yet")
		require.NoError(t, contact(s))
		require.NoError(t, s.Hold("/a"))
		time.Sleep(unsure(timeout)) // in which there are heartbeats
		require.NoError(t, contact(s))

		// A waiter that is told by a mere notification starts from the last answer, not
		// from now.
		end := conn.silence()
		time.Sleep(goodFor(timeout) - unsure(timeout) - time.Millisecond)
		require.NoError(t, s.Hold("/a"))
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, s.Hold("/a"), session.ErrSuspended)
		end()
		require.NoError(t, contact(s))
		require.NoError(t, s.Hold("/a"))

		conn.change(func() { conn.id = 2 })
		require.ErrorIs(t, s.Hold("/a"), session.ErrSessionEnded)
	})
}

func TestHoldWithoutATimeoutWantsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		s.Track("/a", 1, newEphemeral())
		require.EqualError(t, s.Hold("/a"), session.ErrSuspended.Error())
		require.NoError(t, contact(s))
		require.NoError(t, s.Hold("/a"))
		defer conn.silence()()
		time.Sleep(time.Second)
		require.ErrorIs(t, s.Hold("/a"), session.ErrSuspended)
	})
}

// The servers' tick can be too long for a session: then no proof comes in time, and to
// try on would be to try for ever.
func TestASessionCanBeTooShortToHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg := config(time.Second)
		cfg.ServerTick = 2 * time.Second
		s := useWith(t, conn, cfg)
		s.Track("/a", 1, newEphemeral())
		require.NoError(t, contact(s))
		err := s.Hold("/a")
		require.ErrorIs(t, err, session.ErrTooShort)
		require.True(t, session.Final(err))
		require.ErrorContains(t, err, "a session timeout of 1s, with a server tick of 2s; it takes 1.5s")
	})
}

// Of several users the one with the longest tick counts.
func TestTheLongestTickCounts(t *testing.T) {
	const timeout = 12 * time.Second
	for name, c := range map[string]struct {
		ticks []time.Duration
		half  time.Duration
	}{
		"none":             {nil, timeout / 4},
		"one":              {[]time.Duration{4 * time.Second}, 2 * time.Second},
		"the longer":       {[]time.Duration{4 * time.Second, 8 * time.Second}, 4 * time.Second},
		"the longer first": {[]time.Duration{8 * time.Second, 4 * time.Second}, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, timeout)
				for _, tick := range c.ticks {
					cfg := config(timeout)
					cfg.ServerTick = tick
					useWith(t, conn, cfg)
				}
				held := newEphemeral()
				s.Track("/held", 1, held)
				defer conn.silence()() // heartbeats hang; the contact is made beside the client
				time.Sleep(time.Second)
				at := time.Now()
				require.NoError(t, s.Delete("/x", -1))
				require.NoError(t, s.Hold("/held"))
				held.await(t)
				require.Equal(t, at.Add(goodFor(timeout)-timeout/3-c.half), held.at)
			})
		})
	}
}

// A machine that was suspended: its monotonic clock has stood still, and the leader's has
// not.
func TestAHoldIsLostWhenTheMachineWakes(t *testing.T) {
	for name, c := range map[string]struct {
		wall time.Duration // how far the wall clock moves on its own
		lost bool
	}{
		"suspended for long":  {time.Minute, true},
		"suspended for short": {time.Second, false},
		"set back":            {-time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, 10*time.Second)
				held := hold(t, s, conn, "/held")
				time.Sleep(10 * time.Second)
				defer conn.silence()() // it wakes without a connection
				s.MoveWall(c.wall)
				time.Sleep(200 * time.Millisecond)
				require.Equal(t, c.lost, held.isLost())
				if !c.lost {
					held.await(t)
				}
				require.ErrorIs(t, held.why, session.ErrSuspended)
			})
		})
	}
}

// Who is woken by a loss wants to know for how long ZooKeeper was silent, and which
// timeout that was measured by.
func TestALossTellsOfTheLastContact(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(s *session.Session, conn *fake)
		says string
	}{
		"out of touch": {
			func(*session.Session, *fake) {},
			"out of touch with ZooKeeper (no contact that counts for 9.5s of the 10s " +
				"session timeout, and no answer for 7s)",
		},
		"session ended": {
			func(_ *session.Session, conn *fake) { conn.change(func() { conn.id = 2 }) },
			"the ZooKeeper session has ended (last answer 400ms ago, session timeout 10s)",
		},
		"closed": {
			func(s *session.Session, _ *fake) { s.ConnClosed() },
			"the connection was closed by its owner (last answer 350ms ago, session timeout 10s)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, 10*time.Second)
				held := hold(t, s, conn, "/held")
				time.Sleep(20 * time.Second)
				require.NoError(t, contact(s))
				defer conn.silence()()
				time.Sleep(350 * time.Millisecond)
				c.end(s, conn)
				held.await(t)
				require.EqualError(t, held.why, c.says)
			})
		})
	}
}

// What proves that the leader is there: a write that he has judged, also if he refused
// it, in the session in which the request was made. What a follower refuses by itself
// does not (enableEagerACLCheck: NoAuth and InvalidACL).
func TestWhatKeepsTheClock(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		id    int64
		keeps bool
	}{
		"an answer":                    {nil, 1, true},
		"a refusal":                    {zk.ErrNoNode, 1, true},
		"not empty":                    {zk.ErrNotEmpty, 1, true},
		"wrapped":                      {fmt.Errorf("tap: %w", zk.ErrBadVersion), 1, true},
		"no permission":                {zk.ErrNoAuth, 1, false},
		"a bad ACL":                    {zk.ErrInvalidACL, 1, false},
		"bad arguments":                {zk.ErrBadArguments, 1, false},
		"read-only":                    {errors.New("unknown error: -119"), 1, false},
		"throttled":                    {errors.New("unknown error: -127"), 1, false},
		"a refusal without a name":     {errors.New("unknown error: -125"), 1, false},
		"a lost connection":            {zk.ErrConnectionClosed, 1, false},
		"no server":                    {zk.ErrNoServer, 1, false},
		"a raw network error":          {errors.New("write tcp: broken pipe"), 1, false},
		"an answer to another session": {nil, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, time.Hour) // no heartbeat gets into the way
				s.Track("/a", c.id, newEphemeral())
				conn.deleted = func() error {
					conn.change(func() { conn.id = c.id })
					return c.err
				}
				require.ErrorIs(t, s.Delete("/a", -1), c.err)
				if c.keeps {
					require.NoError(t, s.Hold("/a"))
				} else {
					require.ErrorIs(t, s.Hold("/a"), session.ErrSuspended)
				}
			})
		})
	}
}

// A follower passes every sync on, and whatever fails it is not known to be the leader.
func TestASyncThatFailedDoesNotKeepTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour) // no heartbeat gets into the way
		s.Track("/a", 1, newEphemeral())
		conn.change(func() { conn.err = zk.ErrNoNode })
		require.ErrorIs(t, s.Sync("/a"), zk.ErrNoNode)
		require.ErrorIs(t, s.Hold("/a"), session.ErrSuspended)
		conn.change(func() { conn.err = nil })
		require.NoError(t, s.Sync("/a"))
		require.NoError(t, s.Hold("/a"))
	})
}

// A follower answers reads by itself, whether it has a leader or not.
func TestAReadDoesNotKeepTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour) // no heartbeat gets into the way
		s.Track("/a", 1, newEphemeral())
		_, _, err := s.Get("/a")
		require.NoError(t, err)
		require.ErrorIs(t, s.Hold("/a"), session.ErrSuspended)
	})
}

// A handshake is known to the leader at once, and its time counts.
func TestAHandshakeCounts(t *testing.T) {
	const timeout = 12 * time.Second
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg, lastHandshake := config(timeout), time.Now().Add(14*time.Second)
		cfg.LastHandshake = func(session int64) (time.Time, bool) { return lastHandshake, session == 1 }
		s := useWith(t, conn, cfg)
		held := newEphemeral()
		s.Track("/held", 1, held)
		defer conn.silence()() // heartbeats hang; the contact is made beside the client
		time.Sleep(15 * time.Second)
		require.NoError(t, s.Delete("/x", -1))
		require.NoError(t, s.Hold("/held"))
		held.await(t)
		require.Equal(t, lastHandshake.Add(goodFor(timeout)), held.at)
	})
}

// The handshake of another session, which the client is about to get, says nothing of
// this one.
func TestAHandshakeCountsForItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg := config(3 * time.Second)
		cfg.LastHandshake = func(session int64) (time.Time, bool) { return time.Now(), session == 2 }
		s := useWith(t, conn, cfg)
		held := hold(t, s, conn, "/held")
		defer conn.silence()()
		held.await(t)
		require.ErrorIs(t, held.why, session.ErrSuspended)
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

func TestAMuteServerGetsOneHeartbeatAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		use(t, conn, time.Second)
		end := conn.silence()
		time.Sleep(time.Minute)
		require.Equal(t, 1, conn.beats())
		end()
		time.Sleep(time.Second)
		require.Greater(t, conn.beats(), 1, "it goes on afterwards")
	})
}
