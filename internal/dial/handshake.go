package dial

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// A Handshake is one that gave a session, or resumed it.
type Handshake struct {
	Session int64
	// Began is when the server was reached, before anything was sent to it.
	Began time.Time
	// Timeout is the session timeout that the server granted.
	Timeout time.Duration
}

// conn is a connection of zk's. It bounds its handshake and reads the server's answer
// along, and authenticates (sasl.go); after that it takes note of each request, and
// checks each reply (replies.go).
type conn struct {
	// Set by Dialer.open.
	net.Conn          // what zk talks through: raw, or TLS over it
	raw      net.Conn // what Close closes
	dialer   *Dialer
	server   string
	began    time.Time // when the server was reached
	until    time.Time // when the handshake must have ended

	// Of zk's goroutine that connects, which starts those that read and write after the
	// handshake.
	resumes  int64  // the session that the client asks for; 0: a new one
	answered bool   // the answer was read completely
	answer   answer // what zk has not read of it yet
	over     bool   // it says that the session has expired
	keeper   bool   // the server resumes no sessions

	replies  replies
	requests unanswered
}

// Close leaves TLS out: its farewell can block for five seconds on a peer that has
// stopped reading, and means nothing to ZooKeeper, which has one of its own.
func (c *conn) Close() error { return c.raw.Close() }

func (c *conn) Read(p []byte) (int, error) {
	if c.answered && len(c.answer) == 0 {
		return c.readReply(p)
	}
	if !c.answered {
		if err := c.shake(); err != nil {
			err = c.hint(err)
			c.dialer.failed(c.server, fmt.Errorf("handshake: %w", err))
			if isHangUp(err) {
				c.dialer.hungUp()
			}
			return 0, err
		}
	}
	n := copy(p, c.answer)
	c.answer = c.answer[n:]
	if c.over && len(c.answer) == 0 {
		c.raw.Close() // zk leaves it to the server, and a Keeper does not
	}
	return n, nil
}

// hint adds to the end of a connection what may be the reason.
func (c *conn) hint(err error) error {
	switch {
	case !isHangUp(err), errors.As(err, new(saslHungUp)):
		return err
	case c.dialer.config.TLS == nil:
		return fmt.Errorf("the server hung up, is it serving, and without TLS? (%w)", err)
	default:
		return fmt.Errorf("the server hung up, is it serving? (%w)", err)
	}
}

// Write reports a failure after the handshake only by closing the connection. That makes
// zk's reader fail, which answers what was sent with zk.ErrConnectionClosed; given the
// error, zk would return it raw, and if what it sent was a credential, answer that twice,
// into a channel that holds one answer, with its lock held for ever
// (go-zookeeper/zk#163).
func (c *conn) Write(p []byte) (int, error) {
	if c.answered {
		c.requests.sending(p)
	} else {
		c.resumes = sessionOf(p)
	}
	n, err := c.Conn.Write(p)
	switch {
	case err == nil:
		return n, nil
	case !c.answered:
		c.dialer.failed(c.server, fmt.Errorf("handshake: %w", err))
		return n, err
	}
	c.dialer.config.Log.Debug("zookeeper: write failed", "server", c.server, "error", err)
	c.raw.Close()
	return len(p), nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.Conn.SetReadDeadline(c.bound(t))
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(c.bound(t))
}

// bound keeps zk's deadlines, which include none at all for most of the answer, within
// the handshake's. What it leaves behind harms nothing: zk sets a new one before each
// read and write.
func (c *conn) bound(t time.Time) time.Time {
	if !c.answered && (t.IsZero() || t.After(c.until)) {
		return c.until
	}
	return t
}

// shake reads the server's answer to the handshake. The session timeout is known before zk
// has read any of it, and so before anybody can hear of the session. By then the
// connection is authenticated, too.
//
// A server that gives another session than the one that was asked for, as ClickHouse
// Keeper does at each reconnect, has ended that as far as the client is concerned. zk
// would go on as if nothing had happened, with watches that no server has. So it is told
// what ZooKeeper would say, that the session has expired, and asks for a new one.
func (c *conn) shake() error {
	a, err := readAnswer(c.Conn)
	if err != nil {
		return err
	}
	session, timeout, err := a.session()
	if err != nil {
		return err
	}
	c.replies.buffered = bufio.NewReader(c.Conn)
	c.keeper = session != 0 && a.hasNoPassword()
	if c.resumes != 0 && session != c.resumes {
		a.expire()
		session = 0
	}
	if session == 0 {
		c.answered, c.answer, c.over = true, a, true
		c.dialer.succeeded(nil)
		return nil
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	c.answered, c.answer = true, a
	c.dialer.succeeded(&Handshake{Session: session, Began: c.began, Timeout: timeout})
	return nil
}

// The parts of a client's handshake: its length, the protocol's version, the last zxid
// that it has seen, the session timeout, and the session's id, in front of others.
const (
	askedSession  = 20
	askedPassword = 28
)

// sessionOf returns the session that a client's handshake asks for. zk writes it in one
// piece.
func sessionOf(p []byte) int64 {
	if len(p) < askedPassword || length(p) != len(p) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p[askedSession:]))
}

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

var errNotZooKeeper = errors.New(
	"the server's answer is not ZooKeeper's; does it want TLS?")

// An answer is the server's, to a handshake.
type answer []byte

// readAnswer reads no further than the answer.
func readAnswer(r io.Reader) (answer, error) {
	a := make(answer, answerLength, answerLength+answerLimit)
	if _, err := io.ReadFull(r, a); err != nil {
		return nil, err
	}
	rest := int(binary.BigEndian.Uint32(a))
	if rest < answerHead-answerLength || rest > answerLimit {
		return nil, errNotZooKeeper
	}
	a = a[:answerLength+rest]
	_, err := io.ReadFull(r, a[answerLength:])
	return a, err
}

// expire makes it say that the session has expired.
func (a answer) expire() { clear(a[answerSession:answerPassword]) }

// hasNoPassword: it takes none to resume the session, since that is not possible.
func (a answer) hasNoPassword() bool {
	password := a[answerHead:][:number(a[answerPassword:])]
	return !slices.ContainsFunc(password, func(b byte) bool { return b != 0 })
}

// session returns what a complete answer tells, session 0 if the session has expired, or
// why it tells of none.
func (a answer) session() (session int64, timeout time.Duration, err error) {
	version := int32(binary.BigEndian.Uint32(a[answerVersion:]))
	granted := int32(binary.BigEndian.Uint32(a[answerTimeout:]))
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
