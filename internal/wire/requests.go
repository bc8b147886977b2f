package wire

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

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

// check returns what is wrong with the body of a reply that says that all went well. What
// follows the last field is not looked at, by zk neither: servers that know more
// send a stat behind the path of a create.
func (r request) check(p []byte) error {
	b := body{rest: p}
	switch r.op {
	case xidEvent:
		b.event()
	case opCreate, opCreateContainer, opCreateTTL, opSync:
		b.text("path")
	case opExists, opSet, opSetACL:
		b.stat()
	case opGet, opReconfig:
		b.buffer("data")
		b.stat()
	case opGetACL:
		b.acls()
		b.stat()
	case opChildren:
		b.names()
	case opChildren2:
		b.names()
		b.stat()
	case opMulti:
		b.results(r.ops)
	}
	return b.wrong
}

// eventAtMost is longer than a watch event of a ZooKeeper: its path was in a request, and
// that is shorter than this. zk has a buffer of this size in any case.
const eventAtMost = 1 << 20

// most is how long the reply may be for zk to get it. A watch event is not skipped:
// nothing else would wake the caller that waits for it.
func (r request) most(maxReply int) int {
	if r.op == xidEvent {
		return max(maxReply, eventAtMost)
	}
	return maxReply
}

// mayBeLong reports whether a ZooKeeper may send a long reply.
func (r request) mayBeLong() bool {
	switch r.op {
	case opGet, opReconfig, opGetACL, opChildren, opChildren2, opMulti, opSync,
		opCreate, opCreate2, opCreateContainer, opCreateTTL:
		return true
	}
	return false
}

// sending records a request that is about to be sent. zk writes each in one piece. If
// something else is written, its reply will be malformed.
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
	if n < 0 || n > len(p)-requestPathAt-flagsLength {
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
