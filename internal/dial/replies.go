package dial

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"
)

// replies are what follows the handshake. zk reads the length and the rest of each by
// itself: out of a buffer that costs half the system calls. They are of zk's goroutine
// that reads.
type replies struct {
	buffered *bufio.Reader
	left     int // bytes of the present one that zk has not read yet
}

// readReply reads what is left of a reply; of a new one it looks at the head first.
func (c *conn) readReply(p []byte) (int, error) {
	r := &c.replies
	if r.left == 0 {
		head, err := r.buffered.Peek(replyHead)
		if err != nil {
			return 0, err
		}
		if r.left = length(head); r.left < replyHead {
			return 0, fmt.Errorf("a reply of %d bytes is not ZooKeeper's", r.left)
		}
		if path, zxid, ok := c.creates.answered(head); ok {
			c.dialer.creates.note(path, zxid)
		}
	}
	n, err := r.buffered.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// unanswered are the creates on one connection whose answers are not in.
type unanswered struct {
	mu    sync.Mutex
	paths map[int32]string // by xid
}

// The parts of a request to create: its length, xid and opcode, the length of the path
// and the path; the flags are its end.
const (
	requestXid        = 4
	requestOp         = 8
	requestPathLength = 12
	requestPathAt     = 16
	opCreate          = 1
	flagsLength       = 4
)

// sending takes note of a create that is about to be sent. zk writes each request in one
// piece; what does not look like that is none that is looked for.
func (u *unanswered) sending(p []byte) {
	if len(p) < requestPathAt+flagsLength || length(p) != len(p) ||
		number(p[requestOp:]) != opCreate ||
		number(p[len(p)-flagsLength:]) != zk.FlagEphemeral|zk.FlagSequence {
		return
	}
	path := p[requestPathAt:]
	n := int(number(p[requestPathLength:]))
	if n < 0 || n > len(path) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths[number(p[requestXid:])] = string(path[:n])
}

// The head of a reply: its length, xid, zxid and error.
const (
	replyXid   = 4
	replyZxid  = 8
	replyError = 16
	replyHead  = 20
)

// answered returns what was asked to be created by the request to which the reply is, and
// when that was done; false where it was none, or has failed.
func (u *unanswered) answered(head []byte) (path string, zxid int64, ok bool) {
	xid := number(head[replyXid:])
	u.mu.Lock()
	defer u.mu.Unlock()
	path, ok = u.paths[xid]
	delete(u.paths, xid)
	zxid = int64(binary.BigEndian.Uint64(head[replyZxid:]))
	return path, zxid, ok && number(head[replyError:]) == 0
}

func number(p []byte) int32 {
	return int32(binary.BigEndian.Uint32(p))
}

// length is a packet's, with the four bytes in front that have it.
func length(p []byte) int { return 4 + int(number(p)) }
