package dial

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-zookeeper/zk"
)

// A SASL authenticates connections by ZooKeeper's request 102.
type SASL struct {
	// Name is the mechanism's and the principal's, for errors and logs.
	Name string
	// Begin begins an exchange with a host, as it was dialled.
	Begin func(host string) (SASLStep, error)
}

// A SASLStep answers a challenge, which is nil where the first message is the client's.
// With done, that answer is the last one, and nil if nothing more is to be sent.
type SASLStep func(challenge []byte) (response []byte, done bool, err error)

// An exchange has at most so many messages of ours, and each of the server's at most so
// many bytes. Kerberos has three, with the tickets of a user of many groups among them.
const (
	saslMessages = 16
	saslLimit    = 128 << 10
)

// What a server answers to whom it refuses; the second to those who had to authenticate
// and did not, by sessionRequireClientSASLAuth or enforce.auth.
const (
	codeAuthFailed      = -115
	codeUnauthenticated = -124
)

// A saslHungUp is the end of a connection within an exchange.
type saslHungUp struct{ error }

func (h saslHungUp) Unwrap() error { return h.error }

// authenticate has the server know who the client is, before zk can send anything, and
// within the time for the handshake: the deadlines that zk has set are bound to that.
func (c *conn) authenticate() error {
	sasl := c.dialer.config.SASL
	if sasl == nil {
		return nil
	}
	if err := c.exchange(sasl); err != nil {
		return fmt.Errorf("SASL with %s: %w", sasl.Name, err)
	}
	return nil
}

func (c *conn) exchange(sasl *SASL) error {
	host, _, err := net.SplitHostPort(c.server)
	if err != nil {
		return err
	}
	var step SASLStep
	err = c.mechanism(func() (err error) {
		step, err = sasl.Begin(host)
		return err
	})
	if err != nil {
		return err
	}
	var challenge []byte
	for message := range int32(saslMessages) {
		var response []byte
		var done bool
		err := c.mechanism(func() (err error) {
			response, done, err = step(challenge)
			return err
		})
		if err != nil || done && response == nil {
			return err
		}
		challenge, err = c.askSASL(message, response)
		switch {
		case err != nil || done:
			return err
		case challenge == nil && message == 0:
			return fmt.Errorf("the server does not use SASL, or not for clients: "+
				"it has no JAAS login, see its log (%w)", zk.ErrAuthFailed)
		case challenge == nil:
			return fmt.Errorf("the server ended the exchange early, as one does with "+
				"allowSaslFailedClients that refuses a login (%w)", zk.ErrAuthFailed)
		}
	}
	return malformed{fmt.Errorf("the server had more than %d challenges", saslMessages)}
}

// mechanism calls what may not heed any time: Kerberos asks its own servers. A call that
// takes too long is left behind.
func (c *conn) mechanism(call func() error) error {
	ctx, cancel := context.WithDeadlineCause(c.dialer.ctx, c.until, errSlowMechanism)
	defer cancel()
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errSlowMechanism = errors.New("the mechanism took all the time for the handshake")

// askSASL sends a message and returns the answer, nil if it is null.
func (c *conn) askSASL(xid int32, token []byte) (answer []byte, err error) {
	const afterLength = requestHead + lengthSize
	p := make([]byte, afterLength, afterLength+len(token))
	binary.BigEndian.PutUint32(p, uint32(afterLength-lengthSize+len(token)))
	binary.BigEndian.PutUint32(p[requestXid:], uint32(xid))
	binary.BigEndian.PutUint32(p[requestOp:], opSASL)
	binary.BigEndian.PutUint32(p[requestHead:], uint32(len(token)))
	if _, err := c.Conn.Write(append(p, token...)); err != nil {
		return nil, saslFailed(err)
	}
	var head [replyHead]byte
	if _, err := io.ReadFull(c.replies.buffered, head[:]); err != nil {
		return nil, saslFailed(err)
	}
	announced, limit := int(number(head[:])), min(saslLimit, c.dialer.config.MaxReply)
	switch code := number(head[replyError:]); {
	case announced < replyHead-lengthSize || announced > limit:
		return nil, malformed{fmt.Errorf("the server's answer has %d bytes: must be "+
			"from %d to %d", announced, replyHead-lengthSize, limit)}
	case number(head[replyXid:]) != xid:
		return nil, malformed{fmt.Errorf("the server answers request %d instead of %d",
			number(head[replyXid:]), xid)}
	case code == codeAuthFailed || code == codeUnauthenticated:
		return nil, fmt.Errorf("the server refuses it: the user is not known, or the "+
			"credentials are wrong or not valid any more (%w)", zk.ErrAuthFailed)
	case code != 0:
		return nil, fmt.Errorf("the server refuses it with error code %d; does it "+
			"know SASL? (%w)", code, zk.ErrAuthFailed)
	}
	return c.readToken(announced + lengthSize - replyHead)
}

// readToken reads the body of an answer, which has a token, or null, and nothing else.
func (c *conn) readToken(size int) ([]byte, error) {
	p := make([]byte, size)
	if _, err := io.ReadFull(c.replies.buffered, p); err != nil {
		return nil, saslFailed(err)
	}
	b := body{rest: p}
	n := int(b.number("token"))
	switch {
	case b.wrong != nil:
		return nil, malformed{b.wrong}
	case n == -1 && len(b.rest) == 0:
		return nil, nil
	case n != len(b.rest):
		return nil, malformed{fmt.Errorf("token: has the length %d in %d bytes", n,
			len(b.rest))}
	}
	return b.rest, nil
}

// saslFailed adds to the end of a connection what may be the reason.
func saslFailed(err error) error {
	if isHangUp(err) {
		return saslHungUp{fmt.Errorf("the server hung up, does it know SASL? (%w)", err)}
	}
	return err
}

// unauthenticated takes note that the server has refused a request for want of
// authentication. It hangs up by itself.
func (c *conn) unauthenticated() {
	err := fmt.Errorf("%s: the server requires authentication "+
		"(sessionRequireClientSASLAuth or enforce.auth): %w", c.server, zk.ErrAuthFailed)
	c.dialer.config.Log.Error("zookeeper: the server requires authentication",
		"server", c.server, "advice", "set WithSASL; or WithAuth, where enforce.auth "+
			"takes its scheme")
	c.dialer.attempts.cutOff(err)
}
