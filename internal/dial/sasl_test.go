package dial_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

// saslAnswer is an answer in an exchange.
func saslAnswer(xid, code int32, token []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(20+len(token)))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	b = binary.BigEndian.AppendUint32(b, uint32(len(token)))
	return append(b, token...)
}

// echoSASL is a mechanism that wants two challenges, and keeps what it hears.
func echoSASL(heard *[][]byte) *dial.SASL {
	//nolint:unparam // the results are those of a SASLStep
	step := func(_ context.Context, challenge []byte) ([]byte, bool, error) {
		if challenge == nil {
			return []byte{}, false, nil
		}
		*heard = append(*heard, challenge)
		return challenge, len(*heard) > 1, nil
	}
	begin := func(context.Context, string) (dial.SASLStep, error) { return step, nil }
	return &dial.SASL{Name: "ECHO", Begin: begin}
}

// What follows the exchange in the same packet of TCP is the client's to read.
func TestAnExchangeTakesNoMoreThanItsAnswers(t *testing.T) {
	var heard [][]byte
	event := slices.Concat(
		[]byte{0, 0, 0, 29, 255, 255, 255, 255}, make([]byte, 12),
		[]byte{0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, '/'},
	)
	behind := slices.Concat(saslAnswer(0, 0, []byte("a")), saslAnswer(1, 0, []byte("b")),
		saslAnswer(2, 0, nil), event)
	raw := &fakeConn{says: [][]byte{answer(0, 7, 9000), behind}}
	d, _ := dialTo(t, dial.Config{Dial: always(raw), SASL: echoSASL(&heard)}, "a:1")
	conn, err := dialOnce(d)
	require.NoError(t, err)
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	require.NoError(t, err)
	require.Equal(t, 40, n)
	require.Equal(t, [][]byte{[]byte("a"), []byte("b")}, heard)
	require.Equal(t, int64(7), d.LastHandshake().Session)
	n, err = conn.Read(buf[:4])
	require.NoError(t, err)
	require.Equal(t, event[:4], buf[:n])
}

// A session that has expired is for zk to hear of, and needs no credentials.
func TestNoExchangeWithoutASession(t *testing.T) {
	var heard [][]byte
	raw := &fakeConn{says: [][]byte{answer(0, 0, 0)}}
	d, gaveUp := dialTo(t, dial.Config{Dial: always(raw), SASL: echoSASL(&heard)}, "a:1")
	conn, err := dialOnce(d)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	require.NoError(t, *gaveUp)
	require.Empty(t, heard)
}

// An answer for want of authentication is one that zk knows, whatever was asked.
func TestAServerThatRequiresAuthentication(t *testing.T) {
	refusal := func(xid int32) []byte { return saslAnswer(xid, -124, nil)[:20] }
	for name, xid := range map[string]int32{"a request": 1, "a ping": -2} {
		t.Run(name, func(t *testing.T) {
			refused := refusal(xid)
			refused[3] = 16
			raw := &fakeConn{says: [][]byte{answer(0, 7, 9000), refused}}
			d, _ := dialTo(t, dial.Config{Dial: always(raw)}, "a:1")
			conn, err := dialOnce(d)
			require.NoError(t, err)
			buf := make([]byte, 100)
			_, err = conn.Read(buf)
			require.NoError(t, err)
			_, err = conn.Write([]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 3})
			require.NoError(t, err)
			_, err = conn.Read(buf[:4])
			require.NoError(t, err)
			n, err := conn.Read(buf)
			require.NoError(t, err)
			require.Equal(t, 16, n)
			code := int32(binary.BigEndian.Uint32(buf[12:]))
			require.Equal(t, int32(-115), code)
			err = d.TellCut()
			require.ErrorIs(t, err, zk.ErrAuthFailed)
			require.ErrorContains(t, err, "a:1: the server requires authentication")
		})
	}
}

// Only answers that are whole and in turn end an exchange well, and what comes before its
// end gives no session.
func FuzzExchange(f *testing.F) {
	fine := slices.Concat(saslAnswer(0, 0, []byte("a")), saslAnswer(1, 0, []byte("b")),
		saslAnswer(2, 0, nil))
	f.Add(fine)
	f.Add(fine[:len(fine)-1])
	f.Add(saslAnswer(0, -115, nil))
	f.Add(saslAnswer(0, 0, make([]byte, 200<<10)))
	f.Add([]byte{0x7f, 255, 255, 255, 0, 0, 0, 0})
	f.Add(append(saslAnswer(0, 0, []byte("a")), 0, 0, 0, 15))
	f.Fuzz(func(t *testing.T, says []byte) {
		var heard [][]byte
		raw := &fakeConn{says: [][]byte{answer(0, 7, 9000)}}
		if len(says) > 0 {
			raw.says = append(raw.says, slices.Clone(says))
		}
		d, _ := dialTo(t, dial.Config{Dial: always(raw), SASL: echoSASL(&heard)}, "a:1")
		conn, err := dialOnce(d)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 100))
		for _, token := range heard {
			require.LessOrEqual(t, len(token), 128<<10)
		}
		if err != nil {
			require.Zero(t, d.LastHandshake())
			require.ErrorContains(t, d.Explain(errors.New("enough")), "SASL with ECHO")
			return
		}
		require.Equal(t, 9*time.Second, d.LastHandshake().Timeout)
		require.Len(t, heard, 2)
		want := slices.Concat(saslAnswer(0, 0, heard[0]), saslAnswer(1, 0, heard[1]))
		for i := range want {
			if p := i; p >= 8 && p < 16 || p >= 32+len(heard[0]) && p < 40+len(heard[0]) {
				continue // zxids
			}
			require.Equal(t, want[i], says[i], i)
		}
	})
}
