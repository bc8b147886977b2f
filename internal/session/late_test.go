package session_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/session"
)

// A stalled conn does something right behind the next look at its session id, as if the goroutine that looks had been held up.
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

// The clock's look was held up while a new session began and a znode was made in it: that one is not lost.
func TestALookThatIsLateConcernsNoNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &stalled{fake: newFake()}
		s := use(t, conn, 4*time.Second)
		fresh := newEphemeral()
		conn.then = func() {
			conn.change(func() { conn.id = 2 })
			s.Track("/fresh", 2, fresh)
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

func (f told) SessionEnded(error) { f() }

// Word from the server, and a hold, came between the clock's look and what it tells: that hold is not lost.
func TestALossThatIsLateConcernsNoNewHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 4*time.Second)
		old := hold(t, s, conn, "/old")
		fresh := newEphemeral()
		s.Track("/fresh", 1, fresh)
		end := conn.silence()
		s.Track("/ended", 7, told(func() { // of an ended session, so it is told first, at each look
			if s.Hold("/fresh") != nil && !old.isLost() {
				conn.change(func() { conn.mute = nil })
				require.NoError(t, contact(s))
				require.NoError(t, s.Hold("/fresh"))
			}
		}))
		time.Sleep(3500 * time.Millisecond)
		require.NoError(t, s.Hold("/fresh"))
		require.False(t, fresh.isLost(), "%v", fresh.why)
		end()
	})
}

// A connection that hangs for long and breaks again at once is no closed one.
func TestAFlappingConnectionIsNotTakenForClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 30*time.Second)
		hold(t, s, conn, "/held")
		time.Sleep(time.Second)
		conn.change(func() { conn.err = zk.ErrConnectionClosed }) // it breaks under a call
		require.ErrorIs(t, contact(s), zk.ErrConnectionClosed)
		mute := make(chan struct{}) // and calls wait from then on
		conn.change(func() { conn.mute, conn.state = mute, zk.StateConnecting })
		time.Sleep(5 * time.Second)
		conn.change(func() { conn.mute = nil }) // it is back, sends what waited, and breaks again, under one more
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

var _ session.Ephemeral = told(nil)
