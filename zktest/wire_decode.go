package zktest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A decoder takes values off a packet. After the first error it gives zero values only.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err == nil && (n < 0 || n > len(d.rest)) {
		d.err = io.ErrUnexpectedEOF
	}
	if d.err != nil {
		return nil
	}
	head := d.rest[:n]
	d.rest = d.rest[n:]
	return head
}

func (d *decoder) int() int32 {
	b := d.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (d *decoder) long() int64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// buffer tells nil from empty: a znode keeps the difference.
func (d *decoder) buffer() []byte {
	n := d.int()
	if d.err != nil || n == -1 {
		return nil
	}
	return append([]byte{}, d.take(int(n))...)
}

// text takes null for the empty string.
func (d *decoder) text() string {
	n := d.int()
	if d.err != nil || n == -1 {
		return ""
	}
	return strings.ToValidUTF8(string(d.take(int(n))), "\uFFFD")
}

var errNull = errors.New("null where a value must be")

// name is a text where null makes the real server stumble.
func (d *decoder) name() string {
	if bytes.HasPrefix(d.rest, []byte{0xff, 0xff, 0xff, 0xff}) && d.err == nil {
		d.err = errNull
	}
	return d.text()
}

func (d *decoder) names() []string {
	n := d.int()
	if n == -1 && d.err == nil {
		d.err = errNull
	}
	var all []string
	for ; n > 0 && d.err == nil; n-- {
		all = append(all, d.name())
	}
	return all
}

func (d *decoder) acls() []acl {
	var all []acl
	for n := d.int(); n > 0 && d.err == nil; n-- {
		all = append(all, acl{
			perms: d.int(), identity: identity{scheme: d.text(), id: d.text()},
		})
	}
	return all
}

func decodeConnect(packet []byte) (connectRequest, error) {
	d := decoder{rest: packet}
	r := connectRequest{
		protocol: d.int(), lastZxid: d.long(), timeout: d.int(), session: d.long(),
		password: d.buffer(),
	}
	if d.err != nil {
		return connectRequest{}, fmt.Errorf(
			"decode connect request of %d bytes: %w", len(packet), d.err,
		)
	}
	if len(d.rest) > 0 {
		r.readOnly, r.hasReadOnly = d.bool(), true
	}
	return r, nil
}

// decodeRequest fails where a real server closes the connection without an answer: a
// truncated header, an auth packet that does not parse.
func decodeRequest(packet []byte) (request, error) {
	d := decoder{rest: packet}
	r := request{xid: d.int(), op: opcode(d.int())}
	if d.err != nil {
		return request{}, fmt.Errorf(
			"decode request of %d bytes: header: %w", len(packet), d.err,
		)
	}
	r.body = d.body(r.op)
	if d.err == nil {
		return r, nil
	}
	if r.op == opSetAuth || r.op == opSASL {
		return request{}, fmt.Errorf(
			"decode request of %d bytes: auth packet: %w", len(packet), d.err,
		)
	}
	r.body = malformed{}
	return r, nil
}

func (d *decoder) body(op opcode) any {
	switch op {
	case opExists, opGetData, opGetChildren, opGetChildren2:
		return pathRequest{path: d.name(), watch: d.bool()}
	case opGetEphemerals:
		return pathRequest{path: d.text()}
	case opCountChildren:
		return pathRequest{path: d.name()}
	case opGetACL:
		return getACLRequest{path: d.name()}
	case opSync:
		return syncRequest{path: d.text()}
	case opSetACL:
		return setACLRequest{path: d.text(), acl: d.acls(), version: d.int()}
	case opSetWatches:
		return setWatchesRequest{
			relativeZxid: d.long(), data: d.names(), exist: d.names(), child: d.names(),
		}
	case opSetWatches2:
		return setWatchesRequest{
			relativeZxid: d.long(), data: d.names(), exist: d.names(), child: d.names(),
			persistent: d.names(), recursive: d.names(),
		}
	case opAddWatch:
		return addWatchRequest{path: d.text(), mode: d.int()}
	case opCheckWatches:
		return watcherRequest{path: d.name(), of: d.int()}
	case opRemoveWatches:
		return watcherRequest{path: d.text(), of: d.int()}
	case opSetAuth:
		d.int() // the type of the packet, which means nothing
		return authRequest{scheme: d.text(), auth: d.buffer()}
	case opSASL:
		return saslRequest{token: d.buffer()}
	case opMulti, opMultiRead:
		return multiRequest{ops: d.ops(op)}
	case opReconfig:
		return d.reconfig()
	case opDeleteContainer:
		// The server takes the whole packet for the path, and a packet has a NUL in it:
		// no client can delete containers so.
		return deleteRequest{path: "\x00", version: -1}
	default:
		return d.write(op)
	}
}

// write is the body of a write that may also stand in a multi.
func (d *decoder) write(op opcode) any {
	switch op {
	case opCreate, opCreate2, opCreateContainer:
		return createRequest{
			path: d.name(), data: d.buffer(), acl: d.acls(), flags: d.int(),
		}
	case opCreateTTL:
		return createRequest{
			path: d.name(), data: d.buffer(), acl: d.acls(), flags: d.int(),
			ttl: d.long(), hasTTL: true,
		}
	case opDelete:
		return deleteRequest{path: d.name(), version: d.int()}
	case opSetData:
		return setDataRequest{path: d.text(), data: d.buffer(), version: d.int()}
	case opCheck:
		return checkRequest{path: d.text(), version: d.int()}
	default:
		return nil
	}
}

var errOp = errors.New("an op that may not stand in a multi")

// ops are the requests within a multi or multiRead.
func (d *decoder) ops(multi opcode) []request {
	var all []request
	for d.err == nil {
		r, done := request{op: opcode(d.int())}, d.bool()
		d.int() // the error code of the header, which only answers use
		if done || d.err != nil {
			break
		}
		switch {
		case multi == opMulti:
			r.body = d.write(r.op)
		case r.op == opGetData || r.op == opGetChildren:
			r.body = pathRequest{path: d.name()}
			d.bool() // a watch, which the server drops
		}
		if r.body == nil && d.err == nil {
			d.err = errOp
		}
		if c, ok := r.body.(createRequest); ok {
			r.op = opOfFlags(c.flags)
		}
		all = append(all, r)
	}
	return all
}

// opOfFlags is the op that a create in a multi becomes, whichever it was sent as.
func opOfFlags(flags int32) opcode {
	switch mode, ok := createModes[flags]; {
	case ok && mode.ttl:
		return opCreateTTL
	case ok && mode.container:
		return opCreateContainer
	default:
		return opCreate
	}
}
