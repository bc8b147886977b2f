package zktest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bench is a tree with a log of its own, and somebody who writes to it.
type bench struct {
	*tree
	t         *testing.T
	zxid, now int64
	session   int64
	who       []identity
	events    []event // of the last write
}

func newBench(t *testing.T) *bench { return &bench{tree: newTree(), t: t, session: 7} }

// write returns what the requester is answered.
func (b *bench) write(op opcode, body any) (reply, code) {
	b.t.Helper()
	b.zxid++
	x := b.prepare(request{op: op, body: body}, b.who, b.session, b.zxid, b.now)
	result, err, events := b.apply(x)
	b.events = events
	return result, err
}

func (b *bench) create(path string, flags int32) (string, code) {
	b.t.Helper()
	result, err := b.write(opCreate, createRequest{
		path: path, acl: []acl{world}, flags: flags,
	})
	if err != codeOK {
		return "", err
	}
	return result.(pathReply).path, codeOK
}

func (b *bench) mustCreate(path string, flags int32) string {
	b.t.Helper()
	created, err := b.create(path, flags)
	require.Equal(b.t, codeOK, err, "create %s", path)
	return created
}

func (b *bench) mustStat(path string) stat {
	b.t.Helper()
	s, err := b.exists(path)
	require.Equal(b.t, codeOK, err, "exists %s", path)
	return s
}

// heard gives the events of the last write without their permissions.
func (b *bench) heard() []string {
	var all []string
	for _, e := range b.events {
		all = append(all, fmt.Sprintf("%d %s", e.kind, e.path))
	}
	return all
}

func TestFreshTree(t *testing.T) {
	b := newBench(t)
	names, s, err := b.getChildren("/zookeeper", nil)
	require.Equal(t, codeOK, err)
	require.Equal(t, []string{"config", "quota"}, names)
	require.Equal(t, stat{cversion: -2, numChildren: 2}, s)
	require.Equal(t, stat{cversion: -1, numChildren: 1}, b.mustStat("/"))
	require.Equal(t, stat{aversion: -1}, b.mustStat("/zookeeper/config"))
	_, err = b.write(opSetData, setDataRequest{"/zookeeper/config", nil, -1})
	require.Equal(t, codeNoAuth, err)
}

func TestCreateRefusals(t *testing.T) {
	open, nobody := []acl{world}, []acl{{permAll, identity{"digest", "a:b"}}}
	for _, c := range []struct {
		what string
		r    createRequest
		want code
	}{
		{
			"flags before path",
			createRequest{path: "a", acl: open, flags: 7},
			codeBadArguments,
		},
		{"no slash before acl", createRequest{path: "a"}, codeBadArguments},
		{"acl before parent", createRequest{path: "/no/a"}, codeInvalidACL},
		{"parent before path", createRequest{path: "/no//a", acl: open}, codeNoNode},
		{"no slash at the start", createRequest{path: "no/a", acl: open}, codeNoNode},
		{"slash at the end", createRequest{path: "/a/", acl: open}, codeBadArguments},
		{"dots", createRequest{path: "/..", acl: open}, codeBadArguments},
		{"control character", createRequest{path: "/\x01", acl: open}, codeBadArguments},
		{
			"beyond the BMP",
			createRequest{path: "/\U0001F600", acl: open},
			codeBadArguments,
		},
		{
			"permission before path",
			createRequest{path: "/closed/", acl: open},
			codeNoAuth,
		},
		{"root", createRequest{path: "/", acl: open}, codeNodeExists},
		{"exists", createRequest{path: "/a", acl: open}, codeNodeExists},
		{
			"ephemeral parent",
			createRequest{path: "/e/a", acl: open},
			codeNoChildrenForEphemerals,
		},
		{
			"time without a mode",
			createRequest{path: "/x", acl: open, ttl: 1, hasTTL: true},
			codeBadArguments,
		},
		{
			"mode without a time",
			createRequest{path: "/x", acl: open, flags: 5},
			codeBadArguments,
		},
		{
			"no time at all",
			createRequest{path: "/x", acl: open, flags: 5, hasTTL: true},
			codeBadArguments,
		},
		{
			"too long",
			createRequest{path: "/x", acl: open, flags: 5, ttl: 1 << 40, hasTTL: true},
			codeBadArguments,
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBench(t)
			b.mustCreate("/a", 0)
			b.mustCreate("/e", 1)
			_, err := b.write(opCreate, createRequest{path: "/closed", acl: nobody})
			require.Equal(t, codeOK, err)
			op := opCreate
			if c.r.hasTTL {
				op = opCreateTTL
			}
			result, err := b.write(op, c.r)
			require.Equal(t, c.want, err)
			require.Nil(t, result)
			require.Empty(t, b.events)
		})
	}
}

func TestTTLNeedsExtendedTypes(t *testing.T) {
	b := newBench(t)
	r := createRequest{path: "/t", acl: []acl{world}, flags: 5, ttl: 10, hasTTL: true}
	b.extendedTypes = false
	_, err := b.write(opCreateTTL, r)
	require.Equal(t, codeUnimplemented, err)
	b.extendedTypes = true
	_, err = b.write(opCreateTTL, r)
	require.Equal(t, codeOK, err)
	require.Zero(t, b.mustStat("/t").ephemeralOwner)
}

func TestStats(t *testing.T) {
	b := newBench(t)
	b.now = 50
	b.mustCreate("/a", 0) // zxid 1
	b.now = 60
	result, err := b.write(opCreate2, createRequest{
		path: "/a/e", data: []byte("xy"), acl: []acl{world}, flags: 1,
	})
	require.Equal(t, codeOK, err)
	require.Equal(t, pathStatReply{"/a/e", stat{
		czxid: 2, mzxid: 2, pzxid: 2, ctime: 60, mtime: 60, ephemeralOwner: 7,
		dataLength: 2,
	}}, result)
	b.mustCreate("/a/f", 0)
	_, err = b.write(opDelete, deleteRequest{"/a/f", 0})
	require.Equal(t, codeOK, err)
	require.Equal(t, stat{
		czxid: 1, mzxid: 1, pzxid: 4, ctime: 50, mtime: 50, cversion: 3, numChildren: 1,
	}, b.mustStat("/a"))
	b.now = 70
	result, err = b.write(opSetData, setDataRequest{"/a", []byte("z"), 0})
	require.Equal(t, codeOK, err)
	want := stat{
		czxid: 1, mzxid: 5, pzxid: 4, ctime: 50, mtime: 70, version: 1, cversion: 3,
		numChildren: 1, dataLength: 1,
	}
	require.Equal(t, statReply{want}, result)
	result, err = b.write(opSetACL, setACLRequest{"/a", []acl{world}, 0})
	require.Equal(t, codeOK, err)
	want.aversion = 1
	require.Equal(t, statReply{want}, result)
}

func TestVersionsWrap(t *testing.T) {
	b := newBench(t)
	b.mustCreate("/a", 0)
	b.nodes["/a"].stat.version = math.MaxInt32
	_, err := b.write(opSetData, setDataRequest{"/a", nil, math.MaxInt32})
	require.Equal(t, codeOK, err)
	require.Equal(t, int32(math.MinInt32), b.mustStat("/a").version)
	_, err = b.write(opSetData, setDataRequest{"/a", nil, math.MaxInt32})
	require.Equal(t, codeBadVersion, err)
}

func TestDelete(t *testing.T) {
	b := newBench(t)
	b.mustCreate("/a", 0)
	b.mustCreate("/a/b", 0)
	for _, c := range []struct {
		path    string
		version int32
		want    code
	}{
		{"a", -1, codeBadArguments},
		{"/", -1, codeBadArguments},
		{"/zookeeper/quota", -1, codeBadArguments},
		{"/no/a", -1, codeNoNode},
		{"/a/", -1, codeNoNode},
		{"/a", 1, codeBadVersion}, // and only then
		{"/a", 0, codeNotEmpty},
		{"/a/b", 0, codeOK},
		{"/a", -1, codeOK},
		{"/a", -1, codeNoNode},
	} {
		_, err := b.write(opDelete, deleteRequest{c.path, c.version})
		require.Equal(t, c.want, err, c.path)
	}
	require.Equal(t, int64(2+9), b.mustStat("/").pzxid) // refusals took zxids as well
}

func TestSequence(t *testing.T) {
	b := newBench(t)
	b.mustCreate("/q", 0)
	require.Equal(t, "/q/n-0000000000", b.mustCreate("/q/n-", 3))
	b.mustCreate("/q/x", 0)
	require.Equal(t, "/q/0000000002", b.mustCreate("/q/", 2))
	_, err := b.write(opDelete, deleteRequest{"/q/x", -1})
	require.Equal(t, codeOK, err)
	require.Equal(t, "/q/n-0000000003", b.mustCreate("/q/n-", 3))

	require.Equal(t, codeOK, b.setSequence("/q", -1))
	require.Equal(t, "/q/n--000000001", b.mustCreate("/q/n-", 2))
	require.Equal(t, "/q/n-0000000000x0000000000", b.mustCreate("/q/n-0000000000x", 2))
	require.Equal(t, codeNoNode, b.setSequence("/no", 1))
}

// From 2^31-1 on the number does not move: ZOOKEEPER-3249. In a multi it does, within the
// multi.
func TestSequenceAtItsLimit(t *testing.T) {
	b := newBench(t)
	b.mustCreate("/q", 0)
	b.setSequence("/q", math.MaxInt32-1)
	require.Equal(t, "/q/n-2147483646", b.mustCreate("/q/n-", 2))
	stuck := b.zxid
	require.Equal(t, "/q/n-2147483647", b.mustCreate("/q/n-", 2))
	_, err := b.create("/q/n-", 2)
	require.Equal(t, codeNodeExists, err)
	require.Equal(t, "/q/m-2147483647", b.mustCreate("/q/m-", 2))
	require.Equal(t, stuck, b.mustStat("/q").pzxid)

	one := request{
		op: opCreate, body: createRequest{path: "/q/k-", acl: []acl{world}, flags: 2},
	}
	result, err := b.write(opMulti, multiRequest{[]request{one, one}})
	require.Equal(t, codeOK, err)
	require.Equal(t, multiReply{[]multiResult{
		{op: opCreate, body: pathReply{"/q/k-2147483647"}},
		{op: opCreate, body: pathReply{"/q/k--2147483648"}},
	}}, result)
	require.Equal(t, "/q/j-2147483647", b.mustCreate("/q/j-", 2))
}

func TestMultiSeesItself(t *testing.T) {
	b := newBench(t)
	result, err := b.write(opMulti, multiRequest{[]request{
		{op: opCreate, body: createRequest{path: "/a", acl: []acl{world}}},
		{
			op:   opCreateContainer,
			body: createRequest{path: "/a/b", acl: []acl{world}, flags: 4},
		},
		{op: opSetData, body: setDataRequest{"/a", []byte("x"), 0}},
		{op: opCheck, body: checkRequest{"/a", 1}},
		{op: opDelete, body: deleteRequest{"/a/b", 0}},
		{op: opDelete, body: deleteRequest{"/a", 1}},
		{op: opCreate, body: createRequest{path: "/a", acl: []acl{world}, flags: 2}},
		{op: opCreate, body: createRequest{path: "/a", acl: []acl{world}}},
	}})
	require.Equal(t, codeOK, err)
	var ops []opcode
	for _, x := range result.(multiReply).results {
		require.Equal(t, codeOK, x.code)
		ops = append(ops, x.op)
	}
	require.Equal(t, []opcode{
		opCreate, opCreate2, opSetData, opCheck, opDelete, opDelete, opCreate, opCreate,
	}, ops)
	require.Equal(t, int64(1), b.mustStat("/a0000000001").czxid)
	require.Equal(t, int64(1), b.mustStat("/a").czxid)
	_, err = b.create("/a", 0)
	require.Equal(t, codeNodeExists, err)
}

func TestMultiIsAllOrNothing(t *testing.T) {
	b := newBench(t)
	ops := []request{
		{op: opCreate, body: createRequest{path: "/a", acl: []acl{world}}},
		{op: opDelete, body: deleteRequest{"/no", -1}},
		{op: opCreate, body: createRequest{path: "/b", acl: []acl{world}}},
	}
	result, err := b.write(opMulti, multiRequest{ops})
	require.Equal(t, codeOK, err)
	require.Equal(t, multiReply{[]multiResult{
		{op: opError, code: codeOK},
		{op: opError, code: codeNoNode},
		{op: opError, code: codeRuntimeInconsistency},
	}}, result)
	require.Empty(t, b.events)
	_, err = b.exists("/a")
	require.Equal(t, codeNoNode, err)

	ops[1] = request{
		op: opCreateTTL, body: createRequest{path: "/t", acl: []acl{world}, flags: 5},
	}
	result, err = b.write(opMulti, multiRequest{ops})
	require.Equal(t, codeMarshalling, err)
	require.Nil(t, result)
}

func TestEvents(t *testing.T) {
	b := newBench(t)
	b.mustCreate("/a", 0)
	require.Equal(t, []string{"1 /a", "4 /"}, b.heard())
	b.mustCreate("/a/e", 1)
	require.Equal(t, []string{"1 /a/e", "4 /a"}, b.heard())
	_, _ = b.write(opSetData, setDataRequest{"/a", nil, -1})
	require.Equal(t, []string{"3 /a"}, b.heard())
	_, _ = b.write(opSetACL, setACLRequest{"/a", []acl{world}, -1})
	require.Empty(t, b.heard())
	b.mustCreate("/d", 1)
	require.Equal(t, []string{"/a/e", "/d"}, b.ephemerals(7))
	_, err := b.write(opClose, nil)
	require.Equal(t, codeOK, err)
	require.Equal(t, []string{"2 /a/e", "4 /a", "2 /d", "4 /"}, b.heard())
	require.Empty(t, b.ephemerals(7))
}

func TestContainersAndTTLs(t *testing.T) {
	b := newBench(t)
	_, err := b.write(opCreateContainer, createRequest{
		path: "/c", acl: []acl{world}, flags: 4,
	})
	require.Equal(t, codeOK, err)
	_, err = b.write(opCreateTTL, createRequest{
		path: "/t", acl: []acl{world}, flags: 5, ttl: 10, hasTTL: true,
	})
	require.Equal(t, codeOK, err)
	require.Empty(t, b.containers(10))
	require.Equal(t, []string{"/t"}, b.containers(11))
	b.now = 5
	_, _ = b.write(opSetData, setDataRequest{"/t", nil, -1})
	require.Empty(t, b.containers(15))
	b.mustCreate("/c/x", 0)
	require.Empty(t, b.containers(15))
	_, err = b.write(opDeleteContainer, deleteRequest{path: "/c", version: -1})
	require.Equal(t, codeNotEmpty, err)
	_, _ = b.write(opDelete, deleteRequest{"/c/x", -1})
	require.Equal(t, []string{"/c", "/t"}, b.containers(16))
	b.mustCreate("/t/x", 0)
	require.Equal(t, []string{"/c"}, b.containers(16))
	_, err = b.write(opDeleteContainer, deleteRequest{path: "/c", version: -1})
	require.Equal(t, codeOK, err)
	require.Empty(t, b.containers(16))
}

func TestPermissions(t *testing.T) {
	b := newBench(t)
	proved := authenticate(authRequest{"digest", []byte("super:superpw")}, "", "")
	require.Equal(t,
		[]identity{{"digest", "super:g9oN2HttPfn8MMWJZ2r45Np/LIA="}}, proved)
	me := proved[0]
	proved = authenticate(authRequest{scheme: "ip"}, "10.0.0.1", "")
	require.Equal(t, []identity{{"ip", "10.0.0.1"}}, proved)
	address := proved[0]
	require.Empty(t, authenticate(authRequest{"world", []byte("anyone")}, "", ""))

	auth := []acl{
		{permAll, identity{"auth", ""}}, {permRead, identity{"world", "anyone"}},
	}
	b.who = []identity{address}
	_, err := b.write(opCreate, createRequest{path: "/mine", acl: auth})
	require.Equal(t, codeInvalidACL, err)
	b.who = []identity{address, me}
	_, err = b.write(opCreate, createRequest{path: "/mine", acl: append(auth, auth...)})
	require.Equal(t, codeOK, err)
	acls, _, err := b.getACL("/mine", b.who)
	require.Equal(t, codeOK, err)
	require.Equal(t, []acl{{permAll, me}, auth[1]}, acls)
	acls, _, _ = b.getACL("/mine", nil)
	require.Equal(t, "super:x", acls[0].id)

	b.who = nil
	for op, body := range map[opcode]any{
		opCreate:  createRequest{path: "/mine/a", acl: []acl{world}},
		opDelete:  deleteRequest{"/mine/a", -1},
		opSetData: setDataRequest{"/mine", nil, -1},
		opSetACL:  setACLRequest{"/mine", []acl{world}, -1},
	} {
		_, err = b.write(op, body)
		require.Equal(t, codeNoAuth, err, "op %d", op)
	}
	_, _, err = b.getData("/mine", nil)
	require.Equal(t, codeOK, err)
}

func TestWhatAnACLMaySay(t *testing.T) {
	for id, want := range map[identity]code{
		{"world", "anyone"}:   codeOK,
		{"world", "me"}:       codeInvalidACL,
		{"sasl", "me"}:        codeInvalidACL,
		{"digest", "a:b"}:     codeOK,
		{"digest", "a:b:"}:    codeOK,
		{"digest", "a:"}:      codeInvalidACL,
		{"digest", "a:b:c"}:   codeInvalidACL,
		{"ip", "1.2.3.4"}:     codeOK,
		{"ip", "1.2.3.4/0"}:   codeOK,
		{"ip", "1.2.3.4/33"}:  codeInvalidACL,
		{"ip", "1.2.3.256/8"}: codeInvalidACL,
		{"ip", "::1"}:         codeInvalidACL,
	} {
		_, err := newTree().fixupACL([]acl{{permAll, id}}, nil)
		require.Equal(t, want, err, id)
	}
	net := []acl{{permRead, identity{"ip", "10.1.0.0/15"}}}
	require.Equal(t, codeOK, checkACL(net, permRead, []identity{{"ip", "10.0.255.1"}}))
	require.Equal(t, codeNoAuth, checkACL(net, permRead, []identity{{"ip", "10.2.0.1"}}))
	require.Equal(
		t, codeNoAuth, checkACL(net, permWrite, []identity{{"ip", "10.0.255.1"}}),
	)
}

// A server that took a snapshot knows the same schemes as before.
func TestASnapshotKnowsSASL(t *testing.T) {
	tr := newTree()
	tr.sasl = true
	_, err := tr.clone().fixupACL([]acl{{permAll, identity{"sasl", "me"}}}, nil)
	require.Equal(t, codeOK, err)
}

func TestASnapshotHasTheQuotas(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{
		"/q", quotaRoot + "/q", quotaRoot + "/q/" + quotaLimit,
		quotaRoot + "/q/" + quotaStats,
	} {
		b.mustCreate(path, 0)
	}
	stats := func(t *tree) string {
		return string(t.nodes[quotaRoot+"/q/"+quotaStats].data)
	}
	before := stats(b.tree)
	twin := b.clone()
	twin.create(txn{op: opCreate, path: "/q/a", parentVersion: 1, data: []byte("xyz")})
	require.Equal(t, decodeUsage([]byte(before)).count+1,
		decodeUsage([]byte(stats(twin))).count)
	require.Equal(t, before, stats(b.tree))
}
