package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

const saslChallenge = `realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`

// saslFrame is an answer to a message of an exchange; a nil token is null.
func saslFrame(xid, code int32, token []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(20+len(token)))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	length := int32(-1)
	if token != nil {
		length = int32(len(token))
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(length)), token...)
}

// saslSays is a server that answers the messages of an exchange with these in turn, the
// last again and again. It tells what it is asked otherwise.
func saslSays(strange func(op int32), says ...func(xid int32) []byte) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := clientFrame(conn); err != nil {
			return
		}
		_, _ = conn.Write(clientAnswer(7, 9*time.Second))
		for i := 0; ; i++ {
			frame, err := clientFrame(conn)
			if err != nil {
				return
			}
			if op := int32(binary.BigEndian.Uint32(frame[4:])); op != 102 {
				strange(op)
				return
			}
			answer := says[min(i, len(says)-1)](int32(binary.BigEndian.Uint32(frame)))
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}
}

func saslToken(text string) func(int32) []byte {
	return func(xid int32) []byte { return saslFrame(xid, 0, []byte(text)) }
}

// A scriptedSASL has a function in the place of a mechanism.
type scriptedSASL struct {
	begin func(ctx context.Context, host string) error
	step  func(challenge []byte) ([]byte, bool, error)
	none  bool // Begin returns no exchange
}

func (s *scriptedSASL) Name() string { return "SCRIPT" }

func (s *scriptedSASL) Begin(
	ctx context.Context, host string,
) (recipes.SASLExchange, error) {
	if s.begin != nil {
		if err := s.begin(ctx, host); err != nil {
			return nil, err
		}
	}
	if s.none {
		return nil, nil
	}
	return s, nil
}

func (s *scriptedSASL) Step(_ context.Context, challenge []byte) ([]byte, bool, error) {
	if s.step == nil {
		return []byte("more"), false, nil
	}
	return s.step(challenge)
}

var saslBob = recipes.SASLDigestMD5("bob", "hunter2")

// saslLength is an answer that says that it is so long.
func saslLength(n uint32) func(int32) []byte {
	return func(int32) []byte {
		return append(binary.BigEndian.AppendUint32(nil, n), make([]byte, 16)...)
	}
}

var hostileExchanges = map[string]struct {
	sasl recipes.SASL
	says []func(xid int32) []byte
	want string
	auth bool // it matches zk.ErrAuthFailed
}{
	"endless challenges": {
		&scriptedSASL{},
		[]func(int32) []byte{saslToken("go on")},
		"SASL with SCRIPT: the server had more than 16 challenges", false,
	},
	"huge token": {
		saslBob,
		[]func(int32) []byte{saslLength(math.MaxInt32)},
		"has 2147483647 bytes: must be from 16 to", false,
	},
	"token beyond the limit": {
		saslBob,
		[]func(int32) []byte{saslToken(strings.Repeat("x", 128<<10))},
		"must be from 16 to 131072", false,
	},
	"negative length": {
		saslBob, []func(int32) []byte{saslLength(math.MaxUint32)}, "has -1 bytes", false,
	},
	"no token": {
		saslBob, []func(int32) []byte{func(xid int32) []byte {
			b := saslFrame(xid, 0, nil)[:20]
			b[3] = 16
			return b
		}}, "token: 4 bytes where there are 0", false,
	},
	"token with a wrong length": {
		saslBob, []func(int32) []byte{func(xid int32) []byte {
			b := saslFrame(xid, 0, []byte("abc"))
			b[20] = 0x70
			return b
		}}, "token: has the length", false,
	},
	"token with a tail": {
		saslBob, []func(int32) []byte{func(xid int32) []byte {
			b := saslFrame(xid, 0, []byte("abc"))
			b[23] = 2
			return b
		}}, "token: has the length 2 in 3 bytes", false,
	},
	"another request's answer": {
		saslBob, []func(int32) []byte{func(xid int32) []byte {
			return saslFrame(xid+1, 0, []byte(saslChallenge))
		}}, "answers request 1 instead of 0", false,
	},
	"wrong proof": {
		saslBob, []func(int32) []byte{
			saslToken(saslChallenge),
			saslToken("rspauth=ea40f60335c427b5527b84dbabcdfffd"),
		}, "the server does not prove that it knows the password", true,
	},
	"no proof": {
		saslBob,
		[]func(int32) []byte{saslToken(saslChallenge), saslToken("")},
		`no field "rspauth"`, true,
	},
	"null in the place of a proof": {
		saslBob, []func(int32) []byte{
			saslToken(saslChallenge),
			func(xid int32) []byte { return saslFrame(xid, 0, nil) },
		}, "the server ended the exchange early", true,
	},
	"another mechanism's challenge": {
		saslBob, []func(int32) []byte{saslToken("\x60\x82\x01")}, "challenge: ", true,
	},
	"empty challenge": {
		saslBob, []func(int32) []byte{saslToken("")}, `no field "nonce"`, true,
	},
	"unknown request": {
		saslBob, []func(int32) []byte{func(xid int32) []byte {
			return saslFrame(xid, -6, nil)
		}}, "error code -6; does it know SASL?", true,
	},
	"no such mechanism": {
		saslBob, []func(int32) []byte{func(xid int32) []byte {
			return saslFrame(xid, -115, nil)
		}}, "the server rejects the mechanism", true,
	},
	"refused without authentication": {
		saslBob, []func(int32) []byte{func(xid int32) []byte {
			return saslFrame(xid, -124, nil)
		}}, "the server refuses it", true,
	},
}

// Whatever a server makes of an exchange, no request follows it that the server could
// take, Connect ends by itself, and nothing says the password.
func TestSASLWithAHostileServer(t *testing.T) {
	for name, c := range hostileExchanges {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			clientLeaks(t)
			n := clientNet{"a:2181": saslSays(func(op int32) {
				t.Errorf("asked for %d before it was authenticated", op)
			}, c.says...)}
			log := &hostileLog{}
			began := time.Now()
			_, err := recipes.Connect(t.Context(), "a", 9*time.Second,
				recipes.WithDialer(n.dial), recipes.WithSASL(c.sasl), saslLog(log))
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.auth, errors.Is(err, zk.ErrAuthFailed))
			require.NotContains(t, err.Error()+log.String(), "hunter2")
			require.Less(t, time.Since(began), 4*time.Second)
		})
	}
}

// An exchange has no more time than the handshake, of which it is a part, and a client
// that is waiting in it can be closed.
func TestSASLIsBounded(t *testing.T) {
	silent := func(int32) []byte { return nil }
	stuck := &scriptedSASL{begin: func(context.Context, string) error {
		time.Sleep(time.Hour)
		return nil
	}}
	// This one ends with the time for the handshake, and says what it was doing.
	obeys := &scriptedSASL{begin: func(ctx context.Context, _ string) error {
		began := time.Now()
		<-ctx.Done()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("ctx lasted for %v", took)
		}
		return fmt.Errorf("no ticket yet: %w", context.Cause(ctx))
	}}
	slow := &scriptedSASL{step: func([]byte) ([]byte, bool, error) {
		time.Sleep(time.Minute)
		return nil, true, nil
	}}
	for name, c := range map[string]struct {
		sasl recipes.SASL
		want string
	}{
		"silent server": {saslBob, "SASL with DIGEST-MD5"},
		"stuck Begin":   {stuck, "the mechanism took all the time"},
		"obeying Begin": {obeys, "the mechanism took all the time"},
		"slow Step":     {slow, "the mechanism took all the time"},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			n := clientNet{"a:2181": saslSays(func(int32) {}, silent)}
			for wait, want := range map[time.Duration]string{
				time.Second:             "still waiting for a:2181",
				3500 * time.Millisecond: c.want,
			} {
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				began := time.Now()
				_, err := recipes.Connect(ctx, "a", 9*time.Second,
					recipes.WithDialer(n.dial), recipes.WithSASL(c.sasl))
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, want)
				require.Less(t, time.Since(began), wait+100*time.Millisecond)
			}
			time.Sleep(time.Hour) // the mechanism ends, too
		})
	}
}

// What the mechanism itself says of an attempt is one more reason to try the next server,
// unless it says that nothing else would help.
func TestErrorsOfAMechanism(t *testing.T) {
	passing, final := errors.New("no KDC"), fmt.Errorf("expired: %w", zk.ErrAuthFailed)
	for name, c := range map[string]struct {
		sasl *scriptedSASL
		want error
	}{
		"Begin, final": {&scriptedSASL{begin: func(context.Context, string) error {
			return final
		}}, final},
		"Step, final": {&scriptedSASL{step: func([]byte) ([]byte, bool, error) {
			return nil, false, final
		}}, final},
		"Begin, passing": {
			&scriptedSASL{begin: func(_ context.Context, host string) error {
				if host == "a" {
					return passing
				}
				return nil
			}, step: func([]byte) ([]byte, bool, error) { return nil, true, nil }}, nil,
		},
		"a last message": {
			&scriptedSASL{step: func(challenge []byte) ([]byte, bool, error) {
				if challenge != nil {
					panic("it was done")
				}
				return []byte("all"), true, nil
			}}, nil,
		},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			clientLeaks(t)
			serve := saslSays(func(int32) {}, func(xid int32) []byte {
				return saslFrame(xid, 0, nil)
			})
			n := clientNet{"a:2181": serve, "b:2181": serve}
			client, err := recipes.Connect(t.Context(), "a,b", 9*time.Second,
				recipes.WithDialer(n.dial), recipes.WithSASL(c.sasl),
				recipes.WithHostProvider(&clientOrder{}))
			require.ErrorIs(t, err, c.want)
			if err == nil {
				client.Close()
			} else {
				require.ErrorContains(t, err, "SASL with SCRIPT")
			}
		})
	}
}

// At a reconnect a refusal is no end: other servers may know better.
func TestSASLRefusedAtAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		fine := func(xid int32) []byte { return saslFrame(xid, 0, nil) }
		refuses := func(xid int32) []byte { return saslFrame(xid, -115, nil) }
		hangUp := make(chan struct{})
		first := func(conn net.Conn) {
			go saslSays(func(int32) {}, fine)(conn)
			<-hangUp
		}
		n := clientNet{
			"a:2181": clientInTurn(first, saslSays(func(int32) {}, fine)),
			"b:2181": saslSays(func(op int32) {
				t.Errorf("b is asked for %d", op)
			}, refuses),
		}
		log, seen := &hostileLog{}, &diary{}
		once := &scriptedSASL{step: func([]byte) ([]byte, bool, error) {
			return []byte("all"), true, nil
		}}
		c, err := recipes.Connect(t.Context(), "a,b", 9*time.Second,
			recipes.WithDialer(n.dial), recipes.WithSASL(once), saslLog(log),
			recipes.WithHostProvider(&clientOrder{}),
			recipes.WithClientObserver(seen.note))
		require.NoError(t, err)
		synctest.Wait()
		close(hangUp)
		time.Sleep(2 * time.Second)
		require.Equal(t, zk.StateHasSession, c.State())
		require.Equal(t, []recipes.SessionEventKind{
			recipes.SessionConnected, recipes.SessionDisconnected,
			recipes.SessionConnected,
		}, seen.kinds())
		c.Close()
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
		require.Regexp(t, `level=ERROR msg="zookeeper: authentication failed" `+
			`error="b:2181: handshake: SASL with SCRIPT: the server refuses it`,
			log.String())
	})
}

func TestSASLArguments(t *testing.T) {
	for _, c := range []struct {
		sasl recipes.SASL
		want string
	}{
		{nil, "WithSASL: the SASL is nil"},
		{(*scriptedSASL)(nil), "WithSASL: the SASL is nil"},
		{recipes.SASLDigestMD5("", "x"), "user or password is empty"},
		{recipes.SASLDigestMD5("x", ""), "user or password is empty"},
	} {
		_, err := recipes.Connect(t.Context(), "a", time.Second, recipes.WithSASL(c.sasl))
		require.ErrorContains(t, err, c.want)
	}
	synctest.Test(t, func(t *testing.T) {
		n := clientNet{
			"a:2181": saslSays(func(int32) {}, func(int32) []byte { return nil }),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := recipes.Connect(ctx, "a", time.Second, recipes.WithDialer(n.dial),
			recipes.WithSASL(&scriptedSASL{none: true}))
		require.ErrorContains(t, err, "Begin returned neither an exchange nor an error")
	})

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		text := fmt.Sprintf(verb, saslBob)
		require.NotContains(t, text, "hunter2", verb)
		require.NotContains(t, text, fmt.Sprintf("%x", "hunter2"), verb)
	}
}
