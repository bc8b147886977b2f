package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// askedZxid is where a client's handshake has the last zxid that it has seen, in front of
// the session timeout.
const (
	askedZxid    = 8
	askedTimeout = 16
)

// AskedZxid returns the last zxid that a client has seen, by its handshake: a server that
// has not come so far hangs up.
func AskedZxid(p []byte) int64 {
	if len(p) < askedPassword || length(p) != len(p) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p[askedZxid:]))
}

// AsNew returns a client's handshake as one that has seen nothing yet, and asks for a new
// session, would send it.
func AsNew(p []byte) []byte {
	p = slices.Clone(p)
	clear(p[askedZxid:askedTimeout])
	clear(p[askedSession:askedPassword])
	clear(p[min(askedPassword+lengthSize, len(p)):])
	return p
}

// The xid of a sync that is asked before zk has the connection, and its path.
const (
	zxidXid  = 1
	zxidPath = "/"
)

// AskZxid asks how far the ensemble has come, by a sync that its leader has a part in,
// and then ends the session. It is called before Read, which cannot follow.
func (s *Stream) AskZxid(w io.Writer) (zxid int64, err error) {
	p := packet(zxidXid, opSync)
	p = binary.BigEndian.AppendUint32(p, uint32(len(zxidPath)))
	p = append(p, zxidPath...)
	binary.BigEndian.PutUint32(p, uint32(len(p)-lengthSize))
	if _, err := w.Write(p); err != nil {
		return 0, err
	}
	var head [replyHead]byte
	if _, err := io.ReadFull(s.buffered, head[:]); err != nil {
		return 0, err
	}
	if xid, code := number(head[replyXid:]), number(head[replyError:]); xid != zxidXid {
		return 0, malformed("the server answers request %d instead of %d", xid, zxidXid)
	} else if code != 0 {
		return 0, fmt.Errorf("the server refuses a sync with error code %d", code)
	}
	_, err = w.Write(packet(zxidXid+1, opClose))
	return int64(binary.BigEndian.Uint64(head[replyZxid:])), err
}

// packet returns a request without a body.
func packet(xid, op int32) []byte {
	p := binary.BigEndian.AppendUint32(nil, requestHead-lengthSize)
	p = binary.BigEndian.AppendUint32(p, uint32(xid))
	return binary.BigEndian.AppendUint32(p, uint32(op))
}
