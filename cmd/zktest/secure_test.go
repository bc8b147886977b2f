package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// writeCertificate makes the files of a certificate, which is its own authority, and of
// its key.
func writeCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	wanted := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "both"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(
		rand.Reader, wanted, wanted, &private.PublicKey, private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs8)
}

// With TLS, clients need a certificate if the authorities are given, and are known by it.
func TestTLS(t *testing.T) {
	cert, key := writeCertificate(t)
	own, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(own.Leaf)
	anybody := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	known := anybody.Clone()
	known.Certificates = []tls.Certificate{own}
	flags := []string{"-tls-cert", cert, "-tls-key", key}

	p := start(t, append(flags, "-chroot", "/a")...)
	require.Equal(t, "/a", connectTLS(t, p.servers, anybody))
	p = start(t, append(flags, "-tls-ca", cert, "-chroot", "/a")...)
	require.Equal(t, "/a", connectTLS(t, p.servers, known))
	conn, err := tls.Dial("tcp", p.servers, anybody)
	if err == nil { // TLS 1.3 tells at the first read
		_, err = conn.Read(make([]byte, 1))
		require.NoError(t, conn.Close())
	}
	require.ErrorContains(t, err, "certificate required")
}

// connectTLS returns the path of a znode that a client sees.
func connectTLS(t *testing.T, addr string, config *tls.Config) string {
	t.Helper()
	// The client gives a handshake a second, and fails all that is asked meanwhile.
	dialer := &net.Dialer{Timeout: time.Minute}
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false),
		zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(dialer, network, addr, config)
		}))
	require.NoError(t, err)
	defer conn.Close()
	children, _, err := conn.Children("/")
	require.NoError(t, err)
	require.Contains(t, children, "a")
	return "/a"
}

// Nobody but the super user may change the configuration, and only with -reconfig.
func TestSuper(t *testing.T) {
	p := start(t, "-super", "root:secret", "-reconfig", "-servers", "3")
	conn := connect(t, p.servers)
	_, err := conn.IncrementalReconfig(nil, []string{"3"}, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NoError(t, conn.AddAuth("digest", []byte("root:secret")))
	_, err = conn.IncrementalReconfig(nil, []string{"3"}, -1)
	require.NoError(t, err)
	config, _, err := conn.Get("/zookeeper/config")
	require.NoError(t, err)
	require.Contains(t, string(config), "server.2=")
	require.NotContains(t, string(config), "server.3=")
}

// A server without the others answers the reads of a client that is content with them.
func TestReadOnly(t *testing.T) {
	p := start(t, "-read-only", "-servers", "3", "-tick", "20ms")
	addr, _, _ := strings.Cut(p.servers, ",")
	p.disturb("/servers/2/stop", "")
	p.disturb("/servers/3/stop", "")
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "isro")
		require.NoError(t, err)
		answer, _ := io.ReadAll(conn)
		return string(answer) == "ro"
	}, 20*time.Second, 50*time.Millisecond)
}

func TestSASLUsers(t *testing.T) {
	f, err := parse([]string{"-sasl-user", "bob:secret", "-sasl-user", "ann:a:b"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"bob": "secret", "ann": "a:b"}, f.saslUsers)
	cluster := zktest.Start(t, f.options()...)
	conn, err := net.Dial("tcp", cluster.Addrs()[0])
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(append(append([]byte{0, 0, 0, 44}, make([]byte, 44)...),
		0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 102, 0, 0, 0, 0)) // an empty token
	require.NoError(t, err)
	answers := make([]byte, 4+36+4+16)
	_, err = io.ReadFull(conn, answers)
	require.NoError(t, err)
	require.NotEqual(t, "\x00\x00\x00\x14", string(answers[40:44]), "it has a challenge")
}
