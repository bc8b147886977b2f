package dial_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

// fakeConn answers with these bytes, a read for each slice, and then hangs up.
type fakeConn struct {
	net.Conn
	says   [][]byte
	writes error     // of each write
	readBy time.Time // the deadline
	closed atomic.Bool
}

func (c *fakeConn) Read(p []byte) (int, error) {
	if len(c.says) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.says[0])
	if c.says[0] = c.says[0][n:]; len(c.says[0]) == 0 {
		c.says = c.says[1:]
	}
	return n, nil
}

func (c *fakeConn) Write(p []byte) (int, error)       { return len(p), c.writes }
func (c *fakeConn) SetReadDeadline(t time.Time) error { c.readBy = t; return nil }
func (c *fakeConn) Close() error                      { c.closed.Store(true); return nil }

// dialTo returns a dialer to servers, and what it has given up for, nil before that. It
// asks for a session timeout of 9 s where the config has none.
func dialTo(
	t *testing.T, config dial.Config, servers ...string,
) (d *dial.Dialer, gaveUp *error) {
	t.Helper()
	gaveUp = new(error)
	config.GiveUp = func(why error) { *gaveUp = why }
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.SessionTimeout == 0 {
		config.SessionTimeout = 9 * time.Second
	}
	d, err := dial.New(t.Context(), servers, config)
	require.NoError(t, err)
	t.Cleanup(func() { d.HangUp() })
	return d, gaveUp
}

// by is a zk.Dialer that does not look at its arguments.
func by(dial func() (net.Conn, error)) zk.Dialer {
	return func(string, string, time.Duration) (net.Conn, error) { return dial() }
}

// always is a zk.Dialer that returns conn.
func always(conn net.Conn) zk.Dialer {
	return by(func() (net.Conn, error) { return conn, nil })
}

func dialOnce(d *dial.Dialer) (net.Conn, error) {
	return d.Dial("tcp", "a:1", time.Second)
}

func TestNewWaitsForTheHostProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		began := time.Now()
		slow := initProvider{init: func(servers []string) error {
			time.Sleep(time.Minute)
			asked = servers
			return nil
		}}
		_, err := dial.New(t.Context(), []string{"a:1"}, dial.Config{HostProvider: slow})
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, []string{"a:1"}, asked)

		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		_, err = dial.New(ctx, nil, dial.Config{HostProvider: slow})
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, "host provider: ")

		time.Sleep(time.Minute) // until Init is through

		failing := initProvider{init: func([]string) error { return errRefused }}
		_, err = dial.New(t.Context(), nil, dial.Config{HostProvider: failing})
		require.ErrorIs(t, err, errRefused)
		require.ErrorContains(t, err, "host provider: ")
	})
}

// initProvider is a host provider as far as its Init.
type initProvider struct {
	zk.HostProvider
	init func(servers []string) error
}

func (p initProvider) Init(servers []string) error { return p.init(servers) }

func TestEachServerOnceARound(t *testing.T) {
	d, _ := dialTo(t, dial.Config{}, "a:1", "b:1", "c:1")
	p := d.HostProvider()
	require.NoError(t, p.Init([]string{"zk calls it again"}))
	require.Equal(t, 3, p.Len())
	round := func(n int) (servers []string) {
		for i := range n {
			server, retryStart := p.Next()
			require.Equal(t, i == 0 && n == 3, retryStart)
			require.Equal(t, retryStart, d.Pausing())
			servers = append(servers, server)
		}
		return servers
	}
	first := append(round(1), round(2)...)
	require.ElementsMatch(t, []string{"a:1", "b:1", "c:1"}, first)
	require.Equal(t, first, round(3))
	p.Connected() // to the last one; when that is lost, the others are next
	require.Equal(t, first[:2], round(2))
	require.Equal(t, []string{first[2], first[0], first[1]}, round(3))

	p.Next()
	require.True(t, d.Pausing())
	_, _ = dialOnce(d)
	require.False(t, d.Pausing())
}

func TestHangUp(t *testing.T) {
	var opened []*fakeConn
	config := dial.Config{Dial: by(func() (net.Conn, error) {
		opened = append(opened, &fakeConn{})
		return opened[len(opened)-1], nil
	})}
	isClosed := func(paused <-chan struct{}) bool {
		select {
		case <-paused:
			return true
		default:
			return false
		}
	}
	d, _ := dialTo(t, config, "a:1", "b:1")
	for range 2 {
		_, err := dialOnce(d)
		require.NoError(t, err)
	}
	require.True(t, opened[0].closed.Load(), "there is one connection at a time")
	require.False(t, opened[1].closed.Load())

	paused := d.HangUp()
	require.True(t, opened[1].closed.Load())
	require.False(t, isClosed(paused))
	_, err := dialOnce(d)
	require.ErrorContains(t, err, "closed")
	require.Len(t, opened, 2)
	_, retryStart := d.HostProvider().Next()
	require.True(t, retryStart, "not the end of a round, but of all")
	require.True(t, isClosed(paused))
	require.True(t, isClosed(d.HangUp()))

	// In the pause already.
	d, _ = dialTo(t, config, "a:1")
	d.HostProvider().Next()
	d.HostProvider().Next()
	require.True(t, isClosed(d.HangUp()))
}

func TestHangUpWhileDialing(t *testing.T) {
	var d *dial.Dialer
	opened := &fakeConn{}
	d, _ = dialTo(t, dial.Config{Dial: by(func() (net.Conn, error) {
		d.HangUp()
		return opened, nil
	})}, "a:1")
	_, err := dialOnce(d)
	require.NoError(t, err)
	require.True(t, opened.closed.Load())
}

// A server that has hung up before the dialer looked shows as a broken pipe, or as a
// reset.
func TestHangUpByTheServerWhileDialing(t *testing.T) {
	for _, hungUp := range []error{syscall.EPIPE, syscall.ECONNRESET} {
		d, _ := dialTo(t, dial.Config{Dial: by(func() (net.Conn, error) {
			cause := os.NewSyscallError("connect", hungUp)
			return nil, &net.OpError{Op: "dial", Err: cause}
		})}, "a:1")
		_, err := dialOnce(d)
		require.ErrorIs(t, err, hungUp)
		require.ErrorContains(t, err, "the server hung up, is it serving? "+
			"Or is its maxClientCnxns reached? (dial: connect: ")
	}
}

func TestExplain(t *testing.T) {
	why := errors.New("enough")
	var fails error
	conn := &fakeConn{says: [][]byte{answer(0, 7, 9000)}}
	dialer := by(func() (net.Conn, error) { return conn, fails })
	d, gaveUp := dialTo(t, dial.Config{Dial: dialer}, "a:1", "b:1")
	require.Equal(t, why, d.Explain(why))
	established, err := dialOnce(d)
	require.NoError(t, err)
	require.EqualError(t, d.Explain(why), "enough; still waiting for a:1")

	fails = context.DeadlineExceeded
	_, err = dialOnce(d)
	require.Equal(t, fails, err)
	err = d.Explain(why)
	require.EqualError(t, err, "enough; last attempt: a:1: context deadline exceeded")
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, *gaveUp)

	_, err = established.Read(make([]byte, 100))
	require.NoError(t, err)
	require.Equal(t, why, d.Explain(why), "a server has answered")

	fails = &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	_, _ = dialOnce(d)
	require.NoError(t, *gaveUp, "the other server may be well")
	_, _ = dialOnce(d)
	require.ErrorIs(t, *gaveUp, fails)
	require.Equal(t, *gaveUp, d.Explain(*gaveUp))
}

// Refusals count where nothing else comes between them.
func TestGiveUpAfterRefusalsOnly(t *testing.T) {
	refusal := error(x509.HostnameError{Certificate: &x509.Certificate{}})
	var conn net.Conn
	var fails error
	dialer := by(func() (net.Conn, error) { return conn, fails })
	d, gaveUp := dialTo(t, dial.Config{Dial: dialer}, "a:1", "b:1")
	for _, fails = range []error{refusal, errRefused, refusal, io.EOF, refusal} {
		_, err := dialOnce(d)
		require.ErrorIs(t, err, fails)
		require.NoError(t, *gaveUp)
	}

	conn, fails = &fakeConn{says: [][]byte{answer(0, 7, 9000)}}, nil
	established, err := dialOnce(d)
	require.NoError(t, err)
	_, err = established.Read(make([]byte, 100))
	require.NoError(t, err)
	fails = refusal
	_, _ = dialOnce(d)
	require.NoError(t, *gaveUp)

	_, _ = dialOnce(d)
	require.ErrorIs(t, *gaveUp, refusal)
	require.ErrorContains(t, *gaveUp, "a:1: ")
}

func TestADialerThatReturnsNothing(t *testing.T) {
	d, _ := dialTo(t, dial.Config{Dial: always(nil)}, "a:1")
	_, err := dialOnce(d)
	require.ErrorContains(t, err, "neither a connection nor an error")
}
