package wiretap

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// An Op names what a packet asks for, or what the reply answers.
type Op string

// The operations of ZooKeeper's protocol that a client is likely to send; any other is
// named by its number ("op 77"). Event is that of the server's watch notifications.
const (
	Auth            Op = "auth"
	Close           Op = "close"
	Connect         Op = "connect"
	Create          Op = "create"
	CreateContainer Op = "createContainer"
	CreateTTL       Op = "createTTL"
	Delete          Op = "delete"
	Event           Op = "event"
	Exists          Op = "exists"
	GetACL          Op = "getACL"
	GetChildren     Op = "getChildren"
	GetChildren2    Op = "getChildren2"
	GetData         Op = "getData"
	Multi           Op = "multi"
	Ping            Op = "ping"
	SetACL          Op = "setACL"
	SetData         Op = "setData"
	SetWatches      Op = "setWatches"
	Sync            Op = "sync"
)

// form says what is known of a request's body.
type form struct {
	op    Op
	path  bool // it starts with a path
	watch bool // and a watch flag follows
}

var forms = map[int32]form{
	1:   {op: Create, path: true},
	2:   {op: Delete, path: true},
	3:   {op: Exists, path: true, watch: true},
	4:   {op: GetData, path: true, watch: true},
	5:   {op: SetData, path: true},
	6:   {op: GetACL, path: true},
	7:   {op: SetACL, path: true},
	8:   {op: GetChildren, path: true, watch: true},
	9:   {op: Sync, path: true},
	11:  {op: Ping},
	12:  {op: GetChildren2, path: true, watch: true},
	14:  {op: Multi},
	19:  {op: CreateContainer, path: true},
	21:  {op: CreateTTL, path: true},
	-11: {op: Close},
	100: {op: Auth},
	101: {op: SetWatches},
}

// xidEvent is the xid of all watch notifications.
const xidEvent = -1

// A Packet is one request, reply or watch event.
type Packet struct {
	Op Op // a reply has its request's
	// As the client sees it; of a reply only where one comes back (create, sync) and of
	// an event.
	Path  string
	Watch bool  // the request sets a watch
	Xid   int32 // 0 for connect, -1 for an event, -2 for a ping
	// The connection's number, from 1, in the order in which this tap dialled them.
	Conn  int
	At    time.Time // when it came to the tap, from either side; a Delay is yet to come
	Reply bool      // it comes from the server

	Zxid  int64        // of a reply
	Err   int32        // of a reply: 0, or a code such as -101 (no node)
	Event zk.EventType // of an event
	// Children is how many a list has, of the reply to getChildren and getChildren2.
	Children int
}

// String is short, for the messages of failed tests.
func (p Packet) String() string {
	s := string(p.Op)
	if p.Op == Event {
		s = p.Event.String()
	} else if p.Reply {
		s += fmt.Sprintf(" reply %d", p.Err)
	}
	if p.Path != "" {
		s += " " + p.Path
	}
	if p.Watch {
		s += " +watch"
	}
	return s
}

// parseRequest reads a frame from a client. The first of a connection is the connect
// request, which has no header.
func parseRequest(frame []byte, first bool) Packet {
	if first {
		return Packet{Op: Connect}
	}
	b := body(frame)
	p := Packet{Xid: b.int32()}
	code := b.int32()
	f, known := forms[code]
	if !known {
		f.op = Op(fmt.Sprintf("op %d", code))
	}
	p.Op = f.op
	if f.path {
		p.Path = b.string()
	}
	if f.watch {
		p.Watch = b.bool()
	}
	return p
}

// parseReply reads a frame from the server that answers request, or an event, which
// answers none.
func parseReply(frame []byte, request Packet) Packet {
	p := Packet{Op: request.Op, Reply: true}
	if request.Op == Connect {
		return p
	}
	b := body(frame)
	p.Xid, p.Zxid, p.Err = b.int32(), b.int64(), b.int32()
	switch {
	case p.Xid == xidEvent:
		p.Op = Event
		p.Event = zk.EventType(b.int32())
		b.int32() // the session's state
		p.Path = b.string()
	case p.Err == 0 && answersWithPath(request.Op):
		p.Path = b.string()
	case p.Err == 0 && (request.Op == GetChildren || request.Op == GetChildren2):
		p.Children = int(b.int32())
	}
	return p
}

func answersWithPath(op Op) bool {
	switch op {
	case Create, CreateContainer, CreateTTL, Sync:
		return true
	}
	return false
}

// fields reads the values of a frame one after the other; what is missing reads as zero,
// so that a malformed packet passes through the tap as it is and is judged by its
// receiver.
type fields struct{ rest []byte }

func body(frame []byte) *fields { return &fields{frame[4:]} }

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.rest) {
		f.rest = nil
		return make([]byte, 8)
	}
	taken := f.rest[:n]
	f.rest = f.rest[n:]
	return taken
}

func (f *fields) bool() bool   { return f.take(1)[0] != 0 }
func (f *fields) int32() int32 { return int32(binary.BigEndian.Uint32(f.take(4))) }
func (f *fields) int64() int64 { return int64(binary.BigEndian.Uint64(f.take(8))) }

func (f *fields) string() string {
	n := int(f.int32())
	if n < 0 || n > len(f.rest) {
		f.rest = nil
		return ""
	}
	return string(f.take(n))
}

// errorReply is the frame of a reply without a body.
func errorReply(xid, code int32) []byte {
	frame := binary.BigEndian.AppendUint32(nil, 16)
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	// The client keeps the last zxid that it saw.
	frame = binary.BigEndian.AppendUint64(frame, 0)
	return binary.BigEndian.AppendUint32(frame, uint32(code))
}

// expiredReply is the connect response for a session that is over: no timeout, no session
// id, an empty password.
func expiredReply() []byte {
	frame := make([]byte, 4+36)
	binary.BigEndian.PutUint32(frame, 36)
	binary.BigEndian.PutUint32(frame[4+16:], 16)
	return frame
}
