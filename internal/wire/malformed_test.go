package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wire"
)

const (
	opError           = int32(-1)
	opCreate          = int32(1)
	opDelete          = int32(2)
	opExists          = int32(3)
	opGet             = int32(4)
	opSet             = int32(5)
	opGetACL          = int32(6)
	opSetACL          = int32(7)
	opChildren        = int32(8)
	opSync            = int32(9)
	opChildren2       = int32(12)
	opCheck           = int32(13)
	opMulti           = int32(14)
	opCreate2         = int32(15)
	opReconfig        = int32(16)
	opCreateContainer = int32(19)
	opCreateTTL       = int32(21)
	opAuth            = int32(100)
	opSetWatches      = int32(101)
	opClose           = int32(-11)

	xidEvent = int32(-1)
	xidPing  = int32(-2)

	negative = int32(-1)
	huge     = int32(0x7fffffff)
)

var stat = make([]byte, 68)

// reply is one of a request that went well.
func reply(xid int32, body ...any) []byte {
	return packet(append([]any{xid, int64(5), int32(0)}, body...)...)
}

// multi is a request of these operations, with the xid 1.
func multi(ops ...int32) []byte {
	fields := []any{int32(1), opMulti}
	for _, op := range ops {
		fields = append(fields, op, false, int32(-1), "/a")
		switch op {
		case opCreate:
			fields = append(fields, "data", int32(1), int32(31), "world", "anyone")
		case opSet:
			fields = append(fields, negative) // no data
		}
		fields = append(fields, int32(0))
	}
	return packet(append(fields, opError, true, int32(-1))...)
}

// result is what comes before that of an operation of a multi.
func result(op int32) []any { return []any{op, false, int32(0)} }

// end is behind the last result of a multi.
var end = []any{opError, true, int32(-1)}

// asking returns a request with that opcode and the xid 1.
func asking(op int32) []byte {
	if op == opMulti {
		return multi(opCheck, opCreate, opSet, opDelete)
	}
	return packet(int32(1), op, "/a")
}

// wellFormed are bodies of replies that servers send: ZooKeeper 3.4 to 3.9 and ClickHouse
// Keeper.
var wellFormed = map[string]struct {
	op   int32
	body []any
}{
	"create":                    {opCreate, []any{"/a-0000000001"}},
	"create container":          {opCreateContainer, []any{"/a", stat}},
	"create container, no stat": {opCreateContainer, []any{"/a"}},
	"create with a TTL":         {opCreateTTL, []any{"/a", stat}},
	"sync":                      {opSync, []any{"/"}},
	"exists":                    {opExists, []any{stat}},
	"set":                       {opSet, []any{stat}},
	"set ACL":                   {opSetACL, []any{stat}},
	"get":                       {opGet, []any{"data", stat}},
	"get, no data":              {opGet, []any{negative, stat}},
	"get, empty data":           {opGet, []any{"", stat}},
	"reconfig":                  {opReconfig, []any{"server.1=a:1:1", stat}},
	"get ACL": {
		opGetACL, []any{int32(1), int32(31), "world", "anyone", stat},
	},
	"get ACL, none":                 {opGetACL, []any{int32(0), stat}},
	"children":                      {opChildren2, []any{int32(2), "a", "b", stat}},
	"children, none":                {opChildren2, []any{int32(0), stat}},
	"children without a stat":       {opChildren, []any{int32(1), "a"}},
	"delete":                        {opDelete, nil},
	"auth":                          {opAuth, nil},
	"set watches":                   {opSetWatches, nil},
	"close":                         {opClose, nil},
	"what nobody here has heard of": {999, []any{negative, huge}},
	"multi": {opMulti, slices.Concat(result(opCheck), result(opCreate), []any{"/a"},
		result(opSet), []any{stat}, result(opDelete), end)},
	"multi that failed": {opMulti, slices.Concat(
		result(opError), []any{int32(0)}, result(opError), []any{int32(-110)},
		result(opError), []any{int32(-2)}, result(opError), []any{int32(-2)}, end)},
	"multi that made a container": {opMulti, slices.Concat(result(opCheck),
		result(opCreateContainer), []any{"/a", stat},
		result(opSet), []any{stat}, result(opDelete), end)},
}

// What servers send passes as it is, and so does a refusal, which has no body.
func TestRepliesOfServersPass(t *testing.T) {
	for name, c := range wellFormed {
		t.Run(name, func(t *testing.T) {
			event := slices.Concat(
				packet(xidEvent, int64(-1), int32(0), int32(1), int32(3), "/a"),
				packet(xidEvent, int64(-1), int32(0), int32(4), int32(3), "/a"))
			ping := packet(xidPing, int64(5), int32(0))
			refused := packet(int32(1), int64(5), int32(-101))
			for _, says := range [][]byte{reply(1, c.body...), refused} {
				says = slices.Concat(event, says, ping)
				_, stream := hear(says)
				stream.Sending(asking(c.op))
				got, err := readAll(stream)
				require.NoError(t, err)
				require.Equal(t, says, got)
			}
		})
	}
}

// A server that wants authentication says so with a code that zk does not know.
func TestARefusalForWantOfAuthentication(t *testing.T) {
	refused := func(code int32) []byte { return packet(int32(1), int64(5), code) }
	h, stream := hear(refused(-124))
	stream.Sending(asking(opGet))
	got, err := readAll(stream)
	require.NoError(t, err)
	require.Equal(t, refused(-115), got)
	require.Equal(t, 1, h.unauthenticated)

	for _, says := range [][]byte{
		refused(-115), packet(xidEvent, int64(-1), int32(-124), int32(4), int32(3), "/a"),
	} {
		h, stream := hear(says)
		stream.Sending(asking(opGet))
		got, err := readAll(stream)
		require.NoError(t, err)
		require.Equal(t, says, got)
		require.Zero(t, h.unauthenticated)
	}
}

// The request to close the session is all head.
func TestARequestWithoutABody(t *testing.T) {
	_, stream := hear(reply(1))
	stream.Sending(packet(int32(1), opClose))
	got, err := readAll(stream)
	require.NoError(t, err)
	require.Equal(t, reply(1), got)
}

// Nothing that ends early passes: zk would take the rest from the reply before, or panic.
func TestRepliesThatEndEarly(t *testing.T) {
	for name, c := range wellFormed {
		whole := reply(1, c.body...)
		if name == "create container" || name == "create with a TTL" ||
			name == "multi that made a container" || c.op == 999 {
			continue // of which zk does not read all
		}
		for n := 20; n < len(whole); n++ {
			short := binary.BigEndian.AppendUint32(nil, uint32(n-4))
			_, stream := hear(append(short, whole[4:n]...))
			stream.Sending(asking(c.op))
			_, err := readAll(stream)
			require.ErrorContains(t, err, "the reply to ", "%s cut to %d bytes", name, n)
		}
	}
}

// many are the results of a multi, which cost zk far more memory than bytes.
func many(n int) []any {
	var all []any
	for range n {
		all = append(all, result(opDelete)...)
	}
	return append(all, end...)
}

func TestMalformedReplies(t *testing.T) {
	head := func(length int32) []byte {
		return packet(int32(1), int64(5), int32(0), length)[4:]
	}
	framed := func(length uint32) []byte {
		return append(binary.BigEndian.AppendUint32(nil, length), head(0)...)
	}
	of := func(op int32, body ...any) [2][]byte {
		return [2][]byte{asking(op), reply(1, body...)}
	}
	for name, c := range map[string]struct {
		packets [2][]byte // the request and the reply
		err     string
	}{
		"empty": {
			[2][]byte{asking(opGet), framed(0)}, "0 bytes is not ZooKeeper's",
		},
		"part of a head": {
			[2][]byte{asking(opGet), framed(15)}, "15 bytes is not",
		},
		"negative length": {
			[2][]byte{asking(opGet), framed(0xffffffff)}, "-1 bytes is not",
		},
		"too long": {
			[2][]byte{asking(opDelete), framed(64<<20 + 1)},
			"delete: 67108865 bytes is longer than the limit of 67108864 bytes",
		},
		"2 GB": {
			[2][]byte{asking(opGet), framed(uint32(huge))}, "longer than the limit",
		},
		"not sent": {
			[2][]byte{asking(opGet), reply(2)},
			"not sent, or is answered already (xid 2)",
		},
		"answered": {
			[2][]byte{asking(opDelete), append(reply(1), reply(1)...)}, "(xid 1)",
		},
		"strange xid": {[2][]byte{asking(opGet), reply(-3)}, "(xid -3)"},
		"auth's":      {[2][]byte{asking(opAuth), reply(-4)}, "(xid -4)"},

		"children, count": {
			of(opChildren2, negative), "children: names: -1 in 0 bytes",
		},
		"children, huge count": {
			of(opChildren2, huge, stat), "children: names: 2147483647 in 68 bytes",
		},
		"children, more than fit": {
			of(opChildren2, int32(18), stat), "children: names: 18 in 68 bytes",
		},
		"children, name": {
			of(opChildren2, int32(1), huge, stat), "name: 2147483647 bytes where",
		},
		"children, no name": {
			of(opChildren2, int32(1), negative, stat), "name: has the length -1",
		},
		"children, stat": {
			of(opChildren2, int32(1), "a"), "stat: 68 bytes where there are 0",
		},
		"old children": {of(opChildren, negative), "names: -1"},
		"get, data": {
			of(opGet, huge, stat), "get: data: 2147483647 bytes where there are 68",
		},
		"get, length": {
			of(opGet, int32(-2), stat), "data: has the length -2",
		},
		"reconfig":        {of(opReconfig, huge, stat), "reconfig: data"},
		"create, path":    {of(opCreate, huge), "create: path: "},
		"create, no path": {of(opCreate, negative), "path: has the length -1"},
		"exists":          {of(opExists), "exists: stat"},
		"ACLs, count":     {of(opGetACL, negative, stat), "get ACL: ACLs: -1 in"},
		"ACLs, huge count": {
			of(opGetACL, huge, stat), "ACLs: 2147483647 in 68 bytes",
		},
		"ACLs, scheme": {
			of(opGetACL, int32(1), int32(31), huge, "", stat), "scheme: 2147",
		},
		"ACLs, id": {
			of(opGetACL, int32(1), int32(31), "", huge, stat), "id: 2147",
		},

		"multi, empty": {
			of(opMulti), "multi: header of an operation: 9 bytes where",
		},
		"multi, short":      {of(opMulti, int32(1)), "9 bytes where there are 4"},
		"multi, no results": {of(opMulti, end...), "0 results of 4 operations"},
		"multi, too many": {
			[2][]byte{multi(opDelete), reply(1, many(1000)...)},
			"more results than operations, of which there are 1",
		},
		"multi, another's": {
			of(opMulti, result(opCreate)...),
			"a result of type 1 for an operation of type 13",
		},
		"multi, unknown": {
			of(opMulti, result(77)...), "a result of type 77 for an operation",
		},
		"multi, no end": {
			[2][]byte{multi(opDelete), reply(1, result(opDelete)...)}, "9 bytes where",
		},
		"multi, path": {
			[2][]byte{multi(opCreate), reply(1, append(result(opCreate), huge)...)},
			"path: 2147483647 bytes",
		},

		"event, path": {
			[2][]byte{
				nil, packet(xidEvent, int64(-1), int32(0), int32(4), int32(3), huge),
			},
			"a watch event: path: ",
		},
		"event, empty": {
			[2][]byte{nil, packet(xidEvent, int64(-1), int32(0))}, "type: 4 bytes",
		},
		"event with an error": {
			[2][]byte{nil, packet(xidEvent, int64(-1), int32(-4))}, "type: 4 bytes",
		},
		"event of no type": {
			[2][]byte{
				nil, packet(xidEvent, int64(-1), int32(0), int32(0), int32(3), "/a"),
			}, "is of type 0",
		},
		"a request with an xid of zk's own": {
			[2][]byte{packet(int32(-4), opGet, "/a"), reply(-4)}, "(xid -4)",
		},
		"end of the session as an event": {
			[2][]byte{
				nil, packet(xidEvent, int64(-1), int32(0), int32(-1), int32(-112), ""),
			}, "is of type -1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, stream := hear(c.packets[1], reply(9))
			if c.packets[0] != nil {
				stream.Sending(c.packets[0])
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readAll(stream)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, c.err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
			_, again := stream.Read(make([]byte, 4))
			require.Equal(t, []error{err}, h.malformed, "it is told once")
			require.Equal(t, err, again, "nothing more comes")
		})
	}
}

// The connection ends as it does elsewhere where the server hangs up within a reply.
func TestAReplyThatIsCutOff(t *testing.T) {
	whole := reply(1, "data", stat)
	for n := range whole {
		h, stream := hear(whole[:n])
		stream.Sending(asking(opGet))
		_, err := readAll(stream)
		if n > 0 {
			require.Condition(t, func() bool {
				return err == nil || errors.Is(err, io.ErrUnexpectedEOF)
			}, "%v", err)
		}
		require.Empty(t, h.malformed)
	}
}

// A reply that is longer than the limit is no reason to end a connection that others use:
// it is read in vain, and its request fails. What follows is read as ever.
func TestTheLimitOfReplies(t *testing.T) {
	const limit = 4096
	long := strings.Repeat("x", limit)
	refusal := packet(int32(1), int64(7), int32(-101), long)
	for name, c := range map[string]struct {
		op      int32
		reply   []byte
		becomes []byte
		told    string
	}{
		"data that fits": {
			opGet, reply(1, long[16+4+68:], stat), reply(1, long[16+4+68:], stat), "",
		},
		"data": {
			opGet, reply(1, long[16+4+68-1:], stat),
			packet(int32(1), int64(5), int32(-4097)), "get 4097",
		},
		"a list": {
			opChildren2, reply(1, int32(1), long, stat),
			packet(int32(1), int64(5), int32(-limit-16-4-4-68)), "children 4188",
		},
		"an error":  {opGet, refusal, refusal[:20], "get 4116"},
		"a set":     {opSet, reply(1, stat, []byte(long)), nil, ""},
		"a nothing": {0, reply(2, long, stat), nil, ""},
		"a ping":    {0, reply(-2, long), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &heard{created: map[string]int64{}}
			next := reply(3, "data", stat)
			says := slices.Concat(c.reply, next)
			stream := wire.NewStream(bytes.NewReader(says), limit, h)
			stream.Sending(asking(c.op))
			stream.Sending(packet(int32(3), opGet, "/a"))
			got, err := readAll(stream)
			if c.becomes == nil {
				require.Len(t, h.malformed, 1)
				require.ErrorIs(t, err, h.malformed[0])
				require.Empty(t, h.tooLong)
				return
			}
			require.NoError(t, err)
			binary.BigEndian.PutUint32(c.becomes, uint32(len(c.becomes)-4))
			require.Equal(t, slices.Concat(c.becomes, next), got)
			require.Equal(t, c.told, strings.Join(h.tooLong, ", "))
		})
	}
}

// An endless reader says the same byte for ever.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read += len(p)
	return len(p), nil
}

// A reply that is skipped costs no memory, and each part of it has a time of its own. One
// that no ZooKeeper has ends the connection before it is read.
func TestWhatASkippedReplyCosts(t *testing.T) {
	for length, skipped := range map[int32]bool{1 << 28: true, 1<<30 + 1: false} {
		h, rest := &heard{created: map[string]int64{}}, &endless{}
		head := binary.BigEndian.AppendUint32(nil, uint32(length))
		head = append(head, reply(1)[4:20]...)
		stream := wire.NewStream(io.MultiReader(bytes.NewReader(head), rest), 4096, h)
		stream.Sending(asking(opGet))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := make([]byte, 20)
		_, err := io.ReadFull(stream, got[:4])
		if !skipped {
			require.ErrorContains(t, err, "1073741825 bytes")
			require.Less(t, rest.read, 1<<13)
			continue
		}
		require.NoError(t, err)
		_, err = io.ReadFull(stream, got[4:])
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Equal(t, -length, int32(binary.BigEndian.Uint32(got[16:])))
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
		require.InDelta(t, 1<<12, h.skipping, 1)
	}
}

// Somebody waits for an event, whom nothing else would wake. So it is not skipped.
func TestAnEventAboveTheLimit(t *testing.T) {
	event := reply(-1, int32(2), int32(3), "/"+strings.Repeat("x", 100_000))
	h := &heard{created: map[string]int64{}}
	stream := wire.NewStream(bytes.NewReader(event), 4096, h)
	got, err := readAll(stream)
	require.NoError(t, err)
	require.Equal(t, event, got)
	require.Empty(t, h.tooLong)
}

// Replies come in any order, each once, and each is judged by its own request.
func TestRepliesOutOfOrder(t *testing.T) {
	get, names := reply(1, "data", stat), reply(2, int32(1), "a", stat)
	_, stream := hear(slices.Concat(names, get))
	stream.Sending(packet(int32(1), opGet, "/a"))
	stream.Sending(packet(int32(2), opChildren2, "/a"))
	got, err := readAll(stream)
	require.NoError(t, err)
	require.Equal(t, slices.Concat(names, get), got)
}
