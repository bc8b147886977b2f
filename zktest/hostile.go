package zktest

import (
	"encoding/binary"
	"math"
	"slices"
)

// OpConnect is the handshake, for [Link.Hostile].
const OpConnect = Op(opCreateSession)

// A HostileReply is one that no ZooKeeper sends, but a hostile server or a man in the
// middle. A client must not crash on it, or allocate the memory that it announces.
type HostileReply struct {
	// Name says what is wrong with it, such as "children-count".
	Name string
	// Op is the request in the place of whose answer it is sent.
	Op Op
	// Frame returns the bytes that are sent, from the length in front on, where the
	// request has this xid. They may be anything, also several replies, or a watch event.
	Frame func(xid int32) []byte
}

// Hostile makes the servers send r instead of the answer to the next request of its Op,
// which takes effect. The connection stays open after it: the client has to end it.
func (l *Link) Hostile(r HostileReply) { l.change(func() { l.hostile[r.Op] = r }) }

// hostileLocked returns what is sent in the place of the answer to a request; nil: the
// answer. It is never nil where Hostile was called for it.
func (l *Link) hostileLocked(op opcode, xid int32) []byte {
	for _, o := range []Op{op.kind(), Any} {
		if r, ok := l.hostile[o]; ok && (o != Any || op != opCreateSession) {
			delete(l.hostile, o)
			return append([]byte{}, r.Frame(xid)...)
		}
	}
	return nil
}

// HostileReplies returns replies of all kinds that clients were seen to fail on, or
// similar to those: lengths and counts that are greater than the frame, negative or huge,
// frames that end early, results of a multi that are not those of its operations, replies
// to nothing, and events that only a client itself may create. Each is independent of the
// others; a test sends one after the other by Link.Hostile.
func HostileReplies() []HostileReply {
	var all []HostileReply
	add := func(op Op, name string, frame func(xid int32) []byte) {
		all = append(all, HostileReply{Name: name, Op: op, Frame: frame})
	}
	for _, g := range hostileGreetings() {
		add(OpConnect, "handshake-"+g.name, func(int32) []byte { return g.frame })
	}
	for _, b := range hostileBodies() {
		add(b.op, b.name, func(xid int32) []byte {
			return hostileReply(xid, b.fields...)
		})
	}
	add(OpExists, "frame-empty", hostileFrame(0))
	add(OpExists, "frame-ends-in-its-head", hostileFrame(15))
	add(OpExists, "frame-negative-length", hostileFrame(math.MaxUint32))
	add(OpExists, "frame-2-gb", hostileFrame(math.MaxInt32))
	add(OpExists, "to-nothing", func(xid int32) []byte {
		return hostileReply(xid+1000, stat{})
	})
	add(OpExists, "to-nothing-negative", func(int32) []byte {
		return hostileReply(-4, stat{})
	})
	add(OpDelete, "twice", func(xid int32) []byte {
		return append(hostileReply(xid), hostileReply(xid)...)
	})
	event := func(fields ...any) func(int32) []byte {
		return func(int32) []byte { return hostileReply(notificationXid, fields...) }
	}
	add(OpExists, "event-empty", event())
	add(OpExists, "event-path", event(int32(4), stateSyncConnected, hugeLength))
	add(OpExists, "event-the-session-has-expired",
		event(int32(-1), int32(codeSessionExpired), "/"))
	return all
}

const (
	hugeLength = int32(math.MaxInt32)
	nullLength = int32(-1)
)

// A hostileBody is one behind a head that is as it should be.
type hostileBody struct {
	op     Op
	name   string
	fields []any
}

func hostileBodies() []hostileBody {
	result := func(op opcode) []any { return []any{int32(op), false, int32(0)} }
	return []hostileBody{
		{OpChildren, "children-count", []any{nullLength}},
		{OpChildren, "children-huge-count", []any{hugeLength, stat{}}},
		{OpChildren, "children-name", []any{int32(1), hugeLength, stat{}}},
		{OpChildren, "children-null-name", []any{int32(1), nullLength, stat{}}},
		{OpChildren, "children-no-stat", []any{int32(1), "a"}},
		{OpGet, "get-data", []any{hugeLength, stat{}}},
		{OpGet, "get-negative-length", []any{int32(-2), stat{}}},
		{OpGet, "get-no-stat", []any{"data"}},
		{OpGetACL, "get-acl-count", []any{nullLength, stat{}}},
		{OpGetACL, "get-acl-huge-count", []any{hugeLength, stat{}}},
		{OpGetACL, "get-acl-scheme", []any{int32(1), permAll, hugeLength, "", stat{}}},
		{OpMulti, "multi-empty", nil},
		{OpMulti, "multi-short", []any{int32(1)}},
		{OpMulti, "multi-no-end", result(opDelete)},
		{OpMulti, "multi-no-results", []any{int32(opError), true, int32(-1)}},
		{OpMulti, "multi-unknown-kind", result(77)},
		{OpMulti, "multi-path", append(result(opCreate), hugeLength)},
		// A few bytes each, and far more memory.
		{OpMulti, "multi-many-results", slices.Repeat(result(opDelete), 1<<16)},
		{OpExists, "exists-empty", nil},
		{OpExists, "exists-ends-early", []any{int64(1), int64(1)}},
		{OpSet, "set-empty", nil},
		{OpSetACL, "set-acl-empty", nil},
		{OpCreate, "create-empty", nil},
		{OpCreate, "create-path", []any{hugeLength}},
		{OpCreate, "create-null-path", []any{nullLength}},
		{OpCreateContainer, "create-container-path", []any{hugeLength}},
		{OpSync, "sync-path", []any{hugeLength}},
	}
}

// A hostileGreeting answers a handshake.
type hostileGreeting struct {
	name  string
	frame []byte
}

func hostileGreetings() []hostileGreeting {
	greeting := func(timeout, password int32) []byte {
		return hostilePacket(int32(0), timeout, int64(7), password, int64(0), int64(0))
	}
	frame := func(length uint32) []byte {
		return append(binary.BigEndian.AppendUint32(nil, length), make([]byte, 36)...)
	}
	return []hostileGreeting{
		{"password", greeting(4000, hugeLength)},
		{"negative-password", greeting(4000, -1)},
		{"longer-password", greeting(4000, 17)},
		{"no-timeout", greeting(0, 16)},
		{"empty", frame(0)},
		{"2-gb", frame(math.MaxInt32)},
		{"negative-length", frame(math.MaxUint32)},
	}
}

// hostileFrame announces a length, and is as long as an answer to exists.
func hostileFrame(length uint32) func(xid int32) []byte {
	return func(xid int32) []byte {
		frame := hostileReply(xid, stat{})
		binary.BigEndian.PutUint32(frame, length)
		return frame
	}
}

// hostileReply is a reply to a request that went well, with these fields behind its head.
func hostileReply(xid int32, fields ...any) []byte {
	return hostilePacket(append([]any{xid, int64(1), int32(codeOK)}, fields...)...)
}

func hostilePacket(fields ...any) []byte {
	e := newEncoder()
	for _, f := range fields {
		switch f := f.(type) {
		case int32:
			e.int(f)
		case int64:
			e.long(f)
		case bool:
			e.bool(f)
		case string:
			e.text(f)
		case stat:
			e.stat(f)
		}
	}
	return e.done()
}
