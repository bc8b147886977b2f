package dial_test

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

// answer is a server's answer to a handshake.
func answer(version, session int64, timeout int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, 36)
	b = binary.BigEndian.AppendUint32(b, uint32(version))
	b = binary.BigEndian.AppendUint32(b, uint32(timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, 16)
	return append(b, make([]byte, 16)...)
}

// However the answer comes in, and is read, the session is known with its first byte.
func TestAnAnswerInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := answer(0, 7, 4000)
		for size := range len(whole) {
			pieces := slices.Collect(slices.Chunk(whole, size+1))
			d, _ := dialTo(t, dial.Config{Dial: always(&fakeConn{says: pieces})}, "a:1")
			conn, err := dialOnce(d)
			require.NoError(t, err)
			began := time.Now()
			require.Zero(t, d.LastHandshake())
			var got []byte
			for len(got) < len(whole) {
				time.Sleep(time.Millisecond)
				piece := make([]byte, size+1)
				n, err := conn.Read(piece)
				require.NoError(t, err)
				got = append(got, piece[:n]...)
				require.Equal(t, dial.Handshake{
					Session: 7, Began: began, Timeout: 4 * time.Second,
				}, d.LastHandshake())
			}
			require.Equal(t, whole, got)
			_, err = conn.Read(make([]byte, 100))
			require.Equal(t, io.EOF, err, "after the handshake all is as it comes")
		}
	})
}

// passworded is an answer that says that its password has this length.
func passworded(length int32) []byte {
	b := answer(0, 7, 9000)
	binary.BigEndian.PutUint32(b[20:], uint32(length))
	return b
}

func TestWhatIsNoSession(t *testing.T) {
	const (
		noLeader     = "has no leader (protocol version "
		notZooKeeper = "not ZooKeeper's"
	)
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, c := range map[string]struct {
		says   []byte
		err    string
		gaveUp bool
	}{
		"no leader, version": {answer(42, 7, 9000), noLeader + "42, session 7)", false},
		"no leader, session": {answer(0, -1, 9000), noLeader + "0, session -1)", false},
		"no timeout":         {answer(0, 7, 0), "session timeout of 0 ms", false},
		"negative timeout":   {answer(0, 7, -1), "session timeout of -1 ms", false},
		"HTTP":               {[]byte("HTTP/1.1 400"), notZooKeeper, true},
		"too short":          {length(19), notZooKeeper, true},
		"too long":           {length(129), notZooKeeper, true},
		"huge password":      {passworded(0x7fffffff), " of 2147483647 bytes", false},
		"negative password":  {passworded(-1), "password of -1 bytes", false},
		"password and a bit": {passworded(17), "has a password of 17 bytes", false},
		"nothing":            {nil, "Or is its maxClientCnxns reached? (EOF)", false},
	} {
		t.Run(name, func(t *testing.T) {
			raw := &fakeConn{}
			if c.says != nil {
				raw.says = [][]byte{c.says}
			}
			d, gaveUp := dialTo(t, dial.Config{Dial: always(raw)}, "a:1")
			conn, err := dialOnce(d)
			require.NoError(t, err)
			n, err := conn.Read(make([]byte, 100))
			require.Zero(t, n)
			require.ErrorContains(t, err, c.err)
			require.ErrorContains(t, d.Explain(errors.New("enough")), c.err)
			require.Equal(t, c.gaveUp, *gaveUp != nil)
			require.Zero(t, d.LastHandshake())
		})
	}
}

// That a session has expired is for zk to hear, and changes nothing here.
func TestAnExpiredSession(t *testing.T) {
	raw := &fakeConn{says: [][]byte{answer(0, 7, 9000), answer(0, 0, 0)}}
	d, _ := dialTo(t, dial.Config{Dial: always(raw)}, "a:1")
	var before dial.Handshake
	for range 2 {
		conn, err := dialOnce(d)
		require.NoError(t, err)
		before = d.LastHandshake()
		n, err := conn.Read(make([]byte, 100))
		require.NoError(t, err)
		require.Equal(t, 40, n)
		why := errors.New("enough")
		require.Equal(t, why, d.Explain(why), "the server has answered")
	}
	require.Equal(t, int64(7), before.Session)
	require.Equal(t, before, d.LastHandshake())
}

// greeting is a client's handshake for a session.
func greeting(session int64) []byte {
	b := binary.BigEndian.AppendUint32(nil, 44)
	b = append(b, make([]byte, 4+8+4)...)
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, 16)
	return append(b, make([]byte, 16)...)
}

// A server that gives another session than the one that was asked for does not resume
// that: to zk it has expired.
func TestAnotherSessionThanAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, given, got int64
	}{
		"new":     {0, 7, 7},
		"resumed": {7, 7, 7},
		"expired": {7, 0, 0},
		"another": {7, 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			raw := &fakeConn{says: [][]byte{answer(0, tc.given, 9000)}}
			d, _ := dialTo(t, dial.Config{Dial: always(raw)}, "a:1")
			conn, err := dialOnce(d)
			require.NoError(t, err)
			_, err = conn.Write(greeting(tc.asked))
			require.NoError(t, err)
			length, rest := make([]byte, 4), make([]byte, 36)
			_, err = io.ReadFull(conn, length)
			require.NoError(t, err)
			require.False(t, raw.closed.Load())
			_, err = io.ReadFull(conn, rest)
			require.NoError(t, err)
			require.Equal(t, uint32(36), binary.BigEndian.Uint32(length))
			require.Equal(t, tc.got, int64(binary.BigEndian.Uint64(rest[8:])))
			require.Equal(t, tc.got, d.LastHandshake().Session)
			require.Equal(t, tc.got == 0, raw.closed.Load(), "zk does not close it")
		})
	}
}

// A server has a third of the session timeout: of the one that was granted last, if any.
func TestTheTimeForAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for asked, patience := range map[time.Duration]time.Duration{
			time.Second:     time.Second,
			9 * time.Second: 3 * time.Second,
			time.Hour:       15 * time.Second,
		} {
			raw := &fakeConn{says: [][]byte{answer(0, 7, 6000)}}
			config := dial.Config{Dial: always(raw), SessionTimeout: asked}
			d, _ := dialTo(t, config, "a:1")
			conn, err := dialOnce(d)
			require.NoError(t, err)
			until := time.Now().Add(patience)
			for given, bound := range map[time.Time]time.Time{
				{}:                                 until,
				until.Add(time.Second):             until,
				until.Add(-100 * time.Millisecond): until.Add(-100 * time.Millisecond),
			} {
				require.NoError(t, conn.SetReadDeadline(given))
				require.Equal(t, bound, raw.readBy)
			}
			_, err = conn.Read(make([]byte, 100))
			require.NoError(t, err)
			later := until.Add(time.Minute)
			for _, given := range []time.Time{{}, later} {
				require.NoError(t, conn.SetReadDeadline(given))
				require.Equal(t, given, raw.readBy, "the handshake is over")
			}

			conn, err = dialOnce(d)
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(later))
			require.Equal(t, time.Now().Add(2*time.Second), raw.readBy)
		}
	})
}

func TestAFailedWrite(t *testing.T) {
	raw := &fakeConn{says: [][]byte{answer(0, 7, 9000)}, writes: io.ErrClosedPipe}
	d, _ := dialTo(t, dial.Config{Dial: always(raw)}, "a:1")
	conn, err := dialOnce(d)
	require.NoError(t, err)
	_, err = conn.Write([]byte("hello"))
	require.ErrorIs(t, err, raw.writes, "in the handshake zk hears of it")
	require.ErrorContains(t, d.Explain(errors.New("enough")), "a:1: handshake: ")

	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	require.False(t, raw.closed.Load())
	n, err := conn.Write([]byte("hello"))
	require.NoError(t, err, "after it, its reader does")
	require.Equal(t, 5, n)
	require.True(t, raw.closed.Load())
}

// Only an answer gives a session, and it makes no difference in what pieces it comes.
func FuzzAnswer(f *testing.F) {
	for _, says := range [][]byte{
		answer(0, 7, 9000), answer(0, 0, 0), answer(0, -1, 9000), answer(1, 7, 9000),
		answer(0, 7, -1), append(answer(0, 7, 9000), 1), answer(0, 7, 9000)[:20],
		passworded(0x7fffffff), passworded(-1), passworded(17), passworded(0),
		[]byte("HTTP/1"),
	} {
		f.Add(says, uint8(5))
	}
	f.Fuzz(func(t *testing.T, says []byte, size uint8) {
		if len(says) > 4 { // what follows is no part of the answer
			length := 4 + int64(binary.BigEndian.Uint32(says))
			says = says[:min(int64(len(says)), length)]
		}
		read := func(pieces ...[]byte) (dial.Handshake, error) {
			d, _ := dialTo(t, dial.Config{Dial: always(&fakeConn{says: pieces})}, "a:1")
			conn, err := dialOnce(d)
			require.NoError(t, err)
			if _, err := conn.Read(make([]byte, len(says))); err != nil {
				return dial.Handshake{}, err
			}
			last := d.LastHandshake()
			last.Began = time.Time{}
			return last, nil
		}
		atOnce, err := read(says)
		inPieces, sameErr := read(slices.Collect(slices.Chunk(says, int(size)+1))...)
		require.Equal(t, atOnce, inPieces)
		require.Equal(t, err, sameErr)
		if atOnce == (dial.Handshake{}) {
			return
		}
		require.NotContains(t, []int64{0, -1}, atOnce.Session)
		require.Positive(t, atOnce.Timeout)
		length := int(binary.BigEndian.Uint32(says))
		require.GreaterOrEqual(t, len(says), 4+length)
		password := int(binary.BigEndian.Uint32(says[20:]))
		require.LessOrEqual(t, 24+password, 4+length, "it is within the answer")
		want := answer(0, atOnce.Session, int32(atOnce.Timeout.Milliseconds()))
		require.Equal(t, want[4:20], says[4:20])
	})
}
