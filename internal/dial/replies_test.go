package dial_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

// packet is one with its length in front.
func packet(fields ...any) []byte {
	var b bytes.Buffer
	for _, f := range fields {
		if s, ok := f.(string); ok {
			_ = binary.Write(&b, binary.BigEndian, int32(len(s)))
			f = []byte(s)
		}
		_ = binary.Write(&b, binary.BigEndian, f)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
}

const sequential = int32(zk.FlagEphemeral | zk.FlagSequence)

// readAll reads replies as zk does, each in two, until the connection ends.
func readAll(conn net.Conn) (all []byte, err error) {
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(conn, head); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		rest := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(conn, rest); err != nil {
			return all, err
		}
		all = append(append(all, head...), rest...)
	}
}

// create is a request to create a znode without data, with one ACL.
func create(xid int32, path string, flags int32) []byte {
	return packet(xid, opCreate, path, "", int32(1), int32(31), "world", "anyone", flags)
}

func created(xid int32, zxid int64, code int32) []byte {
	return packet(xid, zxid, code, "/a-0000000001")
}

// shaken returns a connection whose handshake is over and whose server then says what
// says has, as it comes.
func shaken(t *testing.T, says ...[]byte) (*dial.Dialer, net.Conn) {
	t.Helper()
	d, _ := dialTo(t, dial.Config{Dial: always(saying(says...))}, "a:1")
	return d, shake(t, d)
}

// saying is a server that grants a session, and then says this.
func saying(says ...[]byte) *fakeConn {
	return &fakeConn{says: append([][]byte{answer(0, 7, 4000)}, says...)}
}

// shake does a handshake.
func shake(t *testing.T, d *dial.Dialer) net.Conn {
	t.Helper()
	conn, err := dialOnce(d)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	return conn
}

func send(t *testing.T, conn net.Conn, request []byte) {
	t.Helper()
	n, err := conn.Write(request)
	require.NoError(t, err)
	require.Len(t, request, n)
}

// However the replies come in, zk gets them as they are, and what was created is known
// when the reply is read.
func TestCreatedAt(t *testing.T) {
	const count = 3
	var whole []byte
	for i := range int32(count) {
		whole = append(whole, created(i, 100+int64(i), 0)...)
	}
	for size := range len(whole) {
		d, conn := shaken(t, slices.Collect(slices.Chunk(whole, size+1))...)
		for i := range int32(count) {
			send(t, conn, create(i, fmt.Sprint("/a/", i, "-"), sequential))
		}
		require.Zero(t, d.CreatedAt("/a/0-"))
		for i := range count {
			got := make([]byte, len(whole)/count)
			_, err := io.ReadFull(conn, got[:4]) // as zk reads
			require.NoError(t, err)
			_, err = io.ReadFull(conn, got[4:])
			require.NoError(t, err)
			require.Equal(t, whole[i*len(got):][:len(got)], got)
			require.EqualValues(t, 100+i, d.CreatedAt(fmt.Sprint("/a/", i, "-")))
			require.Zero(t, d.CreatedAt(fmt.Sprint("/a/", i, "-")), "it is told once")
		}
		_, err := conn.Read(make([]byte, 4))
		require.Equal(t, io.EOF, err)
	}
}

func TestWhatCreatedNothingThatIsAskedFor(t *testing.T) {
	const path = "/a/x-"
	whole, done := create(1, path, sequential), created(1, 5, 0)
	// of a request that says how long its path is
	announcing := func(length int32) []byte {
		return packet(int32(1), opCreate, length, path, sequential)
	}
	for name, c := range map[string]struct{ request, reply []byte }{
		"a create that failed":      {whole, created(1, 5, -110)},
		"a znode without a number":  {create(1, path, zk.FlagEphemeral), done},
		"another request":           {packet(int32(1), opSync, path, sequential), done},
		"a path that is too long":   {announcing(99), done},
		"a path of negative length": {announcing(-1), done},
	} {
		t.Run(name, func(t *testing.T) {
			d, conn := shaken(t, c.reply)
			send(t, conn, c.request)
			got, err := readAll(conn)
			require.NoError(t, err)
			require.Equal(t, c.reply, got)
			require.Zero(t, d.CreatedAt(path))
		})
	}
}

// Whoever creates through the client and never asks must not cost memory for ever.
func TestCreatesAreForgotten(t *testing.T) {
	const many = 1000
	var replies [][]byte
	for i := range int32(many) {
		replies = append(replies, created(i, int64(i)+1, 0))
	}
	d, conn := shaken(t, replies...)
	for i := range int32(many) {
		send(t, conn, create(i, fmt.Sprint("/", i), sequential))
	}
	_, err := readAll(conn)
	require.NoError(t, err)
	known := 0
	for i := range many {
		if d.CreatedAt(fmt.Sprint("/", i)) != 0 {
			known++
		}
	}
	require.Equal(t, 256, known)
}

// A Keeper that does not know containers hangs up without a word. It is told apart by the
// password that it does not give.
func TestAKeeperThatKnowsNoContainers(t *testing.T) {
	container := packet(int32(5), opCreateContainer, "/a", "", int32(0), int32(4))
	refusal := packet(int32(5), int64(-1), int32(-6))
	for name, tc := range map[string]struct {
		password byte
		request  []byte
		told     []byte
	}{
		"container":               {0, container, refusal},
		"another":                 {0, create(5, "/a", 0), nil},
		"container, of ZooKeeper": {1, container, nil},
	} {
		t.Run(name, func(t *testing.T) {
			greeted := answer(0, 7, 4000)
			greeted[len(greeted)-1] = tc.password
			read := packet(int32(4), int64(9), int32(-101))
			d, _ := dialTo(t, dial.Config{
				Dial: always(&fakeConn{says: [][]byte{greeted, read}}),
			}, "a:1")
			conn := shake(t, d)
			send(t, conn, packet(int32(4), opGet, "/b", false))
			send(t, conn, tc.request)
			told, err := readAll(conn)
			require.NoError(t, err)
			require.Equal(t, append(read, tc.told...), told)
		})
	}
}
