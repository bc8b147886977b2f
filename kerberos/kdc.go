package kerberos

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// A ticket is one with the key that makes it worth something.
type ticket struct {
	messages.Ticket
	key       types.EncryptionKey
	end       time.Time // when it expires
	renewTill time.Time // until when it can be renewed; zero if it cannot
}

func (t ticket) valid() bool { return time.Now().Before(t.end) }

func newTicket(r messages.KDCRepFields) ticket {
	d := r.DecryptedEncPart
	return ticket{Ticket: r.Ticket, key: d.Key, end: d.EndTime, renewTill: d.RenewTill}
}

// logIn gets a ticket-granting ticket by a keytab. Not by client.Login, which starts a
// goroutine that renews it forever.
func (l *login) logIn(c *config.Config, keys *keytab.Keytab) (t ticket, err error) {
	c.LibDefaults.DefaultTktEnctypeIDs = keytabTypes(keys, l.user)
	name := l.user.name.PrincipalNameString()
	asker := client.NewWithKeytab(name, l.user.realm, keys, c)
	err = guarded(func() error {
		request, err := messages.NewASReqForTGT(l.user.realm, c, l.user.name)
		if err != nil {
			return err
		}
		reply, err := asker.ASExchange(l.user.realm, request, 0)
		t = newTicket(reply.KDCRepFields)
		return err
	})
	return t, l.explain(err, granting(l.user.realm))
}

// request gets a ticket for a service, or renews the one that it has for it, from the KDC
// of a realm.
func (l *login) request(
	c *config.Config, with ticket, service types.PrincipalName, realm string, renew bool,
) (t ticket, err error) {
	name := l.user.name.PrincipalNameString()
	asker := client.NewWithPassword(name, l.user.realm, "", c)
	defer asker.Destroy() // it may have followed referrals, and then renews their tickets
	err = guarded(func() error {
		_, reply, err := asker.TGSREQGenerateAndExchange(
			service, realm, with.Ticket, with.key, renew)
		t = newTicket(reply.KDCRepFields)
		return err
	})
	return t, l.explain(err, service)
}

// These are the errors of a KDC that have a remedy to be named (RFC 4120, section 7.5.9).
const (
	clientUnknown      = "6"
	serverUnknown      = "7"
	preauthFailed      = "24"
	serviceUnavailable = "29"
	clockSkew          = "37"
)

// A rejection is what a KDC answers that gives no ticket.
type rejection struct {
	code string
	text string
}

func (r *rejection) Error() string { return r.text }

// An unreachable KDC is one that does not answer, or not as a KDC does.
type unreachable struct{ error }

func (u unreachable) Unwrap() error { return u.error }

func isUnreachable(err error) bool { return errors.As(err, new(unreachable)) }

// isRejected reports whether a KDC may have rejected the ticket that it was given.
func isRejected(err error) bool {
	var r *rejection
	return errors.As(err, &r) && r.code != serverUnknown
}

// gokrb5 has the number and the name of a KDC's error in the text alone.
var inText = regexp.MustCompile(`KRB Error: (?:\((\d+)\) (\w+)|Unknown ErrorCode (\d+))`)

// explain says what an error of gokrb5 means.
func (l *login) explain(err error, service types.PrincipalName) error {
	if err == nil {
		return nil
	}
	var failure krberror.Krberror
	found := inText.FindStringSubmatch(err.Error())
	switch errors.As(err, &failure); {
	case found != nil && found[1] == serviceUnavailable:
		return unreachable{errors.New("the KDC is unavailable")}
	case found != nil:
		return permanent(l.rejected(found[1]+found[3], found[2], service))
	case failure.RootCause == krberror.DecryptingError:
		return permanent(l.rejected(preauthFailed, "", service))
	case strings.Contains(err.Error(), "clock skew"):
		return permanent(l.rejected(clockSkew, "", service))
	case failure.RootCause == krberror.NetworkingError:
		return unreachable{fmt.Errorf("the KDC does not answer: %w", err)}
	}
	return unreachable{fmt.Errorf("the KDC's answer is not valid: %w", err)}
}

func (l *login) rejected(code, name string, service types.PrincipalName) error {
	r := &rejection{code: code}
	switch code {
	case clientUnknown:
		r.text = fmt.Sprintf("the KDC does not know %s", l.user)
	case serverUnknown:
		r.text = fmt.Sprintf("the KDC does not know the server %s; the connect string "+
			"must have the server's name in Kerberos", service.PrincipalNameString())
	case preauthFailed:
		r.text = fmt.Sprintf("the KDC rejects the key of %s: the keytab is wrong, or "+
			"older than the last change of the key", l.user)
	case clockSkew:
		r.text = "the clocks of this machine and of the KDC differ too much; set them"
	default:
		r.text = fmt.Sprintf("the KDC rejects %s with error %s %s", l.user, code, name)
	}
	return r
}
