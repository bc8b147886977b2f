package zktest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	made, key := a.sign(t, pkix.Name{CommonName: "tests"})
	a.certificate, a.key = made, key
	return a
}

// sign makes a certificate, its own one for an authority that has none.
func (a *authority) sign(
	t *testing.T, name pkix.Name,
) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	require.NoError(t, err)
	wanted := &x509.Certificate{
		SerialNumber: serial, Subject: name, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = wanted, key
		wanted.IsCA, wanted.KeyUsage = true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(
		rand.Reader, wanted, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	made, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return made, key
}

func (a *authority) issue(t *testing.T, name pkix.Name) tls.Certificate {
	t.Helper()
	made, key := a.sign(t, name)
	return tls.Certificate{Certificate: [][]byte{made.Raw}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// write makes the files with a certificate and its key, and with that of the authority.
func (a *authority) write(t *testing.T, one tls.Certificate) (keys, trusted string) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(one.PrivateKey)
	require.NoError(t, err)
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	dir := t.TempDir()
	keys, trusted = filepath.Join(dir, "keys.pem"), filepath.Join(dir, "trusted.pem")
	require.NoError(t, os.WriteFile(keys, append(
		block("PRIVATE KEY", key), block("CERTIFICATE", one.Certificate[0])...), 0o600))
	require.NoError(t, os.WriteFile(
		trusted, block("CERTIFICATE", a.certificate.Raw), 0o600))
	return keys, trusted
}

// exampleCertificate returns the PEM of a certificate, which is its own authority, and of
// its key.
func exampleCertificate() (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	wanted := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(
		rand.Reader, wanted, wanted, &private.PublicKey, private)
	if err != nil {
		panic(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// unwrap returns an address without TLS by which one with TLS is reached.
func unwrap(t *testing.T, secure string, config *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			plain, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer plain.Close()
				far, err := tls.Dial("tcp", secure, config)
				if err != nil {
					return
				}
				all.Go(func() {
					_, _ = io.Copy(far, plain) // either end may break it
					_ = far.Close()
				})
				_, _ = io.Copy(plain, far) // likewise
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// TestConformanceTLS compares what a client is by its certificate.
func TestConformanceTLS(t *testing.T) {
	needsGenuine(t)
	if zkserver.Start(t).Kind() != "local" {
		t.Skip("a server in a container does not see our certificates")
	}
	ca := newAuthority(t)
	server := ca.issue(t, pkix.Name{CommonName: "server"})
	keys, trusted := ca.write(t, server)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	secure := port.Addr().String()
	require.NoError(t, port.Close())
	zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(usual), zkserver.Config(
		fmt.Sprintf("secureClientPort=%d", port.Addr().(*net.TCPAddr).Port),
		"secureClientPortAddress=127.0.0.1",
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"authProvider.x509="+
			"org.apache.zookeeper.server.auth.X509AuthenticationProvider",
		"ssl.hostnameVerification=false",
		"ssl.keyStore.location="+keys, "ssl.trustStore.location="+trusted,
	))
	fake := zktest.Start(t, zktest.WithTick(tick), zktest.WithMaxSession(usual),
		zktest.WithTLS(&tls.Config{
			Certificates: []tls.Certificate{server},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(),
			MinVersion: tls.VersionTLS12,
		}))
	ours := &tls.Config{
		RootCAs: ca.pool(), MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{ca.issue(t, pkix.Name{
			CommonName: "bob",
		})},
	}
	require.Eventually(t, func() bool { // the other port, which serves first, is ready
		conn, err := tls.Dial("tcp", secure, ours)
		return err == nil && conn.Close() == nil
	}, patience, tick/20)
	conform(t, unwrap(t, secure, ours), unwrap(t, fake.Addrs()[0], ours), `
		r0 whoAmI
		r0 create /bobs x persistent x509/CN=bob:r
		r0 getACL /bobs
		r0 getData /bobs
		r0 create /anns x persistent x509/CN=ann:r
		r0 getData /anns
		r0 create /own x persistent auth:r
		r0 getACL /own
		r0 create /bad x persistent x509/nobody:r
		r0 create /bad x persistent x509/:r
		c0 get /bobs
		r0 connect as=r0
		r0 getData /bobs
	`)
	t.Run("other names", func(t *testing.T) {
		other := ours.Clone()
		other.Certificates = []tls.Certificate{ca.issue(t, pkix.Name{
			CommonName: "bob, the other", Organization: []string{"tests", "more"},
			Country: []string{"DE"}, OrganizationalUnit: []string{"a+b"},
		})}
		conform(t, unwrap(t, secure, other), unwrap(t, fake.Addrs()[0], other), `
			r0 whoAmI
			r0 create /own x persistent auth:r
			r0 getACL /own
			r0 getData /own
		`)
	})
	t.Run("no certificate", func(t *testing.T) {
		nobody := ours.Clone()
		nobody.Certificates = nil
		for _, addr := range []string{secure, fake.Addrs()[0]} {
			conn, err := tls.Dial("tcp", addr, nobody)
			if err == nil { // TLS 1.3 tells at the first read
				_, err = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}
			require.Error(t, err)
		}
	})
}

// conform plays a script on both servers, and wants the same answers.
func conform(t *testing.T, genuineAddr, fakeAddr, text string) {
	t.Helper()
	genuine, fake := mustPlay(t, genuineAddr, nil), mustPlay(t, fakeAddr, nil)
	defer genuine.close()
	defer fake.close()
	script := parseScript(text)
	difference, err := compare(genuine, fake, script, below(t, script))
	require.NoError(t, err)
	require.Empty(t, difference)
}
