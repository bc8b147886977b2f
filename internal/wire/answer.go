package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
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

// An Answer is as much of the server's answer to a handshake as was read.
type Answer struct {
	head [answerHead]byte
	read int
}

// Add takes the next bytes, and reports whether those were the last.
func (a *Answer) Add(p []byte) (complete bool, err error) {
	if a.read < answerHead {
		copy(a.head[a.read:], p)
	}
	a.read += len(p)
	if a.read < answerLength {
		return false, nil
	}
	length := int(binary.BigEndian.Uint32(a.head[:]))
	if length < answerHead-answerLength || length > answerLimit {
		return false, ErrNotZooKeeper
	}
	return a.read >= answerLength+length, nil
}

// Session returns what a complete answer tells, session 0 if the session has expired, or
// why it tells of none.
func (a *Answer) Session() (session int64, timeout time.Duration, err error) {
	version := int32(binary.BigEndian.Uint32(a.head[answerVersion:]))
	granted := int32(binary.BigEndian.Uint32(a.head[answerTimeout:]))
	session = int64(binary.BigEndian.Uint64(a.head[answerSession:]))
	password := int(number(a.head[answerPassword:]))
	switch {
	case version != 0, session == -1:
		// ClickHouse Keeper says so (KeeperTCPHandler::sendHandshake) and hangs up. zk
		// would take it for a session, forget the one it had, and dial on without a
		// pause.
		return 0, 0, fmt.Errorf("the server rejects clients, as a server does that "+
			"has no leader (protocol version %d, session %d)", version, session)
	case password < 0 || password > length(a.head[:])-answerHead:
		// zk would allocate it.
		return 0, 0, fmt.Errorf("the server's answer, of %d bytes, has a password of "+
			"%d bytes", length(a.head[:])-answerLength, password)
	case session != 0 && granted < 1:
		return 0, 0, fmt.Errorf("the server grants a session timeout of %d ms", granted)
	}
	return session, time.Duration(granted) * time.Millisecond, nil
}
