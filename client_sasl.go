package recipes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/dial"
	"github.com/zkrecipes/recipes/internal/digestmd5"
)

// SASL is a mechanism for [WithSASL]: [SASLDigestMD5], or module kerberos. After an error
// of Begin or Step the next server is tried; one that matches zk.ErrAuthFailed is
// permanent: Connect returns it at once.
type SASL interface {
	// Begin begins an exchange at each handshake. host is as dialled, without the port.
	// ctx ends with the handshake's time (at first a third of the session timeout, 1s to
	// 15s), which Begin and all Steps share, or when the Client is closed: a call that
	// goes on after that is not waited for.
	Begin(ctx context.Context, host string) (SASLExchange, error)
	// Name is for errors and logs: the mechanism and the principal, without secrets.
	Name() string
}

// A SASLExchange is one exchange with one server. It is used once.
type SASLExchange interface {
	// Step answers a challenge. The first one is nil: the client begins. If done is true,
	// the response is the last message, or nil if nothing more is to be sent. ctx is as
	// for Begin.
	Step(ctx context.Context, challenge []byte) (response []byte, done bool, err error)
}

// WithSASL authenticates the session by SASL, at each handshake and before any request is
// sent. Use it if the servers require SASL (sessionRequireClientSASLAuth, enforce.auth),
// or for ACLs with scheme sasl. SASL does not encrypt: use [WithTLS] as well. If a server
// rejects the credentials, or does not use SASL, Connect fails at once with an error that
// matches zk.ErrAuthFailed and names the mechanism and the principal. At a reconnect this
// is logged at Error, and the next server is tried.
func WithSASL(s SASL) ClientOption {
	return setter[clientSettings](func(settings *clientSettings) error {
		if isNil(s) {
			return errors.New("WithSASL: the SASL is nil")
		}
		if d, ok := s.(digestLogin); ok && (d.user == "" || d.password() == "") {
			return errors.New("WithSASL: SASLDigestMD5: user or password is empty")
		}
		settings.sasl = &dial.SASL{Name: s.Name(), Begin: saslBegin(s)}
		return nil
	})
}

func saslBegin(s SASL) func(ctx context.Context, host string) (dial.SASLStep, error) {
	return func(ctx context.Context, host string) (dial.SASLStep, error) {
		exchange, err := s.Begin(ctx, host)
		if err != nil {
			return nil, err
		}
		if exchange == nil {
			return nil, errors.New("Begin returned neither an exchange nor an error")
		}
		return exchange.Step, nil
	}
}

// SASLDigestMD5 authenticates as a user with a password by DIGEST-MD5 (RFC 2831), for
// servers with org.apache.zookeeper.server.auth.DigestLoginModule in their JAAS
// configuration. The id in ACLs is sasl:username. The server must prove that it knows the
// password, too. Neither errors nor logs contain it. An empty user name or password is an
// error of WithSASL.
func SASLDigestMD5(username, password string) SASL {
	return digestLogin{user: username, password: func() string { return password }}
}

// digestService is the name by which ZooKeeper's servers and clients go.
const digestService = "zookeeper/zk-sasl-md5"

// A digestLogin has the password in a function, which no format prints.
type digestLogin struct {
	user     string
	password func() string
}

// Name implements [SASL].
func (d digestLogin) Name() string { return fmt.Sprintf("DIGEST-MD5 as %q", d.user) }

// Begin implements [SASL].
func (d digestLogin) Begin(context.Context, string) (SASLExchange, error) {
	return &digestExchange{client: digestmd5.Client{
		User: d.user, Password: d.password(), URI: digestService, Nonce: rand.Text(),
	}}, nil
}

// A digestExchange counts the messages of the server's.
type digestExchange struct {
	client digestmd5.Client
	heard  int
}

// Step implements [SASLExchange]. What is wrong with the server's messages is so at each
// try.
func (x *digestExchange) Step(
	_ context.Context, challenge []byte,
) (response []byte, done bool, err error) {
	if challenge == nil {
		return []byte{}, false, nil
	}
	x.heard++
	if x.heard == 1 {
		response, err = x.client.Answer(challenge)
	} else {
		done, err = true, x.client.Confirm(challenge)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w (%w)", err, zk.ErrAuthFailed)
	}
	return response, done, nil
}
