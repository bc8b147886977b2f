package zktest

import "encoding/binary"

// An encoder builds one frame.
type encoder struct{ frame []byte }

func newEncoder() *encoder { return &encoder{frame: make([]byte, 4, 128)} }

// done fills in the length of the frame, which stands before it.
func (e *encoder) done() []byte {
	binary.BigEndian.PutUint32(e.frame, uint32(len(e.frame)-4))
	return e.frame
}

func (e *encoder) int(v int32) {
	e.frame = binary.BigEndian.AppendUint32(e.frame, uint32(v))
}

func (e *encoder) long(v int64) {
	e.frame = binary.BigEndian.AppendUint64(e.frame, uint64(v))
}

func (e *encoder) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	e.frame = append(e.frame, b)
}

func (e *encoder) buffer(v []byte) {
	if v == nil {
		e.int(-1)
		return
	}
	e.int(int32(len(v)))
	e.frame = append(e.frame, v...)
}

func (e *encoder) text(v string) {
	e.int(int32(len(v)))
	e.frame = append(e.frame, v...)
}

func (e *encoder) texts(all []string) {
	e.int(int32(len(all)))
	for _, v := range all {
		e.text(v)
	}
}

func (e *encoder) acls(all []acl) {
	e.int(int32(len(all)))
	for _, a := range all {
		e.int(a.perms)
		e.text(a.scheme)
		e.text(a.id)
	}
}

func (e *encoder) stat(s stat) {
	for _, v := range []int64{s.czxid, s.mzxid, s.ctime, s.mtime} {
		e.long(v)
	}
	for _, v := range []int32{s.version, s.cversion, s.aversion} {
		e.int(v)
	}
	e.long(s.ephemeralOwner)
	e.int(s.dataLength)
	e.int(s.numChildren)
	e.long(s.pzxid)
}

func (e *encoder) header(xid int32, zxid int64, err code) {
	e.int(xid)
	e.long(zxid)
	e.int(int32(err))
}

func (e *encoder) multiHeader(op opcode, done bool, err code) {
	e.int(int32(op))
	e.bool(done)
	e.int(int32(err))
}

// encodeConnectResponse with timeout and session 0 and a password of 16 zeros tells the
// client that its session is over.
func encodeConnectResponse(
	timeout int32, session int64, password []byte, withReadOnly, readOnly bool,
) []byte {
	e := newEncoder()
	e.int(0) // the version of the protocol
	e.int(timeout)
	e.long(session)
	e.buffer(password)
	if withReadOnly {
		e.bool(readOnly)
	}
	return e.done()
}

func encodeReply(xid int32, zxid int64, err code, body reply) []byte {
	e := newEncoder()
	e.header(xid, zxid, err)
	if body != nil {
		body.encode(e)
	}
	return e.done()
}

// encodeEvent makes a notification. The server does not say at which zxid the change was.
func encodeEvent(what event) []byte {
	e := newEncoder()
	e.header(notificationXid, -1, codeOK)
	e.int(int32(what.kind))
	e.int(stateSyncConnected)
	e.text(what.path)
	return e.done()
}

func (r pathReply) encode(e *encoder) { e.text(r.path) }
func (r statReply) encode(e *encoder) { e.stat(r.stat) }

func (r pathStatReply) encode(e *encoder) {
	e.text(r.path)
	e.stat(r.stat)
}

func (r dataReply) encode(e *encoder) {
	e.buffer(r.data)
	e.stat(r.stat)
}

func (r childrenReply) encode(e *encoder) { e.texts(r.children) }

func (r countReply) encode(e *encoder) { e.int(r.n) }

func (r clientReply) encode(e *encoder) {
	e.int(int32(len(r.who)))
	for _, id := range r.who {
		e.text(id.scheme)
		e.text(id.user())
	}
}

func (r childrenStatReply) encode(e *encoder) {
	e.texts(r.children)
	e.stat(r.stat)
}

func (r aclReply) encode(e *encoder) {
	e.acls(r.acl)
	e.stat(r.stat)
}

func (r saslReply) encode(e *encoder) { e.buffer(r.token) }

func (addWatchReply) encode(e *encoder) { e.int(int32(codeOK)) }

func (r multiReply) encode(e *encoder) {
	for _, x := range r.results {
		e.multiHeader(x.op, false, x.code)
		if x.op == opError {
			e.int(int32(x.code))
		} else if x.body != nil {
			x.body.encode(e)
		}
	}
	e.multiHeader(opError, true, -1)
}
