package zktest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bench is a tree with a log of its own, and somebody who writes to it.
type bench struct {
	*tree
	t         *testing.T
	zxid, now int64
}

func newBench(t *testing.T) *bench { return &bench{tree: newTree(), t: t} }

// write returns what the requester is answered.
func (b *bench) write(op opcode, body any) (reply, code) {
	b.t.Helper()
	b.zxid++
	x := b.prepare(request{op: op, body: body}, nil, 7, b.zxid, b.now)
	result, err, _ := b.apply(x)
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

func TestVersionsWrap(t *testing.T) {
	b := newBench(t)
	b.mustCreate("/a", 0)
	b.nodes["/a"].stat.version = math.MaxInt32
	_, err := b.write(opSetData, setDataRequest{"/a", nil, math.MaxInt32})
	require.Equal(t, codeOK, err)
	require.Equal(t, int32(math.MinInt32), b.nodes["/a"].stat.version)
	_, err = b.write(opSetData, setDataRequest{"/a", nil, math.MaxInt32})
	require.Equal(t, codeBadVersion, err)
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
	require.Equal(t, stuck, b.nodes["/q"].stat.pzxid)

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
