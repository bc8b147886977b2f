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

// goodFor says how long a hold is good after the last contact that the leader surely has heard of, and unsure by how much the last
// contact of all may be ahead of that.
func goodFor(timeout time.Duration) time.Duration { return timeout * 19 / 20 }

func unsure(timeout time.Duration) time.Duration { return min(timeout/4, 2500*time.Millisecond) }

// hold returns a tenant that is held at path, in the session that conn has.
func hold(t *testing.T, s *session.Session, conn session.Conn, path string) *tenant {
	t.Helper()
	require.NoError(t, contact(s, conn))
	l := newTenant()
	s.Bind(path, conn.SessionID(), l)
	require.NoError(t, s.Hold(path))
	return l
}

// CURATOR-460: the time of a suspended holder was counted from the moment at which the client noticed, which comes up to two
// thirds of the session timeout after the last word from the server. It counts from the last request that was answered, and
// from when that was sent: its answer may have taken long.
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
					require.ErrorIs(t, held.why, session.ErrOutOfTouch)
					after := held.at.Sub(conn.lastHeard())
					require.LessOrEqual(t, after, goodFor(timeout)-unsure(timeout))
					require.Greater(t, after, goodFor(timeout)-unsure(timeout)-timeout/10-250*time.Millisecond, "too early")
				})
			})
		}
	}
}

// README: half a session timeout is none, once it has been held for a while; where that is short, a third.
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

// Only what is held can be lost by silence: a waiter has nothing to lose but its place, which it keeps with the session.
func TestSilenceConcernsHoldersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 4*time.Second)
		waiting := newTenant()
		s.Bind("/waiting", 1, waiting)
		defer conn.silence()()
		time.Sleep(time.Minute)
		require.False(t, waiting.isLost())
	})
}

func TestWithoutATimeoutADisconnectIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		held := hold(t, s, conn, "/held")
		time.Sleep(time.Hour)
		require.False(t, held.isLost())
		conn.change(func() { conn.state = zk.StateConnecting })
		began := time.Now()
		held.await(t)
		require.ErrorIs(t, held.why, session.ErrOutOfTouch)
		require.LessOrEqual(t, held.at.Sub(began), 100*time.Millisecond)
	})
}

// HAZARDS E8: a session can be replaced without the client having said that it expired.
func TestAnotherSessionLosesHoldersAndWaiters(t *testing.T) {
	for name, id := range map[string]int64{"none yet": 0, "the next": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, 4*time.Second)
				held, waiting := hold(t, s, conn, "/held"), newTenant()
				s.Bind("/waiting", 1, waiting)
				conn.change(func() { conn.id = id })
				began := time.Now()
				for _, l := range []*tenant{held, waiting} {
					l.await(t)
					require.ErrorIs(t, l.why, session.ErrOver)
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
		s.Bind("/a", 1, newTenant())
		require.ErrorIs(t, s.Hold("/a"), session.ErrOutOfTouch, "nothing was answered yet")
		require.NoError(t, contact(s, conn))
		require.NoError(t, s.Hold("/a"))
		time.Sleep(unsure(timeout)) // in which there are heartbeats
		require.NoError(t, contact(s, conn))

		// A waiter that is told by a mere notification starts from the last answer, not from now.
		end := conn.silence()
		time.Sleep(goodFor(timeout) - unsure(timeout) - time.Millisecond)
		require.NoError(t, s.Hold("/a"))
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, s.Hold("/a"), session.ErrOutOfTouch)
		end()
		require.NoError(t, contact(s, conn))
		require.NoError(t, s.Hold("/a"))

		conn.change(func() { conn.id = 2 })
		require.ErrorIs(t, s.Hold("/a"), session.ErrOver)
	})
}

func TestHoldWithoutATimeoutWantsAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		s.Bind("/a", 1, newTenant())
		require.NoError(t, s.Hold("/a"))
		conn.change(func() { conn.state = zk.StateConnecting })
		require.ErrorIs(t, s.Hold("/a"), session.ErrOutOfTouch)
	})
}

// What proves that the leader is there: a write that he has judged, also if he refused it, in
// the session in which the request was made. What a follower refuses by itself does not
// (enableEagerACLCheck: NoAuth and InvalidACL).
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
				s.Bind("/a", c.id, newTenant())
				_ = s.Contact(func() error {
					conn.change(func() { conn.id = c.id })
					return c.err
				})
				if c.keeps {
					require.NoError(t, s.Hold("/a"))
				} else {
					require.ErrorIs(t, s.Hold("/a"), session.ErrOutOfTouch)
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
		s.Bind("/a", 1, newTenant())
		conn.change(func() { conn.err = zk.ErrNoNode })
		require.ErrorIs(t, s.Sync("/a"), zk.ErrNoNode)
		require.ErrorIs(t, s.Hold("/a"), session.ErrOutOfTouch)
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
		s.Bind("/a", 1, newTenant())
		require.NoError(t, s.Observe(func() error { return nil }))
		require.ErrorIs(t, s.Hold("/a"), session.ErrOutOfTouch)
	})
}

// The leader may not have heard of the last contacts yet when the follower dies that reports them, of none within half a tick. Of
// those before the first, the client's pings are known, one every third of the timeout, and the handshake, which he takes part in.
func TestAHoldCountsOnWhatWasReportedOnly(t *testing.T) {
	const timeout = 12 * time.Second // 2.5 s must lie between a contact and what proves that it was reported
	for name, c := range map[string]struct {
		greeted  time.Duration   // when, in this session
		contacts []time.Duration // when
		counts   time.Duration   // what counts
	}{
		"one":                        {0, []time.Duration{15 * time.Second}, 8500 * time.Millisecond},
		"another too soon":           {0, []time.Duration{15 * time.Second, 17 * time.Second}, 10500 * time.Millisecond},
		"another proves the first":   {0, []time.Duration{15 * time.Second, 17500 * time.Millisecond}, 15 * time.Second},
		"another long after":         {0, []time.Duration{15 * time.Second, 21 * time.Second}, 15 * time.Second},
		"another too long after":     {0, []time.Duration{15 * time.Second, 22 * time.Second}, 15500 * time.Millisecond},
		"the third proves the first": {0, []time.Duration{15 * time.Second, 16 * time.Second, 17600 * time.Millisecond}, 15 * time.Second},
		"a fourth proves the second": {
			0, []time.Duration{15 * time.Second, 16 * time.Second, 17 * time.Second, 18600 * time.Millisecond}, 16 * time.Second,
		},
		"behind a handshake":      {14 * time.Second, []time.Duration{15 * time.Second}, 14 * time.Second},
		"long behind a handshake": {1 * time.Second, []time.Duration{15 * time.Second}, 8500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				conn := newFake()
				cfg := config(timeout)
				cfg.Greeted = func(session int64) (time.Time, bool) { return began.Add(c.greeted), session == 1 && c.greeted > 0 }
				s := useWith(t, conn, cfg)
				held := newTenant()
				s.Bind("/held", 1, held)
				defer conn.silence()() // heartbeats hang; the contacts are made beside the client
				for _, at := range c.contacts {
					time.Sleep(at - time.Since(began))
					require.NoError(t, s.Contact(func() error { return nil }))
				}
				require.NoError(t, s.Hold("/held"))
				held.await(t)
				require.Equal(t, c.counts+goodFor(timeout), held.at.Sub(began))
			})
		})
	}
}

// A request may have reached the server as late as its answer did the client, right behind a ping of the leader.
func TestAContactIsProvedByTheTimeOfItsAnswer(t *testing.T) {
	const timeout = 12 * time.Second
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		conn := newFake()
		s := use(t, conn, timeout)
		held := newTenant()
		s.Bind("/held", 1, held)
		defer conn.silence()() // heartbeats hang; the contacts are made beside the client
		require.NoError(t, s.Contact(func() error {
			time.Sleep(900 * time.Millisecond)
			return nil
		}))
		second := 2600 * time.Millisecond
		time.Sleep(second - time.Since(began))
		require.NoError(t, s.Contact(func() error { return nil }))
		require.NoError(t, s.Hold("/held"))
		held.await(t)
		require.Equal(t, second-timeout/3-unsure(timeout)+goodFor(timeout), held.at.Sub(began))
	})
}

// The handshake of another session, which the client is about to get, says nothing of this one.
func TestAHandshakeCountsForItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg := config(3 * time.Second)
		cfg.Greeted = func(session int64) (time.Time, bool) { return time.Now(), session == 2 }
		s := useWith(t, conn, cfg)
		held := hold(t, s, conn, "/held")
		defer conn.silence()()
		held.await(t)
		require.ErrorIs(t, held.why, session.ErrOutOfTouch)
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
		before := conn.beats()
		time.Sleep(60 * timeout)
		beats := conn.beats() - before
		require.LessOrEqual(t, beats, 10*60, "one every T/10 at most")
		require.Greater(t, beats, 6*60, "and not many fewer: looks are %v apart", 100*time.Millisecond)
	})
}

func TestTrafficSparesTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 3 * time.Second
		conn := newFake()
		s := use(t, conn, timeout)
		held := hold(t, s, conn, "/held")
		before := conn.beats()
		for range 100 {
			time.Sleep(timeout/10 - time.Millisecond)
			require.NoError(t, contact(s, conn))
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
