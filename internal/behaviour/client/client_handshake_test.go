package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func TestConnectEndsWithItsContext(t *testing.T) {
	const server = "silent:2181"
	on := func(serve func(net.Conn)) []recipes.ClientOption {
		return []recipes.ClientOption{recipes.WithDialer(clientNet{server: serve}.dial)}
	}
	with := func(dialer zk.Dialer) []recipes.ClientOption {
		return []recipes.ClientOption{recipes.WithDialer(dialer)}
	}
	half := clientSays(clientAnswer(1, time.Second)[:30])
	slow := func(_, _ string, timeout time.Duration) (net.Conn, error) {
		time.Sleep(timeout)
		return nil, fmt.Errorf("out of reach: %w", context.DeadlineExceeded)
	}
	late := func(_, address string, _ time.Duration) (net.Conn, error) {
		time.Sleep(21 * time.Second)
		return clientNet{server: clientMute}.dial("", address, 0)
	}
	for name, tc := range map[string]struct {
		opts []recipes.ClientOption
		says string
		late time.Duration // what must be waited for beyond ctx
	}{
		"mute server": {opts: on(clientMute), says: server},
		"mute server, TLS": {
			opts: append(on(clientMute), recipes.WithTLS(&tls.Config{})), says: server,
		},
		"half an answer":  {opts: on(half), says: server},
		"server hangs up": {opts: on(clientHangsUp), says: "is it serving"},
		"nobody listens": {
			opts: with(clientNet{}.dial), says: errClientRefused.Error(),
		},
		"no conn, no error": {opts: with(
			func(_, _ string, _ time.Duration) (net.Conn, error) { return nil, nil },
		), says: "neither"},
		"dial hangs, then succeeds": {
			opts: with(late), says: server, late: 400 * time.Millisecond,
		},
		"rounds without end": {
			opts: append(
				on(clientHangsUp),
				recipes.WithHostProvider(clientEndless{&clientOrder{}}),
			), says: "is it serving",
		},
		"dial hangs": {opts: with(slow), says: "out of reach", late: time.Second},
		"auth is not answered": {
			opts: append(
				on(clientSays(clientAnswer(1, time.Hour))),
				recipes.WithAuth("digest", []byte("u:p")),
			),
			says: `scheme "digest"`, late: time.Second, // there is a session to end
		},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			clientLeaks(t)
			// Neither a multiple of a server's time for the handshake nor of the
			// second between two rounds.
			const patience = 20600 * time.Millisecond
			why := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, why)
			defer cancel()
			start := time.Now()
			_, err := recipes.Connect(ctx, "silent", 10*time.Second, tc.opts...)
			elapsed := time.Since(start)
			require.ErrorIs(t, err, why)
			require.NotErrorIs(
				t, err, context.DeadlineExceeded, "what delayed it is not the cause",
			)
			require.ErrorContains(t, err, tc.says)
			require.GreaterOrEqual(t, elapsed, patience)
			require.LessOrEqual(t, elapsed, patience+tc.late+20*time.Millisecond)
		})
	}
}

// clientEndless never tells zk that a round is over, which is where zk notices that it is
// to end.
type clientEndless struct{ *clientOrder }

func (e clientEndless) Next() (string, bool) {
	server, _ := e.clientOrder.Next()
	time.Sleep(time.Millisecond) // zk does not pause either
	return server, false
}

// The farewell of TLS waits five seconds for a peer that has stopped reading.
func TestConnectDoesNotWaitToTakeLeaveOfTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		stop := make(chan struct{})
		defer close(stop)
		cfg := &tls.Config{Certificates: []tls.Certificate{
			clientNewCA(t).issue(t, "a", time.Now().Add(time.Hour)),
		}}
		n := clientNet{"a:2181": func(conn net.Conn) {
			_, _ = clientFrame(tls.Server(conn, cfg))
			<-stop
		}}
		start := time.Now()
		_, err := recipes.Connect(ctx, "a", 10*time.Second,
			recipes.WithDialer(n.dial),
			//nolint:gosec // no server ever answers
			recipes.WithTLS(&tls.Config{InsecureSkipVerify: true}))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 520*time.Millisecond)
	})
}

func TestConnectDoesNotWaitForAHostProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		slow := &clientSlowHosts{}
		start := time.Now()
		_, err := recipes.Connect(ctx, "a", time.Second, recipes.WithHostProvider(slow))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "host provider")
		require.Equal(t, time.Second, time.Since(start))
		time.Sleep(time.Minute) // the lookup's own time

		slow = &clientSlowHosts{err: errors.New("no such host")}
		_, err = recipes.Connect(
			t.Context(), "a", time.Second, recipes.WithHostProvider(slow),
		)
		require.ErrorIs(t, err, slow.err)
	})
}

// clientSlowHosts takes a minute to look names up.
type clientSlowHosts struct {
	clientOrder
	err error
}

func (h *clientSlowHosts) Init([]string) error {
	time.Sleep(time.Minute)
	return h.err
}

func TestAServerHasAThirdOfTheSessionTimeoutForTheHandshake(t *testing.T) {
	// zk alone would give it 6.67 session timeouts for the first four bytes, and for ever
	// for the rest.
	silences := map[string]func(net.Conn){
		"nothing":        clientMute,
		"half an answer": clientSays(clientAnswer(1, time.Second)[:30]),
		"one byte":       clientSays(make([]byte, 1)),
	}
	for name, silence := range silences {
		for asked, wait := range map[time.Duration]time.Duration{
			12 * time.Second: 4 * time.Second,
			time.Second:      time.Second,
			time.Hour:        15 * time.Second,
		} {
			locktest.RunVirtual(t, name+" "+asked.String(), func(t *testing.T) {
				clientLeaks(t)
				n := clientNet{
					"mute:2181": silence, "good:2181": clientServe(1, asked, nil),
				}
				start := time.Now()
				c, err := recipes.Connect(t.Context(), "mute,good", asked,
					recipes.WithDialer(n.dial),
					recipes.WithHostProvider(&clientOrder{}))
				require.NoError(t, err)
				require.Equal(t, wait, time.Since(start))
				c.Close()
			})
		}
	}
}

func TestAReconnectIsBoundedByTheGrantedTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		hangUp := make(chan struct{})
		n := clientNet{"a:2181": clientInTurn(
			func(conn net.Conn) {
				go clientServe(1, 9*time.Second, nil)(conn)
				<-hangUp
			},
			clientMute,
			clientServe(1, 6*time.Second, nil),
		)}
		c, err := recipes.Connect(t.Context(), "a", time.Hour, recipes.WithDialer(n.dial))
		require.NoError(t, err)
		require.Equal(t, 9*time.Second, c.SessionTimeout())

		close(hangUp)
		start := time.Now()
		for c.State() != zk.StateHasSession || c.SessionTimeout() == 9*time.Second {
			time.Sleep(10 * time.Millisecond)
		}
		// Of a single server zk makes rounds, with a second between them.
		require.InDelta(t, 5, time.Since(start).Seconds(), 0.1)
		require.Equal(
			t, 6*time.Second, c.SessionTimeout(), "what the last handshake granted",
		)
		require.NoError(t, c.Delete("/x", -1))
		c.Close()
	})
}

func TestConnectGivesUpOnWhatIsNotZooKeeper(t *testing.T) {
	for name, answer := range map[string]string{
		"HTTP":            "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a TLS alert":     "\x15\x03\x01\x00\x02\x02\x46",
		"too short":       "\x00\x00\x00\x0f0123456789abcdef",
		"a negative size": "\xff\xff\xff\xff0123456789abcdef",
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			clientLeaks(t)
			n := clientNet{
				"a:1": clientSays([]byte(answer)), "b:2": clientSays([]byte(answer)),
			}
			start := time.Now()
			_, err := recipes.Connect(
				t.Context(), "a:1,b:2", 10*time.Second, recipes.WithDialer(n.dial),
			)
			require.ErrorContains(t, err, "not ZooKeeper's")
			require.Less(t, time.Since(start), 100*time.Millisecond)
		})
	}
}

func TestConnectGivesUpOnWhatIsNotTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		n := clientNet{"a:2181": func(conn net.Conn) {
			if _, err := conn.Read(make([]byte, 4096)); err == nil {
				_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			}
		}}
		start := time.Now()
		_, err := recipes.Connect(t.Context(), "a", 10*time.Second,
			recipes.WithDialer(n.dial), recipes.WithTLS(&tls.Config{}))
		require.ErrorAs(t, err, new(tls.RecordHeaderError))
		require.Less(t, time.Since(start), 100*time.Millisecond)
	})
}

func TestConnectGoesOnWhileOneServerMayStillCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		good := clientInTurn(
			clientHangsUp, clientHangsUp, clientServe(7, time.Second, nil),
		)
		n := clientNet{
			"a:1": clientSays([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), "b:2": good,
		}
		c, err := recipes.Connect(
			t.Context(), "a:1,b:2", 10*time.Second, recipes.WithDialer(n.dial),
		)
		require.NoError(t, err)
		require.Equal(t, int64(7), c.SessionID())
		c.Close()
	})
}

func TestASessionTimeoutOfZeroIsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // zk would panic
		clientLeaks(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n := clientNet{"a:2181": clientSays(clientAnswer(1, 0))}
		_, err := recipes.Connect(ctx, "a", time.Second, recipes.WithDialer(n.dial))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "session timeout of 0 ms")
	})
}

// A ClickHouse Keeper without a leader answers with protocol version 42 and session -1,
// and hangs up. It must be dialled no more often than a server that refuses.
func TestAServerWithoutALeaderIsNoSession(t *testing.T) {
	for name, answer := range map[string][]byte{
		"both":    clientVersionAnswer(42, -1, 10*time.Second),
		"version": clientVersionAnswer(42, 7, 10*time.Second),
		"session": clientVersionAnswer(0, -1, 10*time.Second),
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			clientLeaks(t)
			serve := clientHangsUpSaying(answer)
			n := clientNet{"a:2181": serve, "b:2181": serve, "c:2181": serve}
			var dials atomic.Int32
			dial := func(network, address string, d time.Duration) (net.Conn, error) {
				dials.Add(1)
				return n.dial(network, address, d)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			_, err := recipes.Connect(
				ctx, "a,b,c", 4*time.Second, recipes.WithDialer(dial),
			)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "has no leader")
			require.Equal(t, int32(3*3), dials.Load(), "a round a second")
		})
	}
}

// A reconnect that comes upon a server without a leader keeps the session.
func TestAServerWithoutALeaderCostsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		hangUp, asked := make(chan struct{}), make(chan int64, 1)
		n := clientNet{
			"a:2181": clientInTurn(func(conn net.Conn) {
				go clientServe(7, 10*time.Second, nil)(conn)
				<-hangUp
			}, clientHangsUp),
			"b:2181": clientHangsUpSaying(clientVersionAnswer(42, -1, 10*time.Second)),
			"c:2181": func(conn net.Conn) {
				request, err := clientFrame(conn)
				if err == nil {
					asked <- int64(binary.BigEndian.Uint64(request[16:]))
				}
			},
		}
		c, err := recipes.Connect(t.Context(), "a,b,c", 10*time.Second,
			recipes.WithDialer(n.dial), recipes.WithHostProvider(&clientOrder{}))
		require.NoError(t, err)
		close(hangUp)
		require.Equal(t, int64(7), <-asked)
		require.Equal(t, int64(7), c.SessionID())
		c.Close()
	})
}

func TestEachServerIsDialledOnceARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		type attempt struct {
			address string
			at      time.Duration
		}
		var mu sync.Mutex
		var attempts []attempt
		start := time.Now()
		dial := func(network, address string, _ time.Duration) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			attempts = append(attempts, attempt{
				network + " " + address, time.Since(start),
			})
			return nil, errClientRefused
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := recipes.Connect(
			ctx, " h , i:1,[::1]:3,[fe80::2] ", time.Second, recipes.WithDialer(dial),
		)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		for round, when := range []time.Duration{0, time.Second} {
			var got []string
			for _, a := range attempts[4*round : 4*round+4] {
				require.Equal(t, when, a.at)
				got = append(got, a.address)
			}
			require.ElementsMatch(
				t, []string{"tcp h:2181", "tcp i:1", "tcp [::1]:3", "tcp [fe80::2]:2181"},
				got,
			)
		}
		require.Len(t, attempts, 8)
	})
}

func TestServersAreDialledInRandomOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		first := map[string]bool{}
		for range 200 { // 2^-199: never only one of them
			n := clientNet{
				"a:2181": clientServe(1, time.Second, nil),
				"b:2181": clientServe(2, time.Second, nil),
			}
			c, err := recipes.Connect(
				t.Context(), "a,b", time.Second, recipes.WithDialer(n.dial),
			)
			require.NoError(t, err)
			first[c.Unwrap().Server()] = true
			c.Close()
		}
		require.Len(t, first, 2)
	})
}

func TestCloseAgainstAMuteServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		n := clientNet{"a:2181": clientSays(clientAnswer(1, time.Hour))}
		c, err := recipes.Connect(t.Context(), "a", time.Hour, recipes.WithDialer(n.dial))
		require.NoError(t, err)
		// More calls than zk has room for.
		pending := make(chan error)
		for range 40 {
			go func() { pending <- c.Delete("/x", -1) }()
		}
		synctest.Wait()

		start := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				c.Close()
				assert.GreaterOrEqual(
					t, time.Since(start), time.Second,
					"returned before the client was closed",
				)
			})
		}
		for range 40 {
			require.ErrorIs(t, <-pending, zk.ErrConnectionClosed)
		}
		require.Zero(t, time.Since(start), "callers learn of it at once")
		clientRequireClosed(t, c)
		all.Wait()
		require.LessOrEqual(t, time.Since(start), 1100*time.Millisecond)
		require.NotEqual(t, zk.StateHasSession, c.State())
	})
}

func TestCloseInAnOutage(t *testing.T) {
	for name, after := range map[string]func(net.Conn){
		"nobody answers": clientMute,
		"hangs up":       clientHangsUp,
		"expired":        clientSays(clientAnswer(0, 0)),
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			clientLeaks(t)
			hangUp := make(chan struct{})
			n := clientNet{"a:2181": clientInTurn(func(conn net.Conn) {
				go clientServe(1, time.Hour, nil)(conn)
				<-hangUp
			}, after)}
			c, err := recipes.Connect(
				t.Context(), "a", time.Hour, recipes.WithDialer(n.dial),
			)
			require.NoError(t, err)
			close(hangUp)
			time.Sleep(2500 * time.Millisecond)
			start := time.Now()
			c.Close()
			require.LessOrEqual(t, time.Since(start), 1100*time.Millisecond)
		})
	}
}

// A write that fails while the client sends its credentials anew would stop zk for good
// (go-zookeeper/zk#163).
func TestAFailedWriteIsALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		var credentials, dials atomic.Int32
		hangUp := make(chan struct{})
		serve := clientServe(1, 10*time.Second, func(op int32) bool {
			if op == clientOpAuth {
				credentials.Add(1)
			}
			return true
		})
		n := clientNet{"a:2181": clientInTurn(func(conn net.Conn) {
			go serve(conn)
			<-hangUp
		}, serve)}
		broken := &clientBrokenConn{}
		dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
			conn, err := n.dial(network, address, timeout)
			if dials.Add(1) == 2 {
				broken.Conn = conn
				return broken, err
			}
			return conn, err
		}
		c, err := recipes.Connect(t.Context(), "a", 10*time.Second,
			recipes.WithAuth("digest", []byte("u:p")), recipes.WithDialer(dial))
		require.NoError(t, err)
		require.Equal(t, int32(1), credentials.Load())

		close(hangUp)
		time.Sleep(5 * time.Second)
		require.True(t, broken.failed.Load())
		require.Equal(t, int32(3), dials.Load())
		require.Equal(t, int32(2), credentials.Load(), "sent anew at the reconnect")
		require.NoError(t, c.Delete("/x", -1))
		c.Close()
	})
}

// clientBrokenConn lets a handshake through and fails every write after it, while reads
// notice nothing.
type clientBrokenConn struct {
	net.Conn
	writes atomic.Int32
	failed atomic.Bool
}

func (c *clientBrokenConn) Write(p []byte) (int, error) {
	if c.writes.Add(1) == 1 {
		return c.Conn.Write(p)
	}
	c.failed.Store(true)
	return 0, io.ErrClosedPipe
}

func TestAnExpiredSessionsConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		hangUp, closed := make(chan struct{}), make(chan struct{})
		n := clientNet{"a:2181": clientInTurn(
			func(conn net.Conn) {
				go clientServe(1, time.Hour, nil)(conn)
				<-hangUp
			},
			func(conn net.Conn) {
				clientSays(clientAnswer(0, 0))(conn)
				close(closed)
			},
			clientServe(2, time.Minute, nil),
		)}
		c, err := recipes.Connect(t.Context(), "a", time.Hour, recipes.WithDialer(n.dial))
		require.NoError(t, err)
		close(hangUp)
		<-closed // else the bubble would be stuck
		for c.State() != zk.StateHasSession {
			time.Sleep(10 * time.Millisecond)
		}
		require.Equal(t, int64(2), c.SessionID())
		require.Equal(t, time.Minute, c.SessionTimeout())
		c.Close()
	})
}

func TestClientLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		var all bytes.Buffer
		hangUp := make(chan struct{})
		n := clientNet{"a:2181": clientInTurn(
			clientHangsUp,
			func(conn net.Conn) {
				go clientServe(10, 2*time.Second, nil)(conn)
				<-hangUp
			},
			clientServe(10, 2*time.Second, nil),
		)}
		c, err := recipes.Connect(t.Context(), "a", time.Second,
			recipes.WithDialer(n.dial),
			recipes.WithAuth("digest", []byte("anna:secret")),
			recipes.WithClientLogger(slog.New(slog.NewTextHandler(&all,
				&slog.HandlerOptions{Level: slog.LevelDebug}))))
		require.NoError(t, err)
		close(hangUp)
		time.Sleep(3 * time.Second)
		c.Close()
		require.Contains(t, all.String(), "zookeeper: connected")
		require.Contains(t, all.String(), "session=0xa timeout=2s")
		require.Contains(t, all.String(), "level=DEBUG")
		require.NotContains(t, all.String(), "secret")
		warnings := strings.Join(regexp.MustCompile("(?m)^.* level=WARN .*$").
			FindAllString(all.String(), -1), "\n")
		require.Contains(t, warnings, "connection attempt failed")
		require.Contains(t, warnings, "EOF")
		require.Contains(t, warnings, "zookeeper: connection lost")
	})
}

// clientWarnings is an option and what is logged by it at Warn or above.
func clientWarnings() (recipes.ClientOption, *bytes.Buffer) {
	var log bytes.Buffer
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})
	return recipes.WithClientLogger(slog.New(handler)), &log
}

func TestASessionTimeoutThatIsNotGrantedIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		hangUp := make(chan struct{})
		grants := func(granted time.Duration) func(net.Conn) {
			return func(conn net.Conn) {
				go clientServe(10, granted, nil)(conn)
				<-hangUp
			}
		}
		n := clientNet{"a:2181": clientInTurn(
			grants(4*time.Second), grants(4*time.Second), grants(5*time.Second),
			grants(10*time.Second), grants(10*time.Second),
		)}
		withLog, log := clientWarnings()
		c, err := recipes.Connect(t.Context(), "a", 10*time.Second,
			recipes.WithDialer(n.dial), withLog)
		require.NoError(t, err)
		synctest.Wait()
		require.Contains(t, log.String(), "requested=10s granted=4s", "at once")
		for range 3 {
			synctest.Wait()
			hangUp <- struct{}{}
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		require.Equal(
			t, 2, strings.Count(log.String(), "a different session timeout"), log,
		)
		require.Contains(t, log.String(), "requested=10s granted=5s")
		close(hangUp)
		c.Close()
	})
}

func TestNoDisconnectIsLoggedOfAConnectionThatNeverWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		hangUp := make(chan struct{})
		n := clientNet{"a:2181": clientInTurn(
			clientHangsUp, clientHangsUp, func(conn net.Conn) {
				go clientServe(10, 10*time.Second, nil)(conn)
				<-hangUp
			}, clientHangsUp, clientHangsUp, clientMute,
		)}
		withLog, log := clientWarnings()
		c, err := recipes.Connect(t.Context(), "a", 10*time.Second,
			recipes.WithDialer(n.dial), withLog)
		require.NoError(t, err)
		synctest.Wait()
		require.NotContains(t, log.String(), "connection lost")
		require.Equal(t, 2, strings.Count(log.String(), "connection attempt failed"))
		close(hangUp)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "connection lost"), log)
		c.Close()
		require.Equal(t, 1, strings.Count(log.String(), "connection lost"), log)
	})
}
