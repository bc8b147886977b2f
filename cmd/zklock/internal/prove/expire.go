package prove

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/wire"
)

// A keyring has the password of a worker's own session, which the server told at the
// handshake: with it the session can be ended from another connection, as if by an
// operator. It learns none where TLS hides it. It is safe for concurrent use.
type keyring struct {
	dial func(network, address string, timeout time.Duration) (net.Conn, error)

	mu      sync.Mutex // guards what follows
	answer  wire.Answer
	address string // of the server
}

// Dial is a zk.Dialer.
func (k *keyring) Dial(
	network, address string, timeout time.Duration,
) (net.Conn, error) {
	conn, err := k.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &overheard{Conn: conn, keys: k, address: address}, nil
}

func (k *keyring) keep(a wire.Answer, address string) {
	if session, _, err := a.Session(); err == nil && session != 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.answer, k.address = a, address
	}
}

// An overheard connection passes on what the server's first answer is.
type overheard struct {
	net.Conn
	keys    *keyring
	address string
	begun   []byte // of the answer
	over    bool
}

// answerMost is longer than any answer to a handshake.
const answerMost = 256

// Read implements net.Conn. One goroutine reads.
func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if !o.over {
		o.begun = append(o.begun, p[:n]...)
		answer, failed := wire.ReadAnswer(&prefix{o.begun})
		if failed == nil {
			o.keys.keep(answer, o.address)
		}
		short := errors.Is(failed, io.EOF) || errors.Is(failed, io.ErrUnexpectedEOF)
		o.over = !short || len(o.begun) > answerMost
	}
	return n, err
}

// A prefix is read without being used up.
type prefix struct{ rest []byte }

// Read implements io.Reader.
func (r *prefix) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// errNoKey says that a session cannot be ended.
var errNoKey = errors.New("the password of the session is not known")

const (
	passwordSize = 16
	opClose      = -11
	expireWithin = 5 * time.Second
)

// expire ends a session of the worker's own from another connection. That goes by no
// line: a handshake that a fault delays takes the session over late, and gives it back to
// the server that still has a connection of before, with a create that nobody waits for.
// Otherwise a server rejects what comes by such a connection (SessionMoved).
func (k *keyring) expire(session int64) error {
	k.mu.Lock()
	answer, address := k.answer, k.address
	k.mu.Unlock()
	if answer == nil {
		return errNoKey
	}
	of, timeout, err := answer.Session()
	if err != nil || of != session || len(answer) < passwordAt+passwordSize {
		return errors.Join(errNoKey, err)
	}
	conn, err := net.DialTimeout("tcp", address, expireWithin)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(expireWithin)) // else it takes longer
	_, err = conn.Write(resumption(answer, session, timeout))
	if err != nil {
		return err
	}
	resumed, err := wire.ReadAnswer(conn)
	if err != nil {
		return err
	}
	if got, _, err := resumed.Session(); err != nil || got != session {
		return errors.Join(errNoKey, err)
	}
	end := binary.BigEndian.AppendUint32(nil, 8)
	end = binary.BigEndian.AppendUint32(end, 1) // the request's number
	op := int32(opClose)
	end = binary.BigEndian.AppendUint32(end, uint32(op))
	if _, err = conn.Write(end); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn) // the server answers, and hangs up
	return err
}

// passwordAt is where an answer has the password.
const passwordAt = 24

// resumption is the handshake of a client that goes on with a session.
func resumption(a wire.Answer, session int64, timeout time.Duration) []byte {
	const size = 4 + 8 + 4 + 8 + 4 + passwordSize
	p := binary.BigEndian.AppendUint32(nil, size)
	p = binary.BigEndian.AppendUint32(p, 0) // the protocol's version
	p = binary.BigEndian.AppendUint64(p, 0) // the last zxid that was seen
	//nolint:gosec // the answer had no more bits
	p = binary.BigEndian.AppendUint32(p, uint32(timeout.Milliseconds()))
	p = binary.BigEndian.AppendUint64(p, uint64(session))
	p = binary.BigEndian.AppendUint32(p, passwordSize)
	return append(p, a[passwordAt:passwordAt+passwordSize]...)
}
