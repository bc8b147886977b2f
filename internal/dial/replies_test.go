package dial_test

import (
	"bytes"
	"encoding/binary"
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

const (
	opCreate   = int32(1)
	sequential = int32(zk.FlagEphemeral | zk.FlagSequence)
)

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
	server := &fakeConn{says: append([][]byte{answer(0, 7, 4000)}, says...)}
	d, _ := dialTo(t, dial.Config{Dial: always(server)}, "a:1")
	conn, err := dialOnce(d)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	return d, conn
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
		_, err := conn.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
	}
}

func TestWhatCreatedNothingThatIsAskedFor(t *testing.T) {
	const path = "/a/x-"
	whole, done := create(1, path, sequential), created(1, 5, 0)
	// of a request that says how long its path is
	saying := func(length int32) []byte {
		return packet(int32(1), opCreate, length, path, sequential)
	}
	for name, c := range map[string]struct{ request, reply []byte }{
		"a create that failed":      {whole, created(1, 5, -110)},
		"another's reply":           {whole, created(2, 5, 0)},
		"a znode without a number":  {create(1, path, zk.FlagEphemeral), done},
		"another request":           {packet(int32(1), int32(4), path, sequential), done},
		"a path that is too long":   {saying(99), done},
		"a path of negative length": {saying(-1), done},
		"a request in pieces":       {whole[:30], done},
		"one that is only begun":    {whole[:8], done},
	} {
		t.Run(name, func(t *testing.T) {
			d, conn := shaken(t, c.reply)
			send(t, conn, c.request)
			got, err := io.ReadAll(conn)
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
	_, err := io.ReadAll(conn)
	require.NoError(t, err)
	known := 0
	for i := range many {
		if d.CreatedAt(fmt.Sprint("/", i)) != 0 {
			known++
		}
	}
	require.Equal(t, 256, known)
}

// A reply that is shorter than its head cannot be one; zk would decode what it has read
// before.
func TestAReplyThatIsNone(t *testing.T) {
	for _, length := range []int32{0, 15, -1} {
		head := binary.BigEndian.AppendUint32(nil, uint32(length))
		_, conn := shaken(t, append(head, make([]byte, 16)...))
		_, err := conn.Read(make([]byte, 4))
		require.ErrorContains(t, err, "not ZooKeeper's")
	}
}

func FuzzReplies(f *testing.F) {
	f.Add(create(1, "/a-", sequential), created(1, 5, 0))
	f.Add([]byte{}, []byte{0, 0, 0, 16})
	f.Fuzz(func(t *testing.T, request, says []byte) {
		_, conn := shaken(t, says)
		send(t, conn, request)
		got, err := io.ReadAll(conn)
		if err == nil && !bytes.HasPrefix(says, got) {
			t.Fatalf("read %q of %q", got, says)
		}
	})
}
