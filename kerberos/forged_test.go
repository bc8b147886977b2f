package kerberos

import (
	"context"
	"encoding/asn1"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// A forger changes one message of the server's.
type forger struct {
	recipes.SASL
	message int
	forge   func(p []byte) []byte
	seen    [][]byte
}

func (f *forger) Begin(host string) (recipes.SASLExchange, error) {
	x, err := f.SASL.Begin(host)
	return &forgedExchange{x, f, 0}, err
}

type forgedExchange struct {
	recipes.SASLExchange
	forger *forger
	at     int
}

func (x *forgedExchange) Step(challenge []byte) ([]byte, bool, error) {
	x.forger.seen = append(x.forger.seen, slices.Clone(challenge))
	if x.at == x.forger.message {
		challenge = x.forger.forge(slices.Clone(challenge))
	}
	x.at++
	return x.SASLExchange.Step(challenge)
}

// The server has to prove that it has the service's key, in both of its messages.
func (p *place) forged(t *testing.T) {
	login := p.fromKeytab(t, "eve", p.user(t, "eve", ""))
	honest := &forger{SASL: login, message: -1}
	p.mustConnect(t, honest)
	require.Len(t, honest.seen, 3)
	flip := func(i int) func(p []byte) []byte {
		return func(p []byte) []byte {
			p[(len(p)+i)%len(p)] ^= 1
			return p
		}
	}
	is := func(text []byte) func([]byte) []byte {
		return func([]byte) []byte { return text }
	}
	again := &reuser{login: login}
	first := &forger{SASL: again, message: -1}
	p.mustConnect(t, first)
	_, err := p.connect(t, &forger{SASL: again, message: 1, forge: is(first.seen[1])})
	require.ErrorContains(t, err, "does not prove", "a reply to the last authenticator")
	for i, c := range []struct {
		message int
		forge   func(p []byte) []byte
		want    string
	}{
		{1, is(nil), "no token of GSS-API"},
		{1, is([]byte("<html>")), "no token of GSS-API"},
		{1, flip(13), "no reply of Kerberos"}, // its kind
		{1, flip(-1), "does not prove that it has the service's key"},
		{1, is(honest.seen[1]), "does not prove"}, // of another connection
		{1, is(honest.seen[2]), "no token of GSS-API"},
		{1, func(p []byte) []byte { return p[:len(p)-1] }, "no token of GSS-API"},
		{1, is(shortToken(t)), "malformed"},
		{2, is(nil), "malformed"},
		{2, flip(-1), "forged"},
		{2, flip(16), "forged"}, // the layers
		{2, flip(2), "malformed"},
		{2, is(honest.seen[2]), "forged"}, // of another session key
	} {
		_, err := p.connect(t, &forger{SASL: login, message: c.message, forge: c.forge})
		require.ErrorIs(t, err, zk.ErrAuthFailed, i)
		require.ErrorContains(t, err, "zookeeper/localhost: ")
		require.ErrorContains(t, err, c.want, i)
	}
}

// A reuser has one ticket for all connections.
type reuser struct {
	*login
	ticket ticket
}

func (r *reuser) Begin(host string) (recipes.SASLExchange, error) {
	if !r.ticket.valid() {
		t, err := r.login.ticket(context.Background(), host)
		if err != nil {
			return nil, err
		}
		r.ticket = t
	}
	return &exchange{login: r.login, server: "a server", ticket: r.ticket}, nil
}

// shortToken is a token of Kerberos without a message.
func shortToken(t *testing.T) []byte {
	t.Helper()
	oid, err := asn1.Marshal(mechanism)
	require.NoError(t, err)
	token, err := asn1.Marshal(asn1.RawValue{
		Class: asn1.ClassApplication, IsCompound: true, Bytes: oid,
	})
	require.NoError(t, err)
	return token
}
