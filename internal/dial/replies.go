package dial

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxReply is the length of the longest reply where [Config].MaxReply is 0.
const DefaultMaxReply = 64 << 20

// replies are what follows the handshake. zk reads the length of each by itself, and then
// the rest: out of a buffer, that costs half the system calls. Each reply is checked
// before zk gets it: zk v1.0.4 allocates what a length or a count announces, panics where
// the results of a multi end early, and takes what is missing from the reply before. They
// are of zk's goroutine that reads.
type replies struct {
	buffered *bufio.Reader
	left     int     // bytes of the present one that zk has not read yet
	to       request // what the present one answers
	broken   error   // why there are no more
}

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

// A malformed reply is one that no ZooKeeper sends, or one that is too long.
type malformed struct{ error }

func (m malformed) Unwrap() error { return m.error }

// readReply reads a reply's length or what follows it. It cuts the connection where the
// reply is malformed.
func (c *conn) readReply(p []byte) (n int, err error) {
	r := &c.replies
	want := max(r.left, lengthSize)
	switch {
	case r.broken != nil:
		return 0, r.broken
	case len(p) < want:
		return 0, fmt.Errorf("BUG: %d bytes of a reply are read into %d", want, len(p))
	case r.left == 0:
		err = c.beginReply(p[:lengthSize])
	default:
		err = c.endReply(p[:want])
	}
	if err != nil {
		r.broken = err
		if errors.As(err, new(malformed)) {
			c.cut(err)
		}
		return 0, err
	}
	return want, nil
}

// beginReply looks at the head of the next reply, and reads its length.
func (c *conn) beginReply(p []byte) error {
	r := &c.replies
	head, err := r.buffered.Peek(replyHead)
	if err != nil && c.keeper && isHangUp(err) {
		head, err = c.refuseContainers(err)
	}
	if err != nil {
		return err
	}
	limit, announced := c.dialer.config.MaxReply, int(number(head))
	switch {
	case announced < replyHead-lengthSize:
		return malformed{fmt.Errorf("a reply of %d bytes is not ZooKeeper's", announced)}
	case announced > limit:
		return malformed{fmt.Errorf("a reply of %d bytes is longer than the limit of %d "+
			"bytes; WithMaxReply sets it", announced, limit)}
	}
	switch xid := number(head[replyXid:]); xid {
	case xidEvent, xidPing:
		r.to = request{op: xid}
	default:
		var ok bool
		if r.to, ok = c.requests.answered(xid); !ok {
			return malformed{fmt.Errorf("a reply to a request that was not sent, or is "+
				"answered already (xid %d)", xid)}
		}
	}
	r.left = announced
	_, err = io.ReadFull(r.buffered, p)
	return err
}

// refuseContainers has the requests for containers refused that a Keeper has hung up at:
// versions before July 2026 do not know them. ZooKeeper before 3.5 answers before it
// hangs up. A Keeper says nothing, and a client that asks again loses its next session,
// too.
func (c *conn) refuseContainers(hungUp error) (head []byte, err error) {
	r := &c.replies
	var refusals []byte
	for _, xid := range c.requests.of(opCreateContainer) {
		refusals = binary.BigEndian.AppendUint32(refusals, replyHead-lengthSize)
		refusals = binary.BigEndian.AppendUint32(refusals, uint32(xid))
		refusals = append(refusals, noZxid...)
		refusals = binary.BigEndian.AppendUint32(refusals, unimplemented)
	}
	if refusals == nil {
		return nil, hungUp
	}
	r.buffered = bufio.NewReader(io.MultiReader(bytes.NewReader(refusals), c.Conn))
	return r.buffered.Peek(replyHead)
}

// What ZooKeeper answers to a request that it does not know: -1 as the zxid, and -6 as
// the error.
var (
	noZxid        = bytes.Repeat([]byte{0xff}, replyError-replyZxid)
	unimplemented = ^uint32(6 - 1)
)

// endReply reads what follows the length into p, where it is checked: a copy of each
// reply would cost more than all the rest.
func (c *conn) endReply(p []byte) error {
	r := &c.replies
	if _, err := io.ReadFull(r.buffered, p); err != nil {
		return err
	}
	r.left = 0
	head, rest := p[:replyHead-lengthSize], p[replyHead-lengthSize:]
	code := head[replyError-lengthSize:]
	if number(code) == codeUnauthenticated && r.to.op != xidEvent {
		c.unauthenticated()
		known := int32(codeAuthFailed) // to zk, which does not know the other
		binary.BigEndian.PutUint32(code, uint32(known))
	}
	if number(code) != 0 && r.to.op != xidEvent {
		return nil // zk does not look at the rest
	}
	if err := r.to.check(rest); err != nil {
		return malformed{fmt.Errorf("the reply to %s: %w", opName(r.to.op), err)}
	}
	if r.to.path != "" {
		zxid := binary.BigEndian.Uint64(head[replyZxid-lengthSize:])
		c.dialer.creates.note(r.to.path, int64(zxid))
	}
	return nil
}

// cut ends a connection on which the server has sent what it may not.
func (c *conn) cut(why error) {
	c.dialer.config.Log.Warn("zookeeper: malformed reply, connection cut",
		"server", c.server, "error", why)
	c.dialer.attempts.cutOff(fmt.Errorf("%s: %w", c.server, why))
	c.raw.Close()
}

func number(p []byte) int32 {
	return int32(binary.BigEndian.Uint32(p))
}

// length is a packet's, with the four bytes in front that have it.
func length(p []byte) int { return lengthSize + int(number(p)) }
