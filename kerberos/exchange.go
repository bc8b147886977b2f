package kerberos

import (
	"context"
	"encoding/asn1"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// An exchange is one with one server: our ticket, the server's proof that it could read
// it, an empty message, the server's offer of security layers, our choice of none
// (RFC 4752, section 3.1).
type exchange struct {
	login  *login
	server string // for errors
	ticket ticket

	messages      int // that we have sent
	authenticator types.Authenticator
	key           types.EncryptionKey // of the session
	wrapFlags     byte                // of our own token
}

// Step implements [recipes.SASLExchange]. What is wrong with the server's messages is so
// at each try.
func (x *exchange) Step(
	_ context.Context, challenge []byte,
) (response []byte, done bool, err error) {
	err = guarded(func() (err error) {
		switch x.messages {
		case 0:
			response, err = x.initial()
		case 1:
			response, err = []byte{}, x.confirm(challenge)
		default:
			done = true
			response, err = x.choose(challenge)
		}
		return err
	})
	x.messages++
	if err != nil {
		return nil, false, permanent(fmt.Errorf("%s: %w", x.server, err))
	}
	return response, done, nil
}

// These begin the messages of Kerberos in GSS-API (RFC 4121, section 4.1).
const (
	tokenRequest = "\x01\x00"
	tokenReply   = "\x02\x00"
)

// mechanism is Kerberos'.
var mechanism = asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2}

// initial is the message with the ticket. The server has to prove itself, too.
func (x *exchange) initial() ([]byte, error) {
	a, err := types.NewAuthenticator(x.login.user.realm, x.login.user.name)
	if err != nil {
		return nil, err
	}
	a.CTime = a.CTime.Add(x.login.skew)
	a.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: contextFlags()}
	request, err := messages.NewAPReq(x.ticket.Ticket, x.ticket.key, a)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&request.APOptions, flags.APOptionMutualRequired)
	body, err := request.Marshal()
	if err != nil {
		return nil, err
	}
	token, err := asn1.Marshal(mechanism)
	if err != nil {
		return nil, err
	}
	x.authenticator = a
	token = append(append(token, tokenRequest...), body...)
	return asn1tools.AddASNAppTag(token, 0), nil
}

// contextFlags is the authenticator's checksum (RFC 4121, section 4.1.1), without channel
// bindings.
func contextFlags() []byte {
	const bindings = 16
	sum := make([]byte, 4+bindings+4)
	sum[0] = bindings
	sum[4+bindings] = gssapi.ContextFlagMutual | gssapi.ContextFlagInteg
	return sum
}

// confirm reads the server's proof that it has read the authenticator.
func (x *exchange) confirm(challenge []byte) error {
	var token asn1.RawValue
	var oid asn1.ObjectIdentifier
	_, err := asn1.Unmarshal(challenge, &token)
	if err != nil || token.Class != asn1.ClassApplication || token.Tag != 0 {
		return errors.New("the server's first message is no token of GSS-API")
	}
	body, err := asn1.Unmarshal(token.Bytes, &oid)
	if err != nil || !oid.Equal(mechanism) || string(body[:2]) != tokenReply {
		return errors.New("the server's first message is no reply of Kerberos")
	}
	var reply messages.APRep
	var proof messages.EncAPRepPart
	if err := reply.Unmarshal(body[2:]); err != nil {
		return errors.New("the server's reply is malformed")
	}
	plain, err := crypto.DecryptEncPart(
		reply.EncPart, x.ticket.key, keyusage.AP_REP_ENCPART)
	if err == nil {
		err = proof.Unmarshal(plain)
	}
	ours := x.authenticator
	if err != nil || proof.CTime.Unix() != ours.CTime.Unix() ||
		proof.Cusec != ours.Cusec {
		return errors.New("the server does not prove that it has the service's key")
	}
	x.key = x.ticket.key
	if len(proof.Subkey.KeyValue) > 0 {
		x.key, x.wrapFlags = proof.Subkey, acceptorSubkey
	}
	return nil
}

// acceptorSubkey says in a token that the server has chosen the key.
const acceptorSubkey = 0x04

// noLayer is the security layer that is none, in the server's offer and in our choice.
const noLayer = 0x01

// choose reads the server's offer, a set of layers and a size, and answers it without a
// name to act as: that is the ticket's.
func (x *exchange) choose(challenge []byte) ([]byte, error) {
	var offer gssapi.WrapToken
	if err := offer.Unmarshal(challenge, true); err != nil {
		return nil, errors.New("the server's offer of security layers is malformed")
	}
	ok, err := offer.Verify(x.key, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil || !ok || len(offer.Payload) != 4 {
		return nil, errors.New("the server's offer of security layers is forged")
	}
	if offer.Payload[0]&noLayer == 0 {
		return nil, errors.New("the server demands a security layer, and ZooKeeper " +
			"has none")
	}
	kind, err := crypto.GetEtype(x.key.KeyType)
	if err != nil {
		return nil, err
	}
	checksum := kind.GetHMACBitLength() / 8
	choice := gssapi.WrapToken{
		Flags: x.wrapFlags, EC: uint16(checksum), //nolint:gosec // at most 24
		SndSeqNum: uint64(x.authenticator.SeqNumber), Payload: []byte{noLayer, 0, 0, 0},
	}
	if err := choice.SetCheckSum(x.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return choice.Marshal()
}
