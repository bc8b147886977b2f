package prove

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// What another machine needs to know before it may join: the fingerprint of the key with
// which the judge speaks TLS, and a secret of its own.
const (
	fingerprintSize = sha256.Size
	secretSize      = 16
)

// A token is both, as one writes them.
type token struct {
	fingerprint [fingerprintSize]byte
	secret      [secretSize]byte
}

func (t token) String() string {
	return base64.RawURLEncoding.EncodeToString(append(t.fingerprint[:], t.secret[:]...))
}

// errNoToken does not show what was given in its place.
var errNoToken = errors.New("that is no token of \"zklock prove --listen\"")

func parseToken(text string) (t token, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != fingerprintSize+secretSize {
		return t, errNoToken
	}
	copy(t.fingerprint[:], raw)
	copy(t.secret[:], raw[fingerprintSize:])
	return t, nil
}

// A Door is where other machines join a run. Its key lives as long as it.
type Door struct {
	listener net.Listener
	token    token
	machines int // that are to take part, with this one
}

const (
	machinesMost = 16
	// helloWithin bounds the time that somebody has to show the secret.
	helloWithin = 10 * time.Second
	// unknownMost bounds how many may try at the same time.
	unknownMost = 8
)

// OpenDoor listens for as many machines as are to take part, with this one.
func OpenDoor(address string, machines int) (*Door, error) {
	if machines < 2 || machines > machinesMost {
		return nil, fmt.Errorf(
			"--machines %d: must be from 2 to %d", machines, machinesMost)
	}
	d := &Door{machines: machines}
	_, _ = rand.Read(d.token.secret[:]) // never fails
	certificate, err := newCertificate(&d.token)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	d.listener = tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
	})
	return d, nil
}

// Token is what another machine has to show.
func (d *Door) Token() string { return d.token.String() }

// Address is where they join.
func (d *Door) Address() string { return d.listener.Addr().String() }

// Close lets nobody in any more.
func (d *Door) Close() error { return d.listener.Close() }

// newCertificate makes a key, and fills in its fingerprint.
func newCertificate(t *token) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	const lives = 30 * 24 * time.Hour
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-lives),
		NotAfter: time.Now().Add(lives),
	}
	der, err := x509.CreateCertificate(
		rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return c, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return c, err
	}
	t.fingerprint = sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// errNotTheKey says that somebody else has answered.
var errNotTheKey = errors.New("the key of that server is not the token's")

// dialDoor reaches the door whose key the token has.
func dialDoor(ctx context.Context, address string, t token) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13,
		// No authority knows the key: the token does, and the next function compares.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(s tls.ConnectionState) error {
			got := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
			if subtle.ConstantTimeCompare(got[:], t.fingerprint[:]) != 1 {
				return errNotTheKey
			}
			return nil
		},
	}}
	return dialer.DialContext(ctx, "tcp", address)
}

// admit waits until all machines have joined.
func (d *Door) admit(ctx context.Context, say func(string, ...any)) ([]*guest, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.listener.Close() })
	defer stop()
	admitted := make(chan *guest)
	over, end := context.WithCancel(ctx)
	defer end()
	go d.answer(over, admitted)
	var all []*guest
	for len(all) < d.machines-1 {
		select {
		case g := <-admitted:
			all = append(all, g)
			say("%d of %d machines take part", 1+len(all), d.machines)
		case <-ctx.Done():
			for _, g := range all {
				g.close()
			}
			return nil, context.Cause(ctx)
		}
	}
	return all, nil
}

// answer asks everybody for the secret, for as long as somebody is waited for.
func (d *Door) answer(ctx context.Context, admitted chan<- *guest) {
	unknown := make(chan struct{}, unknownMost)
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		select {
		case unknown <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		go func() {
			defer func() { <-unknown }()
			g := d.ask(conn)
			if g == nil {
				_ = conn.Close()
				return
			}
			select {
			case admitted <- g:
			case <-ctx.Done():
				g.close()
			}
		}()
	}
}

// ask returns nil for somebody who does not know the secret.
func (d *Door) ask(conn net.Conn) *guest {
	_ = conn.SetDeadline(time.Now().Add(helloWithin)) // else reading fails
	g := newGuest(conn)
	var hello fromGuest
	if g.next(&hello) != nil || hello.Hello == nil ||
		hello.Hello.Format != fileFormat {
		return nil
	}
	if subtle.ConstantTimeCompare(hello.Hello.Secret, d.token.secret[:]) != 1 {
		return nil
	}
	_ = conn.SetDeadline(time.Time{})
	return g
}
