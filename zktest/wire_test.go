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
