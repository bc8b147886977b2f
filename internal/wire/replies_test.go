package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wire"
)

// says is a server's side of a connection: a read for each slice, and then its end.
type says [][]byte

func (s *says) Read(p []byte) (int, error) {
	if len(*s) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*s)[0])
	if (*s)[0] = (*s)[0][n:]; len((*s)[0]) == 0 {
		*s = (*s)[1:]
	}
	return n, nil
}

// heard is what a Listener has heard.
type heard struct {
	created         map[string]int64
	unauthenticated int
	tooLong         []string
	skipping        int
	malformed       []error
}

func (h *heard) TooLong(request string, bytes int) {
	h.tooLong = append(h.tooLong, fmt.Sprint(request, " ", bytes))
}

func (h *heard) Skipping() { h.skipping++ }

func (h *heard) Created(path string, zxid int64) { h.created[path] = zxid }
func (h *heard) Unauthenticated()                { h.unauthenticated++ }

func (h *heard) Malformed(why error) {
	h.malformed = append(h.malformed, why)
}

// limit is the longest reply of most tests.
const limit = 64 << 20

// hear returns the stream of a server that says this.
func hear(server ...[]byte) (*heard, *wire.Stream) {
	s, h := says(server), &heard{created: map[string]int64{}}
	return h, wire.NewStream(&s, limit, h)
}

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

// readAll reads replies as zk does, each in two, until the stream ends.
func readAll(stream *wire.Stream) (all []byte, err error) {
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(stream, head); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		rest := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(stream, rest); err != nil {
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

// However the replies come in, zk gets them as they are, and what was created is known
// when the reply is read.
func TestCreatedIsHeard(t *testing.T) {
	const count = 3
	var whole []byte
	for i := range int32(count) {
		whole = append(whole, created(i, 100+int64(i), 0)...)
	}
	for size := range len(whole) {
		h, stream := hear(slices.Collect(slices.Chunk(whole, size+1))...)
		for i := range int32(count) {
			stream.Sending(create(i, fmt.Sprint("/a/", i, "-"), sequential))
		}
		require.Empty(t, h.created)
		for i := range count {
			got := make([]byte, len(whole)/count)
			_, err := io.ReadFull(stream, got[:4]) // as zk reads
			require.NoError(t, err)
			_, err = io.ReadFull(stream, got[4:])
			require.NoError(t, err)
			require.Equal(t, whole[i*len(got):][:len(got)], got)
			require.EqualValues(t, 100+i, h.created[fmt.Sprint("/a/", i, "-")])
		}
		_, err := stream.Read(make([]byte, 4))
		require.Equal(t, io.EOF, err)
	}
}

// The path may be all that there is in front of the flags.
func TestTheShortestCreateIsHeard(t *testing.T) {
	h, stream := hear(created(1, 5, 0))
	stream.Sending(packet(int32(1), opCreate, "/a-", sequential))
	_, err := readAll(stream)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"/a-": 5}, h.created)
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
		"a path with the flags":     {announcing(int32(len(path) + 5)), done},
		"a path somewhat too long":  {announcing(30), done},
		"a path of negative length": {announcing(-1), done},
	} {
		t.Run(name, func(t *testing.T) {
			h, stream := hear(c.reply)
			stream.Sending(c.request)
			got, err := readAll(stream)
			require.NoError(t, err)
			require.Equal(t, c.reply, got)
			require.Empty(t, h.created)
		})
	}
}

// A Keeper that does not know containers hangs up without a word.
func TestASilentRefusal(t *testing.T) {
	container := packet(int32(5), opCreateContainer, "/a", "", int32(0), int32(4))
	refusal := packet(int32(5), int64(-1), int32(-6))
	for name, tc := range map[string]struct {
		silent  bool
		request []byte
		told    []byte
	}{
		"container":               {true, container, refusal},
		"another":                 {true, packet(int32(5), opGet, "/a", false), nil},
		"container, of ZooKeeper": {false, container, nil},
	} {
		t.Run(name, func(t *testing.T) {
			read := packet(int32(4), int64(9), int32(-101))
			_, stream := hear(read)
			if tc.silent {
				stream.ExpectSilence()
			}
			stream.Sending(packet(int32(4), opGet, "/b", false))
			stream.Sending(tc.request)
			told, err := readAll(stream)
			require.NoError(t, err)
			require.Equal(t, append(read, tc.told...), told)
		})
	}
}
