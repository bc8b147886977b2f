package dial_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

const (
	seenZxid    = 0x500000007
	seenSession = 7
)

// seenGreeting is the handshake of a client that has seen something.
func seenGreeting() []byte {
	p := greeting(seenSession)
	binary.BigEndian.PutUint64(p[8:], seenZxid)
	p[len(p)-1] = 1 // the password
	return p
}

// syncReply is a server's, to the first request of a connection.
func syncReply(xid uint32, zxid uint64, code uint32) []byte {
	p := binary.BigEndian.AppendUint32(nil, 4+8+4+4+1)
	p = binary.BigEndian.AppendUint32(p, xid)
	p = binary.BigEndian.AppendUint64(p, zxid)
	p = binary.BigEndian.AppendUint32(p, code)
	return append(p, 0, 0, 0, 1, '/')
}

// written keeps what is written to a connection.
type written struct {
	fakeConn
	bytes.Buffer
}

func (w *written) Read(p []byte) (int, error)  { return w.fakeConn.Read(p) }
func (w *written) Write(p []byte) (int, error) { return w.Buffer.Write(p) }

// After a session timeout in which servers hang up, one attempt is that of a new client.
// Only if the ensemble has not come so far, zk is told that its session has expired.
func TestHistoriesAreCompared(t *testing.T) {
	const older = "history is older"
	for name, c := range map[string]struct {
		says    [][]byte
		expired bool
	}{
		"older":           {[][]byte{syncReply(1, seenZxid-1, 0)}, true},
		"the same":        {[][]byte{syncReply(1, seenZxid, 0)}, false},
		"later":           {[][]byte{syncReply(1, seenZxid+9, 0)}, false},
		"not told":        {[][]byte{syncReply(1, 0, 0)}, false},
		"refused":         {[][]byte{syncReply(1, 1, ^uint32(123))}, false},
		"another request": {[][]byte{syncReply(2, 1, 0)}, false},
		"no answer":       {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var next net.Conn
				d, _ := dialTo(t, dial.Config{
					Dial: by(func() (net.Conn, error) { return next, nil }),
					Log:  slog.New(slog.NewTextHandler(&log, nil)),
				}, "a:1")
				shakeHands := func(conn net.Conn) (answered []byte, err error) {
					next = conn
					c, err := dialOnce(d)
					require.NoError(t, err)
					_, err = c.Write(seenGreeting())
					require.NoError(t, err)
					answered = make([]byte, 100)
					n, err := c.Read(answered)
					return answered[:n], err
				}
				_, err := shakeHands(&fakeConn{says: [][]byte{
					answer(0, seenSession, 9000),
				}})
				require.NoError(t, err)
				began := time.Now()
				for time.Since(began) < 9*time.Second {
					hangsUp := &written{}
					_, err = shakeHands(hangsUp)
					require.Error(t, err)
					require.Equal(t, seenGreeting(), hangsUp.Bytes())
					time.Sleep(time.Second)
				}
				require.NotContains(t, log.String(), "level=ERROR")

				asked := &written{}
				asked.says = append([][]byte{answer(0, 99, 9000)}, c.says...)
				answered, err := shakeHands(asked)
				require.Equal(t, greeting(0), asked.Next(len(greeting(0))))
				require.Equal(t, c.expired, err == nil, "%v", err)
				require.Equal(t, c.expired, bytes.Contains(log.Bytes(), []byte(older)))
				if c.expired {
					require.Zero(t, binary.BigEndian.Uint64(answered[12:]))
					enough := errors.New("enough")
					require.Equal(t, enough, d.Explain(enough))
					closes := asked.Bytes()[len(asked.Bytes())-4:]
					require.Equal(t, int32(-11), int32(binary.BigEndian.Uint32(closes)))
					return
				}
				resumes := &written{}
				_, err = shakeHands(resumes)
				require.Error(t, err)
				require.Equal(t, seenGreeting(), resumes.Bytes(), "once in a timeout")
				require.Contains(t, log.String(), "the servers hang up at each handshake")
			})
		})
	}
}

// A client that has seen nothing is turned away for another reason, and keeps its session
// for when that has gone.
func TestWithoutAZxidNothingIsCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next net.Conn
		d, _ := dialTo(t, dial.Config{
			Dial: by(func() (net.Conn, error) { return next, nil }),
		}, "a:1")
		next = &fakeConn{says: [][]byte{answer(0, seenSession, 9000)}}
		c, err := dialOnce(d)
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 100))
		require.NoError(t, err)
		for range 20 {
			conn := &written{}
			next = conn
			c, err := dialOnce(d)
			require.NoError(t, err)
			_, err = c.Write(greeting(seenSession))
			require.NoError(t, err)
			_, err = c.Read(make([]byte, 100))
			require.Error(t, err)
			require.Equal(t, greeting(seenSession), conn.Bytes())
			time.Sleep(time.Second)
		}
	})
}
