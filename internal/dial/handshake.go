package dial

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/wire"
)

// A Handshake is one that gave a session, or resumed it.
type Handshake struct {
	Session int64
	// Began is when the server was reached, before anything was sent to it.
	Began time.Time
	// Timeout is the session timeout that the server granted.
	Timeout time.Duration
}

// conn is a connection of zk's. It bounds the handshake, reads the server's answer before
// zk does, and authenticates (sasl.go). After that a wire.Stream records each request and
// checks each reply.
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
	resumes  int64       // the session that zk asks for; 0: a new one
	seen     int64       // the zxid that the history is compared with; 0: it is not
	answered bool        // the answer was read
	answer   wire.Answer // the part that zk has not read
	over     bool        // the answer says that the session has expired

	stream *wire.Stream // what follows the answer; nil before that

	// Of zk's goroutine that reads: how long it waits for a reply.
	readWithin time.Duration
}

// Close leaves TLS out: its last message can block for five seconds on a peer that has
// stopped reading, and means nothing to ZooKeeper, which has a close of its own.
func (c *conn) Close() error { return c.raw.Close() }

func (c *conn) Read(p []byte) (int, error) {
	if c.answered && len(c.answer) == 0 {
		return c.stream.Read(p)
	}
	if !c.answered { // zk's first read after its handshake
		if err := c.shake(); err != nil {
			err = c.hint(err)
			c.dialer.failed(c.server, fmt.Errorf("handshake: %w", err))
			if wire.IsHangUp(err) {
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
	case !wire.IsHangUp(err), errors.As(err, new(saslHungUp)):
		return err
	case c.dialer.config.TLS == nil:
		return hungUp("is it serving, and without TLS?", err)
	default:
		return hungUp("is it serving?", err)
	}
}

// hungUp says why a server may have ended a connection without a word, as it does when
// its clients from this address are too many.
func hungUp(question string, err error) error {
	return fmt.Errorf(
		"the server hung up, %s Or is its maxClientCnxns reached? (%w)", question, err,
	)
}

// Write reports a failure after the handshake only by closing the connection. That makes
// zk's reader fail, which answers what was sent with zk.ErrConnectionClosed. Given the
// error, zk would return it as it is. If what it sent was a credential, it would answer
// that twice, into a channel that holds one answer, and so hold its lock forever
// (go-zookeeper/zk#163).
func (c *conn) Write(p []byte) (int, error) {
	sends := p
	if c.answered {
		c.stream.Sending(p)
	} else {
		var seen int64
		c.resumes, seen = wire.Asked(p)
		// A server hangs up on a client that has seen nothing for another reason.
		if c.resumes != 0 && seen != 0 && c.dialer.compares() {
			c.seen, sends = seen, wire.AsNew(p)
		}
	}
	n, err := c.Conn.Write(sends)
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
	if !t.IsZero() {
		c.readWithin = time.Until(t)
	}
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

// shake reads the server's answer to the handshake. The session timeout is known before
// zk has read any of it, and so before anybody can hear of the session. By then the
// connection is authenticated, too.
//
// A server that gives another session than the one that was asked for, as ClickHouse
// Keeper does at each reconnect, has ended that one as far as the client is concerned. zk
// would go on as if nothing had happened, with watches that no server has. So zk reads
// what ZooKeeper would say, that the session has expired, and asks for a new one.
func (c *conn) shake() error {
	a, err := wire.ReadAnswer(c.Conn)
	if err != nil {
		return err
	}
	session, timeout, err := a.Session()
	if err != nil {
		return err
	}
	c.stream = wire.NewStream(c.Conn, c.dialer.config.MaxReply, c)
	if c.seen != 0 {
		return c.compare(a)
	}
	if c.resumes != 0 && session != c.resumes {
		session = 0
	}
	if session == 0 {
		c.expire(a)
		return nil
	}
	if !a.HasPassword() { // only a Keeper gives none
		c.stream.ExpectSilence()
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	// From here on zk can read the answer, and its callers hear of the session.
	c.answered, c.answer = true, a
	c.dialer.succeeded(&Handshake{Session: session, Began: c.began, Timeout: timeout})
	return nil
}

// expire has zk read that its session has expired.
func (c *conn) expire(a wire.Answer) {
	a.Expire()
	c.answered, c.answer, c.over = true, a, true
	c.dialer.succeeded(nil)
}

// Created is of a wire.Listener, like those that follow.
func (c *conn) Created(path string, zxid int64) { c.dialer.creates.note(path, zxid) }

// TooLong logs a reply that is skipped: the error of its request is only a number to zk.
func (c *conn) TooLong(request string, bytes int) {
	c.dialer.config.Log.Warn("zookeeper: reply too long, skipped",
		"server", c.server, "request", request, "bytes", bytes,
		"limit", c.dialer.config.MaxReply, "advice", "set WithMaxReply")
}

// Skipping gives each part of a reply that is skipped the time of one read.
func (c *conn) Skipping() { _ = c.Conn.SetReadDeadline(time.Now().Add(c.readWithin)) }

// Malformed ends a connection on which the server has sent what it may not.
func (c *conn) Malformed(why error) {
	c.dialer.config.Log.Warn("zookeeper: malformed reply, connection cut",
		"server", c.server, "error", why)
	c.dialer.attempts.cutOff(fmt.Errorf("%s: %w", c.server, why))
	c.raw.Close()
}

// Unauthenticated records that the server has rejected a request for lack of
// authentication. The server hangs up by itself.
func (c *conn) Unauthenticated() {
	err := fmt.Errorf("%s: the server requires authentication "+
		"(sessionRequireClientSASLAuth or enforce.auth): %w", c.server, zk.ErrAuthFailed)
	c.dialer.config.Log.Error("zookeeper: the server requires authentication",
		"server", c.server, "advice", "set WithSASL; or WithAuth, where enforce.auth "+
			"takes its scheme")
	c.dialer.attempts.cutOff(err)
}

// compare ends an attempt that has asked for a new session in place of zk's. It returns
// an error, and leaves the rest to the next attempts, unless the ensemble's history is
// older than what zk has seen.
//
// Servers hang up without a word on a client that has seen a later zxid than theirs. A
// server that lags will catch up. But an ensemble that has come back empty, or from an
// older snapshot, would not for years: it would never get this client back, while a new
// one connects at once.
//
// So once servers have hung up for a whole session timeout, one attempt asks for a new
// session, as a client that has seen nothing, and then for the ensemble's zxid. A new
// session is a transaction, and a sync is answered by the leader. So in the history that
// this client knows, that zxid is no less than what it has seen, even through a server
// that lags. If it is less, this is another history, in which the client's session means
// nothing; by the client's clock it has ended as well. zk reads that it has expired, and
// forgets the zxid with it.
func (c *conn) compare(a wire.Answer) error {
	if err := c.authenticate(); err != nil {
		return err
	}
	zxid, err := c.stream.AskZxid(c.Conn)
	switch {
	case err != nil:
		return fmt.Errorf("in a new session: %w", err)
	case zxid <= 0 || zxid >= c.seen: // the history is the same, or no server has it
		return fmt.Errorf("the servers hang up, but give new sessions, and have come "+
			"as far as this client (zxid 0x%x)", zxid)
	}
	c.dialer.config.Log.Error("zookeeper: the ensemble's history is older than what "+
		"this client has seen: fencing tokens start over", "server", c.server,
		"zxid", fmt.Sprintf("0x%x", zxid), "seen", fmt.Sprintf("0x%x", c.seen),
		"cause", "it has come back empty, or was restored from an older snapshot, or a "+
			"server has forged what this client has seen",
		"advice", "reset what your stores have recorded of fencing tokens")
	c.expire(a)
	return nil
}
