package dial

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
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
	answered bool // the answer was read completely
	answer   answer

	replies  replies
	requests unanswered
}

// Close leaves TLS out: its farewell can block for five seconds on a peer that has
// stopped reading, and means nothing to ZooKeeper, which has one of its own.
func (c *conn) Close() error { return c.raw.Close() }

func (c *conn) Read(p []byte) (int, error) {
	if c.answered {
		return c.readReply(p)
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		err = c.sniff(p[:n])
	}
	if err != nil {
		err = c.hint(err)
		c.dialer.failed(c.server, fmt.Errorf("handshake: %w", err))
		if isHangUp(err) {
			c.dialer.hungUp()
		}
		return 0, err
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

// sniff looks at the next bytes of the answer. The session timeout is known before zk has
// read the last of them, and so before anybody can hear of the session. By then the
// connection is authenticated, too.
func (c *conn) sniff(p []byte) error {
	complete, err := c.answer.add(p)
	if err != nil || !complete {
		return err
	}
	session, timeout, err := c.answer.session()
	if err != nil {
		return err
	}
	c.replies.buffered = bufio.NewReader(c.Conn)
	if session == 0 { // it has expired
		c.answered = true
		c.dialer.succeeded(nil)
		return nil
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	c.answered = true
	c.dialer.succeeded(&Handshake{Session: session, Began: c.began, Timeout: timeout})
	return nil
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

// An answer is as much of the server's answer as was read.
type answer struct {
	head [answerHead]byte
	read int
}

// add takes the next bytes, and reports whether those were the last.
func (a *answer) add(p []byte) (complete bool, err error) {
	if a.read < answerHead {
		copy(a.head[a.read:], p)
	}
	a.read += len(p)
	if a.read < answerLength {
		return false, nil
	}
	length := int(binary.BigEndian.Uint32(a.head[:]))
	if length < answerHead-answerLength || length > answerLimit {
		return false, errNotZooKeeper
	}
	return a.read >= answerLength+length, nil
}

// session returns what a complete answer tells, session 0 if the session has expired, or
// why it tells of none.
func (a *answer) session() (session int64, timeout time.Duration, err error) {
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
