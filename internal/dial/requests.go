package dial

import (
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"
)

// The operations by their opcodes, as far as it matters what zk makes of a reply.
const (
	opError           = -1 // in the results of a multi
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGet             = 4
	opSet             = 5
	opGetACL          = 6
	opSetACL          = 7
	opChildren        = 8
	opSync            = 9
	opChildren2       = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opReconfig        = 16
	opCreateContainer = 19
	opCreateTTL       = 21
	opAuth            = 100
	opSetWatches      = 101
	opSASL            = 102
	opClose           = -11
)

var opNames = map[int32]string{
	xidEvent: "no request, a watch event", xidPing: "a ping", opCreate: "create",
	opDelete: "delete", opExists: "exists", opGet: "get", opSet: "set",
	opGetACL: "get ACL", opSetACL: "set ACL", opChildren: "children", opSync: "sync",
	opChildren2: "children", opCheck: "check", opMulti: "multi", opReconfig: "reconfig",
	opCreateContainer: "create container", opCreateTTL: "create with a TTL",
	opAuth: "auth", opSetWatches: "set watches", opClose: "close",
}

func opName(op int32) string {
	if name, ok := opNames[op]; ok {
		return name
	}
	return fmt.Sprintf("a request of type %d", op)
}

// A request is what must be known of one until its reply is in.
type request struct {
	op   int32  // xidEvent and xidPing of what is no reply
	path string // of a create of an ephemeral sequential znode; "" of others
	ops  []byte // of a multi: the opcodes of its operations
}

// unanswered are the requests on one connection whose replies are not in.
type unanswered struct {
	mu       sync.Mutex
	requests map[int32]request // by xid
}

// The parts of a request: its length, xid and opcode; of a create, the length of the path
// and the path; the flags are its end.
const (
	requestXid        = 4
	requestOp         = 8
	requestHead       = 12
	requestPathLength = 12
	requestPathAt     = 16
	flagsLength       = 4
)

// sending takes note of a request that is about to be sent. zk writes each in one piece;
// the reply to what does not look like that will be none that is expected.
func (u *unanswered) sending(p []byte) {
	if len(p) < requestHead || length(p) != len(p) || number(p[requestXid:]) < 0 {
		return // a ping among others
	}
	r := request{op: number(p[requestOp:])}
	switch r.op {
	case opCreate:
		r.path = ephemeralSequential(p)
	case opMulti:
		r.ops = opsOf(p[requestHead:])
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests[number(p[requestXid:])] = r
}

// ephemeralSequential returns the path of a create, "" if its znode is another kind's.
func ephemeralSequential(p []byte) (path string) {
	if len(p) < requestPathAt+flagsLength ||
		number(p[len(p)-flagsLength:]) != zk.FlagEphemeral|zk.FlagSequence {
		return ""
	}
	n := int(number(p[requestPathLength:]))
	if n < 0 || n > len(p)-requestPathAt {
		return ""
	}
	return string(p[requestPathAt:][:n])
}

// opsOf returns the opcodes of the operations of a multi.
func opsOf(multi []byte) (ops []byte) {
	b := body{rest: multi}
	for {
		op, done := b.multiHeader()
		if done || b.wrong != nil {
			return ops
		}
		b.text("path")
		switch op {
		case opCreate:
			b.buffer("data")
			b.acls()
		case opSet:
			b.buffer("data")
		}
		b.skip(4, "version or flags")
		ops = append(ops, byte(op))
	}
}

// answered returns the request to which the reply with that xid is; false if there is
// none.
func (u *unanswered) answered(xid int32) (r request, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r, ok = u.requests[xid]
	delete(u.requests, xid)
	return r, ok
}

// of returns the xids of those with an opcode.
func (u *unanswered) of(op int32) (xids []int32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for xid, r := range u.requests {
		if r.op == op {
			xids = append(xids, xid)
		}
	}
	return xids
}
