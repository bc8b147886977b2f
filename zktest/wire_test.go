package zktest

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// encodeRequest is a client's part, which the package itself has no use for. It gives the
// packet without its length.
func encodeRequest(r request) []byte {
	e := newEncoder()
	e.int(r.xid)
	e.int(int32(r.op))
	e.request(r)
	return e.done()[4:]
}

func (e *encoder) request(r request) {
	switch body := r.body.(type) {
	case createRequest:
		e.text(body.path)
		e.buffer(body.data)
		e.acls(body.acl)
		e.int(body.flags)
		if body.hasTTL {
			e.long(body.ttl)
		}
	case deleteRequest:
		e.text(body.path)
		e.int(body.version)
	case checkRequest:
		e.text(body.path)
		e.int(body.version)
	case pathRequest:
		e.text(body.path)
		e.bool(body.watch)
	case setDataRequest:
		e.text(body.path)
		e.buffer(body.data)
		e.int(body.version)
	case getACLRequest:
		e.text(body.path)
	case syncRequest:
		e.text(body.path)
	case setACLRequest:
		e.text(body.path)
		e.acls(body.acl)
		e.int(body.version)
	case authRequest:
		e.int(0)
		e.text(body.scheme)
		e.buffer(body.auth)
	case setWatchesRequest:
		e.long(body.relativeZxid)
		e.texts(body.data)
		e.texts(body.exist)
		e.texts(body.child)
		if r.op == opSetWatches2 {
			e.texts(body.persistent)
			e.texts(body.recursive)
		}
	case addWatchRequest:
		e.text(body.path)
		e.int(body.mode)
	case watcherRequest:
		e.text(body.path)
		e.int(body.of)
	case multiRequest:
		for _, sub := range body.ops {
			e.multiHeader(sub.op, false, -1)
			e.request(sub)
		}
		e.multiHeader(opError, true, -1)
	}
}

var (
	world   = acl{permAll, identity{"world", "anyone"}}
	everyOp = []request{
		{
			1, opCreate,
			createRequest{path: "/a", data: []byte("x"), acl: []acl{world}, flags: 3},
		},
		{2, opCreate2, createRequest{path: "/a/b", data: []byte{}, acl: []acl{world}}},
		{3, opCreateContainer, createRequest{path: "/c", acl: []acl{world}, flags: 4}},
		{4, opCreateTTL, createRequest{
			path: "/t", acl: []acl{world, {permRead, identity{"digest", "a:b"}}},
			flags: 5, ttl: 9, hasTTL: true,
		}},
		{5, opDelete, deleteRequest{"/a", -1}},
		{6, opExists, pathRequest{"/a", true}},
		{7, opGetData, pathRequest{"/a", false}},
		{8, opGetChildren, pathRequest{"/", true}},
		{9, opGetChildren2, pathRequest{"/é", true}},
		{10, opSetData, setDataRequest{"/a", nil, 7}},
		{11, opGetACL, getACLRequest{"/a"}},
		{12, opSetACL, setACLRequest{"/a", []acl{world}, -1}},
		{13, opSync, syncRequest{"/"}},
		{14, opCheck, checkRequest{"/a", 2}},
		{15, opMulti, multiRequest{[]request{
			{op: opCheck, body: checkRequest{"/a", 1}},
			{op: opDelete, body: deleteRequest{"/a", 1}},
		}}},
		{
			16, opMultiRead,
			multiRequest{[]request{{op: opGetData, body: pathRequest{path: "/a"}}}},
		},
		{17, opSetAuth, authRequest{"digest", []byte("u:p")}},
		{
			18, opSetWatches,
			setWatchesRequest{
				relativeZxid: 5, data: []string{"/a"}, exist: []string{"/b", "/c"},
			},
		},
		{
			19, opSetWatches2,
			setWatchesRequest{
				child: []string{"/a"}, persistent: []string{"/b"},
				recursive: []string{"/", "/c"},
			},
		},
		{20, opAddWatch, addWatchRequest{"/a", 1}},
		{21, opCheckWatches, watcherRequest{"/a", 3}},
		{22, opRemoveWatches, watcherRequest{"/a", 2}},
		{23, opClose, nil},
		{-2, opPing, nil},
		{24, 999, nil},
	}
)

func TestRequestsRoundTrip(t *testing.T) {
	for _, r := range everyOp {
		got, err := decodeRequest(encodeRequest(r))
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
}

func TestEveryTruncationIsNoticed(t *testing.T) {
	for _, r := range everyOp {
		packet := encodeRequest(r)
		for n := range packet {
			got, err := decodeRequest(packet[:n])
			if n < 8 || r.op == opSetAuth {
				require.Error(t, err, "op %d cut to %d bytes", r.op, n)
				continue
			}
			require.NoError(t, err)
			require.Equal(
				t, request{r.xid, r.op, malformed{}}, got, "op %d cut to %d bytes", r.op,
				n,
			)
		}
	}
}

func TestCreateInMultiGoesByItsFlags(t *testing.T) {
	plain := createRequest{path: "/a", acl: []acl{world}}
	container, ttl := plain, plain
	container.flags, ttl.flags, ttl.ttl, ttl.hasTTL = 4, 5, 1, true
	sent := multiRequest{[]request{
		{op: opCreate2, body: plain},
		{op: opCreateContainer, body: plain},
		{op: opCreate, body: container},
		{op: opCreateTTL, body: ttl},
	}}
	got, err := decodeRequest(encodeRequest(request{op: opMulti, body: sent}))
	require.NoError(t, err)
	var ops []opcode
	for _, sub := range got.body.(multiRequest).ops {
		ops = append(ops, sub.op)
	}
	require.Equal(t, []opcode{opCreate, opCreate, opCreateContainer, opCreateTTL}, ops)
}

func TestMultiDoesNotMixReadsAndWrites(t *testing.T) {
	read, write := request{
		op: opGetData, body: pathRequest{path: "/a"},
	}, request{op: opDelete, body: deleteRequest{"/a", -1}}
	acls := request{op: opSetACL, body: setACLRequest{path: "/a"}}
	for _, r := range []request{
		{op: opMulti, body: multiRequest{[]request{write, read}}},
		{op: opMulti, body: multiRequest{[]request{acls}}},
		{op: opMultiRead, body: multiRequest{[]request{read, write}}},
	} {
		got, err := decodeRequest(encodeRequest(r))
		require.NoError(t, err)
		require.Equal(t, malformed{}, got.body)
	}
}

func TestConnect(t *testing.T) {
	e := newEncoder()
	e.int(0)
	e.long(7)
	e.int(4000)
	e.long(-9)
	e.buffer([]byte("secret"))
	old := e.done()[4:]
	want := connectRequest{
		lastZxid: 7, timeout: 4000, session: -9, password: []byte("secret"),
	}
	got, err := decodeConnect(old)
	require.NoError(t, err)
	require.Equal(t, want, got)
	want.readOnly, want.hasReadOnly = true, true
	got, err = decodeConnect(append(slices.Clone(old), 1))
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = decodeConnect(old[:len(old)-1])
	require.Error(t, err)

	frame := encodeConnectResponse(4000, -9, []byte("secret"), true, false)
	short := encodeConnectResponse(4000, -9, []byte("secret"), false, false)
	require.Len(t, short, len(frame)-1)
	d := decoder{rest: frame[4:]}
	require.Equal(
		t, []any{int32(0), int32(4000), int64(-9), []byte("secret"), false},
		[]any{d.int(), d.int(), d.long(), d.buffer(), d.bool()},
	)
	require.NoError(t, d.err)
}

// The bytes are written out: a mistake that encoder and decoder share would not show in a
// round trip.
func TestFrames(t *testing.T) {
	require.Equal(t, "\x00\x00\x00\x10"+"\x00\x00\x00\x05"+
		"\x00\x00\x00\x00\x00\x00\x00\x09"+"\xff\xff\xff\x9b",
		string(encodeReply(5, 9, codeNoNode, nil)))
	require.Equal(t, "\x00\x00\x00\x1e"+"\xff\xff\xff\xff"+
		"\xff\xff\xff\xff\xff\xff\xff\xff"+"\x00\x00\x00\x00"+
		"\x00\x00\x00\x02"+"\x00\x00\x00\x03"+"\x00\x00\x00\x02/a",
		string(encodeEvent(event{kind: eventNodeDeleted, path: "/a"})))
	s := stat{
		czxid: 1, mzxid: 2, ctime: 3, mtime: 4, version: 5, cversion: 6, aversion: 7,
		ephemeralOwner: 8, dataLength: 9, numChildren: 10, pzxid: 11,
	}
	body := encodeReply(0, 0, codeOK, statReply{s})[20:]
	var longs []uint64
	for _, at := range []int{0, 8, 16, 24, 44, 60} {
		longs = append(longs, binary.BigEndian.Uint64(body[at:]))
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 8, 11}, longs)
	var ints []uint32
	for _, at := range []int{32, 36, 40, 52, 56} {
		ints = append(ints, binary.BigEndian.Uint32(body[at:]))
	}
	require.Equal(t, []uint32{5, 6, 7, 9, 10}, ints)
	require.Len(t, body, 68)
	require.Equal(
		t, "\xff\xff\xff\xff"+string(body),
		string(encodeReply(0, 0, codeOK, dataReply{nil, s})[20:]),
	)
	require.Equal(
		t, "\x00\x00\x00\x00"+string(body),
		string(encodeReply(0, 0, codeOK, dataReply{[]byte{}, s})[20:]),
	)
	refused := multiReply{[]multiResult{{op: opError}, {op: opError, code: codeNoNode}}}
	require.Equal(t, "\xff\xff\xff\xff\x00\x00\x00\x00\x00"+"\x00\x00\x00\x00"+
		"\xff\xff\xff\xff\x00\xff\xff\xff\x9b"+"\xff\xff\xff\x9b"+
		"\xff\xff\xff\xff\x01\xff\xff\xff\xff",
		string(encodeReply(0, 0, codeOK, refused)[20:]))
}

// play answers a packet from the tree, as a server does that knows of no sessions.
func play(tr *tree, packet []byte, zxid int64) []byte {
	r, err := decodeRequest(packet)
	if err != nil {
		return nil
	}
	var body reply
	var answered code
	switch {
	case r.op == opSetAuth:
		return nil
	case r.op.isWrite():
		body, answered, _ = tr.apply(tr.prepare(r, nil, 1, zxid, zxid))
	default:
		body, answered = tr.read(r, nil, func(watchKind, string) {})
	}
	return encodeReply(r.xid, zxid, answered, body)
}

func FuzzDecodeRequest(f *testing.F) {
	for _, r := range everyOp {
		packet := encodeRequest(r)
		f.Add(packet)
		for i := 8; i < len(packet); i++ {
			bent := slices.Clone(packet)
			bent[i] ^= 0xff
			f.Add(bent)
		}
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		tr := newTree()
		for zxid := range int64(2) {
			if answer := play(tr, packet, zxid+1); answer != nil {
				require.Equal(t, len(answer)-4, int(binary.BigEndian.Uint32(answer)))
			}
		}
	})
}

func FuzzDecodeConnect(f *testing.F) {
	f.Add(make([]byte, 44))
	f.Fuzz(func(t *testing.T, packet []byte) {
		r, err := decodeConnect(packet)
		if err != nil {
			require.Zero(t, r)
		}
	})
}
