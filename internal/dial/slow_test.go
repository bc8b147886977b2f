package dial_test

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

// silentConn says nothing until its deadline is over.
type silentConn struct{ fakeConn }

func (c *silentConn) Read([]byte) (int, error) {
	time.Sleep(time.Until(c.readBy))
	return 0, os.ErrDeadlineExceeded
}

// attempt makes an attempt, and returns how long it had for the connection and for the
// handshake.
func attempt(
	t *testing.T, d *dial.Dialer, given *time.Duration,
) (connect, hand time.Duration) {
	t.Helper()
	conn, err := dialOnce(d)
	connect = *given
	if err != nil {
		return connect, 0
	}
	began := time.Now()
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	_, _ = conn.Read(make([]byte, 100))
	return connect, time.Since(began)
}

// If no server has done in its time, each has more in the next round, up to the session
// timeout: for the handshake, and less for the connection. One that does sets it back.
func TestTheTimeForAnAttemptGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		var given time.Duration
		answers := false
		d, _ := dialTo(t, dial.Config{}, "a:1", "b:1")
		d.ConnectBy(func(timeout time.Duration) (net.Conn, error) {
			given = timeout
			if answers {
				return &fakeConn{says: [][]byte{answer(0, 7, 9000)}}, nil
			}
			return &silentConn{}, nil
		})
		for range 2 {
			for _, want := range []struct{ connect, hand time.Duration }{
				{1000 * ms, 3000 * ms},
				{1500 * ms, 4500 * ms},
				{2250 * ms, 6750 * ms},
				{3375 * ms, 9000 * ms},
				{4500 * ms, 9000 * ms},
				{4500 * ms, 9000 * ms},
			} {
				for server := range 2 {
					connect, hand := attempt(t, d, &given)
					require.Equal(t, want.connect, connect, "server %d", server)
					require.Equal(t, want.hand, hand, "server %d", server)
				}
			}
			answers = true
			_, hand := attempt(t, d, &given)
			require.Zero(t, hand)
			answers = false
		}
	})
}

// Servers that refuse, or hang up, need no more time.
func TestTheTimeForAnAttemptDoesNotGrowByRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given time.Duration
		var next net.Conn
		d, _ := dialTo(t, dial.Config{}, "a:1")
		d.ConnectBy(func(timeout time.Duration) (net.Conn, error) {
			given = timeout
			if next == nil {
				return nil, errRefused
			}
			return next, nil
		})
		for range 3 {
			attempt(t, d, &given)
		}
		for range 3 {
			next = &fakeConn{}
			attempt(t, d, &given)
		}
		next = &silentConn{}
		connect, hand := attempt(t, d, &given)
		require.Equal(t, time.Second, connect)
		require.Equal(t, 3*time.Second, hand)
	})
}

// A connection that took all its time counts as well. A dialer of the user's is given the
// time that zk wants: nothing else ends it when the client is closed.
func TestTheTimeForAnAttemptGrowsByConnections(t *testing.T) {
	var given []time.Duration
	connect := func(timeout time.Duration) (net.Conn, error) {
		given = append(given, timeout)
		return nil, os.ErrDeadlineExceeded
	}
	d, _ := dialTo(t, dial.Config{}, "a:1")
	d.ConnectBy(connect)
	own, _ := dialTo(t, dial.Config{Dial: func(
		_, _ string, timeout time.Duration,
	) (net.Conn, error) {
		return connect(timeout)
	}}, "a:1")
	for range 5 {
		_, err := dialOnce(d)
		require.Error(t, err)
	}
	for range 3 {
		_, err := dialOnce(own)
		require.Error(t, err)
	}
	require.Equal(t, []time.Duration{
		time.Second, 3 * time.Second / 2, 9 * time.Second / 4, 27 * time.Second / 8,
		9 * time.Second / 2, time.Second, time.Second, time.Second,
	}, given)
}

// So does a mechanism that took all the time, as one does that asks a slow server.
func TestTheTimeForAnAttemptGrowsByAMechanism(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given time.Duration
		d, _ := dialTo(t, dial.Config{SASL: &dial.SASL{
			Name: "slow", Begin: func(context.Context, string) (dial.SASLStep, error) {
				time.Sleep(time.Minute)
				return nil, os.ErrInvalid
			},
		}}, "a:1")
		d.ConnectBy(func(time.Duration) (net.Conn, error) {
			return &fakeConn{says: [][]byte{answer(0, 7, 9000)}}, nil
		})
		for _, want := range []time.Duration{3 * time.Second, 9 * time.Second / 2} {
			_, hand := attempt(t, d, &given)
			require.Equal(t, want, hand)
		}
		time.Sleep(time.Minute) // until the mechanisms have returned
	})
}
