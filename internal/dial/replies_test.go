package dial_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

// framed is a packet with its length in front.
func framed(packet []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)
}

// create is a request to create an ephemeral sequential znode, without data and ACLs.
func create(xid int, path string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(len(path)))
	b = append(append(b, path...), make([]byte, 8)...)
	return framed(binary.BigEndian.AppendUint32(b, 3))
}

// created is the reply to it.
func created(xid, zxid int) []byte {
	const path = "/a-0000000001"
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(path)))
	return framed(append(b, path...))
}

// shake returns a connection of d's whose handshake is over.
func shake(t *testing.T, d *dial.Dialer) net.Conn {
	t.Helper()
	conn, err := dialOnce(d)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	return conn
}

// readReply reads a reply as zk does, in two.
func readReply(conn io.Reader) error {
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, binary.BigEndian.Uint32(head)))
	return err
}

// What was created is known when the reply is read, and told once. Whoever creates
// through the client and never asks must not cost memory for ever.
func TestCreatedAt(t *testing.T) {
	const many, kept = 1000, 256
	raw := &fakeConn{says: [][]byte{answer(0, 7, 4000)}}
	for i := range many {
		raw.says = append(raw.says, created(i, 100+i))
	}
	d, _ := dialTo(t, dial.Config{Dial: always(raw)}, "a:1")
	conn := shake(t, d)
	for i := range many {
		request := create(i, fmt.Sprint("/", i))
		n, err := conn.Write(request)
		require.NoError(t, err)
		require.Len(t, request, n)
	}
	require.Zero(t, d.CreatedAt("/0"))
	require.NoError(t, readReply(conn))
	require.EqualValues(t, 100, d.CreatedAt("/0"))
	require.Zero(t, d.CreatedAt("/0"), "it is told once")
	for range many - 1 {
		require.NoError(t, readReply(conn))
	}
	known := 0
	for i := range many {
		if d.CreatedAt(fmt.Sprint("/", i)) != 0 {
			known++
		}
	}
	require.Equal(t, kept, known)
	_, err := conn.Read(make([]byte, 4))
	require.Equal(t, io.EOF, err)
}

// A malformed reply ends the connection, and who waits hears of it.
func TestAMalformedReply(t *testing.T) {
	const limit = 64
	for name, c := range map[string]struct {
		reply []byte
		err   string
	}{
		"not asked for": {created(1, 5), "not sent, or is answered already (xid 1)"},
		"too long, and to nothing": {
			framed(make([]byte, limit+1)), "not sent, or is answered already (xid 0)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			raw := &fakeConn{says: [][]byte{answer(0, 7, 4000), c.reply}}
			d, _ := dialTo(t, dial.Config{
				Dial: always(raw), Log: slog.New(slog.NewTextHandler(&log, nil)),
				MaxReply: limit,
			}, "a:1")
			conn := shake(t, d)
			err := readReply(conn)
			require.ErrorContains(t, err, c.err)
			require.True(t, raw.closed.Load(), "the connection is cut")
			require.Contains(t, log.String(), "malformed reply, connection cut")
			require.Contains(t, log.String(), "server=a:1")
			require.ErrorContains(t, d.Explain(errors.New("enough")),
				"enough; a connection was cut: a:1: ")
			require.ErrorIs(t, d.TellCut(), err)
			require.NoError(t, d.TellCut(), "it was told")
		})
	}
}

// A reply that is too long is logged, and ends neither the connection nor the time that
// zk has for it.
func TestAReplyThatIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		long := created(1, 5)
		long = append(long, make([]byte, 1<<20)...)
		binary.BigEndian.PutUint32(long, uint32(len(long)-4))
		raw := &slowConn{fakeConn{says: [][]byte{answer(0, 7, 4000), long}}}
		d, _ := dialTo(t, dial.Config{
			Dial: always(raw), Log: slog.New(slog.NewTextHandler(&log, nil)),
			MaxReply: 4096,
		}, "a:1")
		conn := shake(t, d)
		_, err := conn.Write(create(1, "/a"))
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(2*time.Second)))
		require.NoError(t, readReply(conn))
		require.Greater(t, time.Since(began), 2*time.Second)
		require.False(t, raw.closed.Load())
		require.NoError(t, d.TellCut())
		require.Contains(t, log.String(), "reply too long, skipped")
		require.Contains(t, log.String(), "request=create")
		require.Contains(t, log.String(), "limit=4096")
		require.Contains(t, log.String(), "WithMaxReply")
	})
}

// A slowConn takes 10 ms for each 4 KiB, and heeds its deadline.
type slowConn struct{ fakeConn }

func (c *slowConn) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	if !c.readBy.IsZero() && time.Now().After(c.readBy) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.fakeConn.Read(p[:min(len(p), 4096)])
}

// A Keeper that hangs up at a request for a container has refused it. It is told apart by
// the password that it does not give.
func TestAKeeperThatKnowsNoContainers(t *testing.T) {
	for password, refused := range map[byte]bool{0: true, 1: false} {
		greeted := answer(0, 7, 4000)
		greeted[len(greeted)-1] = password
		raw := &fakeConn{says: [][]byte{greeted}}
		d, _ := dialTo(t, dial.Config{Dial: always(raw)}, "a:1")
		conn := shake(t, d)
		_, err := conn.Write(framed([]byte{0, 0, 0, 5, 0, 0, 0, 19}))
		require.NoError(t, err)
		if refused {
			require.NoError(t, readReply(conn))
		}
		require.ErrorIs(t, readReply(conn), io.EOF)
	}
}
