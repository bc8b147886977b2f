package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// clientCA signs certificates.
type clientCA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func clientNewCA(t *testing.T) clientCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test CA"},
		NotBefore:             time.Now().Add(-48 * time.Hour),
		NotAfter:              time.Now().Add(48 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(
		rand.Reader, template, template, &key.PublicKey, key,
	)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return clientCA{certificate, key}
}

func (ca clientCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	return pool
}

// issue returns a certificate for host, as server and as client, that is good until then.
func (ca clientCA) issue(t *testing.T, host string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: host},
		NotBefore:    time.Now().Add(-24 * time.Hour),
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
		DNSNames: []string{host},
	}
	der, err := x509.CreateCertificate(
		rand.Reader, template, ca.certificate, &key.PublicKey, ca.key,
	)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// clientTLSProxy ends TLS in front of a server, and returns its port on the loopback
// interface.
func clientTLSProxy(t *testing.T, server string, cfg *tls.Config) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { clientRelay(t, conn, cfg, server) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	_, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func clientRelay(t *testing.T, accepted net.Conn, cfg *tls.Config, server string) {
	t.Helper()
	defer accepted.Close()
	client := tls.Server(accepted, cfg)
	err := client.Handshake()
	if errors.As(err, new(tls.RecordHeaderError)) {
		return
	}
	if err != nil {
		_ = accepted.SetReadDeadline(time.Now().Add(clientPatience))
		_, err = io.Copy(io.Discard, accepted)
		assert.NotErrorIs(
			t, err, os.ErrDeadlineExceeded,
			"the client leaves a failed handshake's connection open",
		)
		return
	}
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(conn, client)
		conn.Close()
	}()
	_, _ = io.Copy(client, conn)
}

func TestTLS(t *testing.T) {
	server, root := zkserver.Shared(t).Servers[0].Addr, zkserver.Path(t)
	ca, stranger := clientNewCA(t), clientNewCA(t)
	tomorrow := time.Now().Add(24 * time.Hour)
	good := &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, "localhost", tomorrow)},
	}
	expired := &tls.Config{Certificates: []tls.Certificate{
		ca.issue(t, "localhost", time.Now().Add(-time.Hour)),
	}}
	mutual := good.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool()
	mutual12 := mutual.Clone()
	mutual12.MaxVersion = tls.VersionTLS12
	trusting := &tls.Config{RootCAs: ca.pool()}
	elsewhere := &tls.Config{RootCAs: ca.pool(), ServerName: "zk.example"}
	only13 := &tls.Config{RootCAs: ca.pool(), MinVersion: tls.VersionTLS13}
	with := func(issuer clientCA) *tls.Config {
		return &tls.Config{
			RootCAs:      ca.pool(),
			Certificates: []tls.Certificate{issuer.issue(t, "me", tomorrow)},
		}
	}

	unknown, name, invalid := new(
		x509.UnknownAuthorityError,
	), new(x509.HostnameError), new(x509.CertificateInvalidError)
	alert := new(*net.OpError)
	const here, ip = "localhost", "127.0.0.1"

	for name, tc := range map[string]struct {
		server *tls.Config
		host   string
		client *tls.Config
		is     any // what the error is to be, as for errors.As; nil for none
		says   string
	}{
		"right certificate": {server: good, host: here, client: trusting},
		"right name in the config": {
			server: good, host: ip,
			client: &tls.Config{RootCAs: ca.pool(), ServerName: here},
		},
		"unverified": {
			server: expired, host: ip,
			client: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // its subject
		},
		"right client certificate": {server: mutual, host: here, client: with(ca)},
		"unknown CA": {
			server: good, host: here, client: &tls.Config{RootCAs: stranger.pool()},
			is: unknown,
		},
		"another host's certificate": {
			server: good, host: ip, client: trusting, is: name,
		},
		"another name in the config": {
			server: good, host: here, client: elsewhere, is: name,
		},
		"expired certificate": {
			server: expired, host: here, client: trusting, is: invalid,
		},
		"no client certificate": {
			server: mutual, host: here, client: trusting, is: alert,
			says: "certificate required",
		},
		"no client certificate, 1.2": {
			server: mutual12, host: here, client: trusting, is: alert,
			says: "remote error",
		},
		"wrong client certificate": {
			server: mutual, host: here, client: with(stranger), is: alert,
			says: "remote error",
		},
		"no common version": {
			server: mutual12, host: here, client: only13, is: alert,
			says: "protocol version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clientLeaks(t)
			address := net.JoinHostPort(tc.host, clientTLSProxy(t, server, tc.server))
			c, err := recipes.Connect(
				clientContext(t), address+root, 10*time.Second,
				recipes.WithTLS(tc.client),
			)
			if tc.is == nil {
				require.NoError(t, err)
				_, _, err = c.Get("/")
				c.Close()
				require.NoError(t, err)
				return
			}
			require.Nil(t, c)
			require.ErrorAs(t, err, tc.is)
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, address)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "it tries again")
		})
	}
}

func TestTLSGoesOnWhereOneOfTheServersFits(t *testing.T) {
	server := zkserver.Shared(t).Servers[0].Addr
	clientLeaks(t)
	ca, stranger := clientNewCA(t), clientNewCA(t)
	tomorrow := time.Now().Add(24 * time.Hour)
	good := clientTLSProxy(
		t, server,
		&tls.Config{Certificates: []tls.Certificate{ca.issue(t, "localhost", tomorrow)}},
	)
	bad := clientTLSProxy(t, server, &tls.Config{
		Certificates: []tls.Certificate{stranger.issue(t, "localhost", tomorrow)},
	})

	cfg := &tls.Config{RootCAs: ca.pool()}
	withTLS := recipes.WithTLS(cfg)
	cfg.RootCAs = nil // the option has a copy
	c := clientFor(
		t, "localhost:"+bad+",localhost:"+good, withTLS,
		recipes.WithHostProvider(&clientOrder{}),
	)
	require.Equal(t, "localhost:"+good, c.Unwrap().Server())
}

// A server that gets the wrong one of TLS and plain text just hangs up, as does one that
// has no quorum. So this is no error at once, but the error tells.
func TestTLSOnOneSideOnly(t *testing.T) {
	server := zkserver.Shared(t).Servers[0].Addr
	clientLeaks(t)
	ca := clientNewCA(t)
	proxy := clientTLSProxy(t, server, &tls.Config{
		Certificates: []tls.Certificate{
			ca.issue(t, "localhost", time.Now().Add(time.Hour)),
		},
	})
	ctx, dialer := untilRedialled(t)
	_, err := recipes.Connect(ctx, server, 10*time.Second, dialer,
		recipes.WithTLS(&tls.Config{RootCAs: ca.pool()}))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "is it serving, and with TLS?")

	ctx, dialer = untilRedialled(t)
	_, err = recipes.Connect(ctx, "localhost:"+proxy, 10*time.Second, dialer)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "is it serving, and without TLS?")
}
