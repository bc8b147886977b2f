package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// A Stream is what follows the handshake on one connection: zk's requests, which it
// records, and the replies, each of which it checks before zk gets it. zk reads the
// length of a reply by itself, and then the rest: out of a buffer, that costs half the
// system calls.
type Stream struct {
	// Set by NewStream.
	from     io.Reader
	buffered *bufio.Reader // from
	maxReply int
	keeper   bool // see ExpectSilence
	listener Listener

	requests unanswered

	// Of the goroutine that reads.
	left    int     // bytes of the present reply that were not read yet
	to      request // what the present one answers
	instead []byte  // what zk gets in place of the present one, which was skipped, or nil
	broken  error   // why there are no more
}

// A Listener receives what zk does not. It is called by the goroutine that reads.
type Listener interface {
	// Created is called when an ephemeral sequential znode was created, with the path
	// that was asked for, which has no number.
	Created(path string, zxid int64)
	// Unauthenticated is called when the server rejects a request for lack of
	// authentication. The server hangs up by itself.
	Unauthenticated()
	// TooLong is called when a reply is longer than the limit: zk gets an error instead.
	TooLong(request string, bytes int)
	// Skipping is called before each part of such a reply is read. All of them may take
	// longer than zk waits for one read.
	Skipping()
	// Malformed is called once, with why no more replies are read. The connection should
	// be closed.
	Malformed(why error)
}

// NewStream returns the Stream of a connection, which r reads. A reply that is longer
// than maxReply bytes is skipped, see skip.
func NewStream(r io.Reader, maxReply int, listener Listener) *Stream {
	return &Stream{
		from: r, buffered: bufio.NewReader(r), maxReply: maxReply, listener: listener,
		requests: unanswered{requests: map[int32]request{}},
	}
}

// Sending records a request that is about to be sent.
func (s *Stream) Sending(p []byte) { s.requests.sending(p) }

// ExpectSilence is for a server that is ClickHouse Keeper. At a request for a container,
// which versions before July 2026 do not know, it hangs up without an answer, and a
// client that asks again loses its next session, too. ZooKeeper answers before it hangs
// up, and so zk gets that answer.
func (s *Stream) ExpectSilence() { s.keeper = true }

// Malformed is said of a reply that no ZooKeeper sends.
type Malformed struct{ Err error }

func (m Malformed) Error() string { return m.Err.Error() }
func (m Malformed) Unwrap() error { return m.Err }

func malformed(format string, args ...any) error {
	return Malformed{fmt.Errorf(format, args...)}
}

// Read reads a reply's length or what follows it.
func (s *Stream) Read(p []byte) (n int, err error) {
	want := max(s.left, lengthSize)
	switch {
	case s.broken != nil:
		return 0, s.broken
	case len(p) < want:
		return 0, fmt.Errorf("BUG: %d bytes of a reply are read into %d", want, len(p))
	case s.left == 0:
		err = s.begin(p[:lengthSize])
	default:
		err = s.end(p[:want])
	}
	if err != nil { // zk may read on, but gets nothing else
		s.broken = err
		if errors.As(err, new(Malformed)) {
			s.listener.Malformed(err)
		}
		return 0, err
	}
	return want, nil
}

// begin looks at the head of the next reply, and reads its length.
func (s *Stream) begin(p []byte) error {
	head, err := s.buffered.Peek(replyHead)
	if err != nil && s.keeper && IsHangUp(err) {
		head, err = s.refuseContainers(err)
	}
	if err != nil {
		return err
	}
	// zk would allocate whatever length it reads.
	announced := int(number(head))
	if announced < replyHead-lengthSize {
		return malformed("a reply of %d bytes is not ZooKeeper's", announced)
	}
	switch xid := number(head[replyXid:]); xid {
	case xidEvent, xidPing: // these answer no request
		s.to = request{op: xid}
	default:
		var ok bool
		if s.to, ok = s.requests.answered(xid); !ok {
			return malformed("a reply to a request that was not sent, or is answered "+
				"already (xid %d)", xid)
		}
	}
	if announced > s.to.most(s.maxReply) {
		return s.skip(announced, p)
	}
	s.left = announced
	_, err = io.ReadFull(s.buffered, p)
	return err
}

const (
	// skipAtMost is far beyond what a ZooKeeper can send: a list of ten million znodes.
	skipAtMost = 1 << 30
	// skipAtOnce is the part of a reply that is skipped within the time for one read.
	skipAtOnce = 1 << 16
)

// skip reads past a reply that is too long, and has zk get a short one to the same
// request: an error with the length as its code ([outcome.Named]), unless the reply is an
// error itself. To cut the connection would cost all other requests on it theirs, and to
// make this one again would cut it again.
func (s *Stream) skip(announced int, p []byte) error {
	if !s.to.mayBeLong() || announced > skipAtMost {
		return malformed("the reply to %s: %d bytes is longer than the limit of %d "+
			"bytes, and than any that ZooKeeper sends",
			opName(s.to.op), announced, s.maxReply)
	}
	head := make([]byte, replyHead)
	if _, err := io.ReadFull(s.buffered, head); err != nil {
		return err
	}
	s.listener.TooLong(opName(s.to.op), announced)
	for left := announced + lengthSize - replyHead; left > 0; {
		s.listener.Skipping()
		n, err := s.buffered.Discard(min(left, skipAtOnce))
		if err != nil {
			return err
		}
		left -= n
	}
	if code := head[replyError:]; number(code) == 0 {
		tooLong := int32(-announced)
		binary.BigEndian.PutUint32(code, uint32(tooLong))
	}
	// zk asks for the length now, and for the rest in its next Read.
	s.instead, s.left = head[lengthSize:], replyHead-lengthSize
	binary.BigEndian.PutUint32(p, uint32(s.left))
	return nil
}

// refuseContainers answers, in place of a server that has hung up, the requests for
// containers at which it did.
func (s *Stream) refuseContainers(hungUp error) (head []byte, err error) {
	var refusals []byte
	for _, xid := range s.requests.of(opCreateContainer) {
		refusals = append(refusals, unimplemented(xid)...)
	}
	if refusals == nil {
		return nil, hungUp
	}
	// The end of the stream follows, as it does from ZooKeeper.
	s.buffered = bufio.NewReader(io.MultiReader(bytes.NewReader(refusals), s.from))
	return s.buffered.Peek(replyHead)
}

// IsHangUp reports whether err says no more than that the server ended the connection. It
// does so when it is not serving, for lack of a quorum, say, and also when only one of
// the two talks TLS; which of these it is cannot be told. A reset that follows on the
// end of the stream is a broken pipe.
func IsHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// end reads what follows the length into p, where it is checked: a copy of each
// reply would cost more than all the rest.
func (s *Stream) end(p []byte) error {
	if s.instead != nil {
		copy(p, s.instead)
		s.instead = nil
	} else if _, err := io.ReadFull(s.buffered, p); err != nil {
		return err
	}
	s.left = 0
	head, rest := p[:replyHead-lengthSize], p[replyHead-lengthSize:]
	code := head[replyError-lengthSize:]
	if number(code) == codeUnauthenticated && s.to.op != xidEvent {
		s.listener.Unauthenticated()
		known := int32(codeAuthFailed) // to zk, which does not know the other
		binary.BigEndian.PutUint32(code, uint32(known))
	}
	if number(code) != 0 && s.to.op != xidEvent {
		return nil // zk does not look at the rest
	}
	if err := s.to.check(rest); err != nil {
		return malformed("the reply to %s: %w", opName(s.to.op), err)
	}
	if s.to.path != "" {
		zxid := binary.BigEndian.Uint64(head[replyZxid-lengthSize:])
		s.listener.Created(s.to.path, int64(zxid))
	}
	return nil
}

// zxidXid is the xid of a sync that is asked before zk has the connection.
const zxidXid = 1

// AskZxid asks how far the ensemble has come, by a sync that its leader has a part in,
// and then ends the session. It is called before Read, which cannot follow.
func (s *Stream) AskZxid(w io.Writer) (zxid int64, err error) {
	head, err := s.ask(w, packet(zxidXid, opSync, buffer([]byte("/"))))
	if err != nil {
		return 0, err
	}
	if code := number(head[replyError:]); code != 0 {
		return 0, fmt.Errorf("the server refuses a sync with error code %d", code)
	}
	_, err = w.Write(packet(zxidXid+1, opClose, nil))
	return int64(binary.BigEndian.Uint64(head[replyZxid:])), err
}

// ask sends a request before zk has the connection, and returns the head of its reply.
func (s *Stream) ask(w io.Writer, request []byte) (head []byte, err error) {
	if _, err := w.Write(request); err != nil {
		return nil, err
	}
	head = make([]byte, replyHead)
	if _, err := io.ReadFull(s.buffered, head); err != nil {
		return nil, err
	}
	xid, want := number(head[replyXid:]), number(request[requestXid:])
	if xid != want {
		return nil, malformed("the server answers request %d instead of %d", xid, want)
	}
	return head, nil
}
