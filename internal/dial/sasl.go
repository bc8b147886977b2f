package dial

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/wire"
)

// A SASL authenticates connections by ZooKeeper's request 102.
type SASL struct {
	// Name is the mechanism's and the principal's, for errors and logs.
	Name string
	// Begin begins an exchange with a host, as it was dialled. ctx bounds the handshake.
	Begin func(ctx context.Context, host string) (SASLStep, error)
}

// A SASLStep answers a challenge, which is nil if the first message is the client's.
// With done, that answer is the last one, and nil if nothing more is to be sent. ctx
// bounds the handshake.
type SASLStep func(
	ctx context.Context, challenge []byte,
) (response []byte, done bool, err error)

// An exchange has at most so many messages of ours. Kerberos has three.
const saslMessages = 16

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
	ctx, cancel := context.WithDeadlineCause(c.dialer.ctx, c.until, errSlowMechanism)
	defer cancel()
	var step SASLStep
	err = within(ctx, "the mechanism", func() (err error) {
		step, err = sasl.Begin(ctx, host)
		return err
	})
	if err != nil {
		return err
	}
	var challenge []byte // nil at first: the client begins, if only with no bytes
	for message := range int32(saslMessages) {
		var response []byte
		var done bool
		err := within(ctx, "the mechanism", func() (err error) {
			response, done, err = step(ctx, challenge)
			return err
		})
		if err != nil || done && response == nil { // the server has had the last word
			return err
		}
		challenge, err = c.stream.AskSASL(c.Conn, message, response)
		switch {
		case err != nil || done:
			return saslFailed(err)
		case challenge == nil && message == 0:
			return fmt.Errorf("the server does not use SASL, or not for clients: "+
				"it has no JAAS login, see its log (%w)", zk.ErrAuthFailed)
		case challenge == nil:
			return fmt.Errorf("the server ended the exchange early, as one does with "+
				"allowSaslFailedClients that refuses a login (%w)", zk.ErrAuthFailed)
		}
	}
	return wire.Malformed{
		Err: fmt.Errorf("the server had more than %d challenges", saslMessages),
	}
}

var errSlowMechanism = errors.New("the mechanism took all the time for the handshake")

// saslFailed adds to the end of a connection what may be the reason.
func saslFailed(err error) error {
	if wire.IsHangUp(err) {
		return saslHungUp{fmt.Errorf("the server hung up, does it know SASL? (%w)", err)}
	}
	return err
}
