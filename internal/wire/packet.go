package wire

import (
	"encoding/binary"
	"fmt"
)

// The head of a reply: its length, xid, zxid and error.
const (
	lengthSize = 4
	replyXid   = 4
	replyZxid  = 8
	replyError = 16
	replyHead  = 20
)

// The xids of what nobody has asked for.
const (
	xidEvent = -1
	xidPing  = -2
)

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

// The codes by which a server rejects a client; the second for those who had to
// authenticate and did not, by sessionRequireClientSASLAuth or enforce.auth.
const (
	codeAuthFailed      = -115
	codeUnauthenticated = -124
)

// unimplemented is ZooKeeper's reply to a request that it does not know: its zxid is -1,
// its error -6.
func unimplemented(xid int32) []byte {
	p := binary.BigEndian.AppendUint32(nil, replyHead-lengthSize)
	p = binary.BigEndian.AppendUint32(p, uint32(xid))
	p = binary.BigEndian.AppendUint64(p, ^uint64(0))
	return binary.BigEndian.AppendUint32(p, ^uint32(6-1))
}

// packet returns a request.
func packet(xid, op int32, body []byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(requestHead-lengthSize+len(body)))
	p = binary.BigEndian.AppendUint32(p, uint32(xid))
	p = binary.BigEndian.AppendUint32(p, uint32(op))
	return append(p, body...)
}

// buffer returns bytes with their length in front.
func buffer(p []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)
}

func number(p []byte) int32 {
	return int32(binary.BigEndian.Uint32(p))
}

// length is a packet's, with the four bytes in front that have it.
func length(p []byte) int { return lengthSize + int(number(p)) }
