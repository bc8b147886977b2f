package kerberos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
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

// logIn gets a ticket-granting ticket by a keytab. Not by gokrb5's client, which
// allocates what a reply announces, knows no ctx, and starts a goroutine that renews the
// ticket forever.
func (l *login) logIn(
	ctx context.Context, c *config.Config, keys *keytab.Keytab,
) (t ticket, err error) {
	c.LibDefaults.DefaultTktEnctypeIDs = keytabTypes(keys, l.user)
	err = guarded(func() error {
		reply, err := l.authenticate(ctx, c, keys)
		t = newTicket(reply.KDCRepFields)
		return err
	})
	return t, l.explain(err, granting(l.user.realm))
}

// authenticate makes the exchange with the authentication service (RFC 4120, section
// 3.1). A KDC that wants a proof of the key first says so, and of which key.
func (l *login) authenticate(
	ctx context.Context, c *config.Config, keys *keytab.Keytab,
) (reply messages.ASRep, err error) {
	request, err := messages.NewASReqForTGT(l.user.realm, c, l.user.name)
	if err != nil {
		return reply, err
	}
	// The reply then proves that nobody has changed the request (RFC 6806, section 11).
	request.PAData = append(request.PAData, types.PAData{
		PADataType: patype.PA_REQ_ENC_PA_REP,
	})
	answer, err := send(ctx, c, l.user.realm, &request)
	var refused messages.KRBError
	if errors.As(err, &refused) && refused.ErrorCode == proofRequired {
		proof, err := l.proof(keys, refused)
		if err != nil {
			return reply, err
		}
		request.PAData = append(request.PAData, proof)
		answer, err = send(ctx, c, l.user.realm, &request)
		if err != nil {
			return reply, err
		}
	} else if err != nil {
		return reply, err
	}
	if err := reply.Unmarshal(answer); err != nil {
		return reply, err
	}
	user := credentials.NewFromPrincipalName(l.user.name, l.user.realm)
	_, err = reply.Verify(c, user.WithKeytab(keys), request)
	return reply, err
}

// proof is the time, encrypted with the key that the KDC asks for (RFC 4120, section
// 5.2.7.2).
func (l *login) proof(
	keys *keytab.Keytab, refused messages.KRBError,
) (proof types.PAData, err error) {
	enctype, err := wanted(refused)
	if err != nil {
		return proof, err
	}
	key, version, err := keys.GetEncryptionKey(l.user.name, l.user.realm, 0, enctype)
	if err != nil {
		return proof, err
	}
	now, err := types.GetPAEncTSEncAsnMarshalled()
	if err != nil {
		return proof, err
	}
	encrypted, err := crypto.GetEncryptedData(
		now, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, version)
	if err != nil {
		return proof, err
	}
	value, err := encrypted.Marshal()
	return types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value}, err
}

// wanted is the kind of key that a KDC wants a proof of. It lists them best first, and no
// others than the request has named: so the keytab has it.
func wanted(refused messages.KRBError) (enctype int32, err error) {
	var methods types.PADataSequence
	if err := methods.Unmarshal(refused.EData); err != nil {
		return 0, err
	}
	for _, m := range methods {
		if m.PADataType != patype.PA_ETYPE_INFO2 {
			continue
		}
		infos, err := m.GetETypeInfo2()
		if err != nil {
			return 0, err
		}
		for _, info := range infos {
			if slices.Contains(enctypes, info.EType) {
				return info.EType, nil
			}
		}
	}
	return 0, errors.New("the KDC asks for no AES key")
}

// referralsAtMost bounds how many realms may send us on to the next.
const referralsAtMost = 5

// request gets a ticket for a service, or renews the one that it has for it, from the KDC
// of a realm, which may refer us to another realm's (RFC 6806, section 8).
func (l *login) request(
	ctx context.Context, c *config.Config, with ticket, service types.PrincipalName,
	realm string, renew bool,
) (t ticket, err error) {
	err = guarded(func() error {
		for range 1 + referralsAtMost {
			t, err = l.grantedBy(ctx, c, with, service, realm, renew)
			names := t.SName.NameString
			if err != nil || t.SName.Equal(service) || len(names) == 0 ||
				names[0] != "krbtgt" {
				return err
			}
			with, realm = t, names[len(names)-1]
		}
		return errors.New("one realm's KDC refers to the next for too long")
	})
	return t, l.explain(err, service)
}

// grantedBy makes one exchange with a ticket-granting service (RFC 4120, section 3.3).
func (l *login) grantedBy(
	ctx context.Context, c *config.Config, with ticket, service types.PrincipalName,
	realm string, renew bool,
) (t ticket, err error) {
	request, err := messages.NewTGSReq(
		l.user.name, realm, c, with.Ticket, with.key, service, renew)
	if err != nil {
		return t, err
	}
	answer, err := send(ctx, c, realm, &request)
	if err != nil {
		return t, err
	}
	var reply messages.TGSRep
	if err := reply.Unmarshal(answer); err != nil {
		return t, err
	}
	if err := reply.DecryptEncPart(with.key); err != nil {
		return t, err
	}
	_, err = reply.Verify(c, request)
	return newTicket(reply.KDCRepFields), err
}

// send encodes a request and asks the KDCs of a realm.
func send(
	ctx context.Context, c *config.Config, realm string,
	request interface{ Marshal() ([]byte, error) },
) ([]byte, error) {
	message, err := request.Marshal()
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, realm, message)
}

// These are the errors of a KDC that mean something here (RFC 4120, section 7.5.9).
const (
	clientUnknown      = errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN
	serverUnknown      = errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN
	preauthFailed      = errorcode.KDC_ERR_PREAUTH_FAILED
	proofRequired      = errorcode.KDC_ERR_PREAUTH_REQUIRED
	serviceUnavailable = errorcode.KDC_ERR_SVC_UNAVAILABLE
	clockSkew          = errorcode.KRB_AP_ERR_SKEW
)

// A rejection is what a KDC answers that gives no ticket.
type rejection struct {
	code int32
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

// explain says what an error of an exchange means.
func (l *login) explain(err error, service types.PrincipalName) error {
	var failure krberror.Krberror
	var refused messages.KRBError
	switch {
	case err == nil || isUnreachable(err):
		return err
	case errors.As(err, &refused) && refused.ErrorCode == serviceUnavailable:
		return unreachable{errors.New("the KDC is unavailable")}
	case errors.As(err, &refused):
		return permanent(l.rejected(refused.ErrorCode, service))
	case errors.As(err, &failure) && failure.RootCause == krberror.DecryptingError:
		return permanent(l.rejected(preauthFailed, service))
	case strings.Contains(err.Error(), "clock skew"):
		return permanent(l.rejected(clockSkew, service))
	}
	return unreachable{fmt.Errorf("the KDC's answer is not valid: %w", err)}
}

func (l *login) rejected(code int32, service types.PrincipalName) error {
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
		name := strings.TrimPrefix(errorcode.Lookup(code), fmt.Sprintf("(%d) ", code))
		r.text = fmt.Sprintf("the KDC rejects %s with error %d %s", l.user, code, name)
	}
	return r
}
