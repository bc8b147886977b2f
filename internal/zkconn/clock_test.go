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

func TestTheShortestTimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		require.Zero(t, s.Timeout())
		for _, step := range []struct{ told, want time.Duration }{
			{8 * time.Second, 8 * time.Second},
			{0, 8 * time.Second},
			{4 * time.Second, 4 * time.Second},
			{20 * time.Second, 4 * time.Second},
		} {
			use(t, conn, step.told)
			require.Equal(t, step.want, s.Timeout())
		}
	})
}

// Of several users the one with the longest tick counts.
func TestTheLongestTickCounts(t *testing.T) {
	const timeout, short, long = 12 * time.Second, 4 * time.Second, 8 * time.Second
	for name, c := range map[string]struct {
		ticks []time.Duration
		tick  time.Duration // which counts
	}{
		"none":             {nil, timeout / 2},
		"one":              {[]time.Duration{short}, short},
		"the longer":       {[]time.Duration{short, long}, long},
		"the longer first": {[]time.Duration{long, short}, long},
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
				defer conn.silence()() // heartbeats hang; the contact does not
				time.Sleep(time.Second)
				at := time.Now()
				require.NoError(t, s.Delete("/x", -1))
				require.NoError(t, s.Hold("/held", 0))
				held.await(t)
				period := c.tick/2 + c.tick/20 // of the leader's pings
				require.Equal(t, at.Add(goodFor(timeout)-timeout/3-period), held.at)
			})
		})
	}
}

// A handshake is known to the leader at once, and its time counts.
func TestAHandshakeCounts(t *testing.T) {
	const timeout = 12 * time.Second
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg, lastHandshake := config(timeout), time.Now().Add(14*time.Second)
		cfg.LastHandshake = func(session int64) (time.Time, bool) {
			return lastHandshake, session == 1
		}
		s := useWith(t, conn, cfg)
		held := newEphemeral()
		s.Track("/held", 1, held)
		defer conn.silence()() // heartbeats hang; the contact does not
		time.Sleep(15 * time.Second)
		require.NoError(t, s.Delete("/x", -1))
		require.NoError(t, s.Hold("/held", 0))
		held.await(t)
		require.Equal(t, lastHandshake.Add(goodFor(timeout)), held.at)
	})
}

// A *zk.Conn does not tell of its handshakes. The one after an outage began later than
// that was seen; a wrapper that plays an outage makes none.
func TestTheHandshakeAfterAnOutageCounts(t *testing.T) {
	const timeout = 12 * time.Second
	for name, plain := range map[string]bool{"a zk.Conn": true, "a wrapper": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				cfg := config(timeout)
				cfg.Plain = plain
				s := useWith(t, conn, cfg)
				held := newEphemeral()
				s.Track("/held", 1, held)
				defer conn.silence()() // heartbeats hang; the contact does not
				time.Sleep(14 * time.Second)
				conn.change(func() { conn.state = zk.StateConnecting })
				down := time.Now()
				time.Sleep(time.Second + 50*time.Millisecond)
				conn.change(func() { conn.state = zk.StateHasSession })
				time.Sleep(time.Second)
				require.NoError(t, s.Delete("/x", -1))
				err := s.Hold("/held", 0)
				if !plain { // nobody knows for how long it was away before
					require.ErrorIs(t, err, outcome.ErrOutOfTouch)
					require.ErrorContains(t, err, "leader confirmed is 20.1s old")
					return
				}
				require.NoError(t, err)
				held.await(t)
				require.Equal(t, down.Add(time.Second+goodFor(timeout)), held.at)
			})
		})
	}
}

// Of the client's pings only those count that were due before somebody asked for
// contacts: what holds up the first contact holds up a ping as well.
func TestPingsCountUntilContactsAreAskedFor(t *testing.T) {
	const timeout, tick = 12 * time.Second, time.Second // reports within 0.55 s
	const late = timeout / 10                           // the first contact
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg := config(timeout)
		cfg.ServerTick = tick
		began := time.Now()
		s := useWith(t, conn, cfg)
		held := newEphemeral()
		s.Track("/held", 1, held)
		conn.latency = late
		require.NoError(t, contact(s))
		defer conn.silence()() // heartbeats hang; the contact does not
		time.Sleep(tick / 2)   // the first contact is not proved by then
		require.NoError(t, s.Delete("/x", -1))
		require.NoError(t, s.Hold("/held", 0))
		held.await(t)
		require.Equal(t, began.Add(goodFor(timeout)-timeout/3), held.at)
	})
}

// Whoever only looks, and leaves again before a contact is asked for, changes nothing. A
// contact that was asked for and did not come does: the pings stood still with it, for
// all that is known, until a third of the timeout after it was given up.
func TestPingsCountAgainAfterAnIdleTime(t *testing.T) {
	const timeout = 12 * time.Second // reports within 3.3 s
	const pause, enough = 4 * time.Second, 8 * time.Second
	for name, c := range map[string]struct {
		ask   func(s *zkconn.Conn) error
		pause time.Duration
		good  bool
	}{
		"a look": {
			func(*zkconn.Conn) error { return nil }, pause, true,
		},
		"no answer, a short pause": {contact, pause, false},
		"no answer, a long pause":  {contact, enough, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := zkconn.Use(conn, config(timeout))
				s.Note("so that", "it is not forgotten")
				end := conn.silence()
				go func() { _ = c.ask(s) }()
				time.Sleep(50 * time.Millisecond)
				s.Release()
				end()
				time.Sleep(c.pause)
				use(t, conn, timeout)
				s.Track("/held", 1, newEphemeral())
				require.NoError(t, s.Delete("/x", -1))
				err := s.Hold("/held", 0)
				if c.good {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, outcome.ErrOutOfTouch)
				require.ErrorContains(t, err, "may not have confirmed any request")
			})
		})
	}
}

// The handshake of another session, which the client is about to get, says nothing of
// this one.
func TestAHandshakeCountsForItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg := config(3 * time.Second)
		cfg.LastHandshake = func(session int64) (time.Time, bool) {
			return time.Now(), session == 2
		}
		s := useWith(t, conn, cfg)
		held := hold(t, s, conn, "/held")
		defer conn.silence()()
		held.await(t)
		require.ErrorIs(t, held.why, outcome.ErrOutOfTouch)
	})
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
				require.ErrorIs(t, held.why, outcome.ErrOutOfTouch)
			})
		})
	}
}
