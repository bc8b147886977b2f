package zkconn_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/reliance"
)

func TestEphemeralsAreTracked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Second)
		here := newEphemeral()
		require.Nil(t, s.Ephemeral("/a"))
		s.Track("/a", 1, here)
		require.Same(t, here, s.Ephemeral("/a"))
		require.Nil(t, s.Ephemeral("/b"))
		s.Untrack("/a", s.Ephemeral("/a"))
		require.Nil(t, s.Ephemeral("/a"))
		require.ErrorIs(t, s.Hold("/a", 0), outcome.ErrSessionEnded)
		conn.change(func() { conn.id = 2 })
		time.Sleep(time.Second)
		require.False(t, here.isLost(), "it moved out")
	})
}

func TestHoldWantsASessionThatCanBeReliedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 4 * time.Second
		conn := newFake()
		s := use(t, conn, timeout)
		s.Track("/a", 1, newEphemeral())
		require.ErrorIs(
			t, s.Hold("/a", 0), outcome.ErrOutOfTouch, "nothing was answered yet",
		)
		require.NoError(t, contact(s))
		require.NoError(t, s.Hold("/a", 0))
		time.Sleep(unsure(timeout)) // in which there are heartbeats
		require.NoError(t, contact(s))

		// A waiter that is told by a mere notification starts from the last answer, not
		// from now.
		end := conn.silence()
		time.Sleep(goodFor(timeout) - unsure(timeout) - time.Millisecond)
		require.NoError(t, s.Hold("/a", 0))
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, s.Hold("/a", 0), outcome.ErrOutOfTouch)
		end()
		require.NoError(t, contact(s))
		require.NoError(t, s.Hold("/a", 0))

		conn.change(func() { conn.id = 2 })
		require.ErrorIs(t, s.Hold("/a", 0), outcome.ErrSessionEnded)
	})
}

func TestHoldWithoutATimeoutWantsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 0)
		s.Track("/a", 1, newEphemeral())
		require.EqualError(t, s.Hold("/a", 0), outcome.ErrOutOfTouch.Error())
		require.NoError(t, contact(s))
		require.NoError(t, s.Hold("/a", 0))
		defer conn.silence()()
		time.Sleep(time.Second)
		require.ErrorIs(t, s.Hold("/a", 0), outcome.ErrOutOfTouch)
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
		err := s.Hold("/a", 0)
		require.ErrorIs(t, err, outcome.ErrTooShort)
		require.True(t, outcome.Final(err))
		require.ErrorContains(t, err,
			"a session timeout of 1s, with a server tick of 2s; at least 1.65s is needed")
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
					require.ErrorIs(t, l.why, outcome.ErrSessionEnded)
					require.LessOrEqual(t, l.at.Sub(began), 100*time.Millisecond)
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

// A stalled conn does something right behind the next look at its session id, as if the
// goroutine that looks had been held up.
type stalled struct {
	*fake
	armed atomic.Bool
	then  func()
}

func (c *stalled) SessionID() int64 {
	id := c.fake.SessionID()
	if c.armed.CompareAndSwap(true, false) {
		c.then()
	}
	return id
}

// The clock's look was held up while a new session began and a znode was made in it: that
// one is not lost.
func TestALookThatIsLateConcernsNoNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &stalled{fake: newFake()}
		s := use(t, conn, 4*time.Second)
		fresh := newEphemeral()
		conn.then = func() {
			conn.change(func() { conn.id = 2 })
			go s.Track("/fresh", 2, fresh) // as soon as the look has ended
		}
		time.Sleep(50 * time.Millisecond) // only the clock runs from here
		conn.armed.Store(true)
		time.Sleep(100 * time.Millisecond)
		require.False(t, conn.armed.Load())
		require.False(t, fresh.isLost(), "%v", fresh.why)
	})
}

// told is an ephemeral that does something when it is lost.
type told func()

func (f told) Lose(error) { f() }

var _ reliance.Ephemeral = told(nil)

// Word from the server, and a hold, came between the clock's look and what it tells: that
// hold is not lost.
func TestALossThatIsLateConcernsNoNewHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 4*time.Second)
		old := hold(t, s, conn, "/old")
		fresh := newEphemeral()
		s.Track("/fresh", 1, fresh)
		end := conn.silence()
		// Of an ended session, so it is told first, at each tick.
		s.Track("/ended", 7, told(func() {
			if s.Hold("/fresh", 0) != nil && !old.isLost() {
				conn.change(func() { conn.mute = nil })
				require.NoError(t, contact(s))
				require.NoError(t, s.Hold("/fresh", 0))
			}
		}))
		time.Sleep(3500 * time.Millisecond)
		require.NoError(t, s.Hold("/fresh", 0))
		require.False(t, fresh.isLost(), "%v", fresh.why)
		end()
	})
}
