package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// The head of the answer to a handshake: its length, the protocol's version, the session
// timeout in milliseconds, the session's id, and the length of its password. The password
// and a flag follow.
const (
	answerLength   = 4
	answerVersion  = 4
	answerTimeout  = 8
	answerSession  = 12
	answerPassword = 20
	answerHead     = 24
)

// answerLimit bounds the length of an answer that is believed; real ones have 36 or 37
// bytes. zk takes the first four bytes of whatever it connected to for a length, and
// allocates it: "HTTP" is 1.2 GB. It sends the password back at each reconnect, to
// whatever server, in a packet of 256 bytes: with a longer one it would never connect
// again.
const answerLimit = 128

// ErrNotZooKeeper says that the answer to a handshake is none of ZooKeeper's.
var ErrNotZooKeeper = errors.New(
	"the server's answer is not ZooKeeper's; does it want TLS?")

// An Answer is the server's, to a handshake, with its length in front.
type Answer []byte

// ReadAnswer reads no further than the answer.
func ReadAnswer(r io.Reader) (Answer, error) {
	a := make(Answer, answerLength, answerLength+answerLimit)
	if _, err := io.ReadFull(r, a); err != nil {
		return nil, err
	}
	rest := int(binary.BigEndian.Uint32(a))
	if rest < answerHead-answerLength || rest > answerLimit {
		return nil, ErrNotZooKeeper
	}
	a = a[:answerLength+rest]
	_, err := io.ReadFull(r, a[answerLength:])
	return a, err
}

// Session returns the session and its timeout as the answer has them, session 0 if the
// session has expired, or why the answer has none.
func (a Answer) Session() (session int64, timeout time.Duration, err error) {
	version, granted := number(a[answerVersion:]), number(a[answerTimeout:])
	session = int64(binary.BigEndian.Uint64(a[answerSession:]))
	password := int(number(a[answerPassword:]))
	switch {
	case version != 0, session == -1:
		// ClickHouse Keeper says so (KeeperTCPHandler::sendHandshake) and hangs up. zk
		// would take it for a session, forget the one it had, and dial on without a
		// pause.
		return 0, 0, fmt.Errorf("the server rejects clients, as a server does that "+
			"has no leader (protocol version %d, session %d)", version, session)
	case password < 0 || password > len(a)-answerHead:
		// zk would allocate it.
		return 0, 0, fmt.Errorf("the server's answer, of %d bytes, has a password of "+
			"%d bytes", len(a)-answerLength, password)
	case session != 0 && granted < 1:
		return 0, 0, fmt.Errorf("the server grants a session timeout of %d ms", granted)
	}
	return session, time.Duration(granted) * time.Millisecond, nil
}

// Expire makes it say that the session has expired.
func (a Answer) Expire() { clear(a[answerSession:answerPassword]) }

// HasPassword reports whether a session can be resumed, which needs a password. It is for
// an Answer that has a session.
func (a Answer) HasPassword() bool {
	password := a[answerHead:][:number(a[answerPassword:])]
	return slices.ContainsFunc(password, func(b byte) bool { return b != 0 })
}

// The parts of a client's handshake: its length, the protocol's version, the last zxid
// that it has seen, the session timeout, and the session's id, in front of others.
const (
	askedZxid     = 8
	askedTimeout  = 16
	askedSession  = 20
	askedPassword = 28
)

// Asked returns the session that a client's handshake asks for, 0 for a new one, and the
// last zxid that it has seen: a server that has not come so far hangs up. zk writes the
// handshake in one piece.
func Asked(p []byte) (session, zxid int64) {
	if len(p) < askedPassword || length(p) != len(p) {
		return 0, 0
	}
	session = int64(binary.BigEndian.Uint64(p[askedSession:]))
	return session, int64(binary.BigEndian.Uint64(p[askedZxid:]))
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
