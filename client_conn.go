package recipes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"
)

// The head of the answer to a handshake: its length, the protocol's version, the session timeout in milliseconds, and
// the session's id.
const (
	answerLength  = 4
	answerVersion = 4
	answerTimeout = 8
	answerSession = 12
	answerHead    = 20
)

// answerLimit bounds the length of an answer that is believed; real ones have 36 or 37 bytes. zk takes the first four
// bytes of whatever it connected to for a length, and allocates it: "HTTP" is 1.2 GB.
const answerLimit = 256

var errNotZooKeeper = errors.New("the server's answer is not ZooKeeper's; does it want TLS?")

// clientConn is a connection of zk's. It bounds its handshake, reads in it which session timeout the server grants, and
// after that costs a call nothing.
type clientConn struct {
	net.Conn          // what zk talks through: raw, or TLS over it
	raw      net.Conn // what Close closes
	dialer   *clientDialer
	address  string
	began    time.Time // when the server was reached
	until    time.Time // when the handshake must have ended

	// The rest belongs to zk's goroutine that connects, which starts those that read and write after the handshake.
	answered bool // the handshake's answer was read completely
	head     [answerHead]byte
	read     int
}

// Close leaves TLS out: its farewell can block for five seconds on a peer that has stopped reading, and means nothing
// to ZooKeeper, which has one of its own.
func (c *clientConn) Close() error { return c.raw.Close() }

func (c *clientConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.answered {
		return n, err
	}
	if n > 0 {
		err = c.sniff(p[:n])
	}
	if err != nil {
		switch {
		case !hungUp(err):
		case c.dialer.tls == nil:
			err = fmt.Errorf("the server hung up, is it serving, and without TLS? (%w)", err)
		default:
			err = fmt.Errorf("the server hung up, is it serving? (%w)", err)
		}
		c.dialer.failed(c.address, fmt.Errorf("handshake: %w", err))
		return 0, err
	}
	return n, nil
}

// Write reports a failure after the handshake only by closing the connection. That makes zk's reader fail, which
// answers what was sent with zk.ErrConnectionClosed; given the error, zk would return it raw, and if what it sent was
// a credential, answer that twice, into a channel that holds one answer, with its lock held for ever.
func (c *clientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	switch {
	case err == nil:
		return n, nil
	case !c.answered:
		c.dialer.failed(c.address, fmt.Errorf("handshake: %w", err))
		return n, err
	}
	c.dialer.log.Debug("zookeeper: write failed", "server", c.address, "error", err)
	c.raw.Close()
	return len(p), nil
}

func (c *clientConn) SetReadDeadline(t time.Time) error {
	return c.Conn.SetReadDeadline(c.bound(t))
}

func (c *clientConn) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(c.bound(t))
}

// bound keeps zk's deadlines, which include none at all for most of the answer, within the handshake's. What it leaves
// behind harms nothing: zk sets a new one before each read and write.
func (c *clientConn) bound(t time.Time) time.Time {
	if !c.answered && (t.IsZero() || t.After(c.until)) {
		return c.until
	}
	return t
}

// sniff looks at the next bytes of the server's answer. The session timeout is known before zk has read the last of
// them, and so before anybody can hear of the session.
func (c *clientConn) sniff(p []byte) error {
	if c.read < answerHead {
		copy(c.head[c.read:], p)
	}
	c.read += len(p)
	if c.read < answerLength {
		return nil
	}
	length := int(binary.BigEndian.Uint32(c.head[:]))
	if length < answerHead-answerLength || length > answerLimit {
		return errNotZooKeeper
	}
	if c.read < answerLength+length {
		return nil
	}
	if err := c.believe(); err != nil {
		return err
	}
	c.answered = true
	c.dialer.succeeded()
	return nil
}

// believe takes note of the session that the answer tells, or says why it is none.
func (c *clientConn) believe() error {
	version := int32(binary.BigEndian.Uint32(c.head[answerVersion:]))
	granted := int32(binary.BigEndian.Uint32(c.head[answerTimeout:]))
	session := int64(binary.BigEndian.Uint64(c.head[answerSession:]))
	switch {
	case version != 0, session == -1:
		// ClickHouse Keeper says so (KeeperTCPHandler::sendHandshake) and hangs up. zk would
		// take it for a session, forget the one it had, and dial on without a pause.
		return fmt.Errorf("the server turns clients away, as one does that has no leader "+
			"(protocol version %d, session %d)", version, session)
	case session == 0: // the session has expired
		return nil
	case granted < 1:
		return fmt.Errorf("the server grants a session timeout of %d ms", granted)
	}
	c.dialer.last.Store(&handshake{
		session: session, began: c.began, granted: time.Duration(granted) * time.Millisecond,
	})
	return nil
}
