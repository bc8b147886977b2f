package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// iniBlock finds the lines of zoo.cfg on a page.
var iniBlock = regexp.MustCompile("(?ms)^```ini\n(.*?)\n```$")

// pageConfig returns what docs/secure-cluster.md says of zoo.cfg, block by block.
func pageConfig(t *testing.T) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/secure-cluster.md")
	require.NoError(t, err)
	for _, block := range iniBlock.FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, block[1])
	}
	require.Len(t, blocks, 2, "TLS, and logins")
	return blocks
}

// tlsServer starts a real server with TLS, which wants certificates of ca, with the lines
// of a page, and returns where it is.
func tlsServer(
	t *testing.T, ca clientCA, lines string, opts ...zkserver.Option,
) (server string) {
	t.Helper()
	zkserver.Real(t, "TLS")
	t.Setenv("ZOOKEEPER_RUN", "local") // one in a container cannot read the certificates
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	listener.Close()

	own := ca.issue(t, "localhost", time.Now().Add(24*time.Hour))
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name string, blocks ...*pem.Block) {
		var text strings.Builder
		for _, b := range blocks {
			text.Write(pem.EncodeToMemory(b))
		}
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
	}
	write("server.pem", &pem.Block{Type: "PRIVATE KEY", Bytes: key},
		&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]})
	write("ca.pem", &pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw})
	lines = strings.NewReplacer("/etc/zookeeper", dir, "2281", port).Replace(lines)
	zkserver.Start(t, append(opts, zkserver.Config(lines,
		"secureClientPortAddress=127.0.0.1"))...)
	return net.JoinHostPort("localhost", port)
}

// Nobody gets in without TLS, and with TLS nobody without a login; who logs in has the
// rights that the owner leaves.
func TestARealServerLikeThePage(t *testing.T) {
	ca := clientNewCA(t)
	server := tlsServer(t, ca, strings.Join(pageConfig(t), "\n"),
		zkserver.SASLUsers(saslUsers))
	secure := recipes.WithTLS(&tls.Config{RootCAs: ca.pool()})
	ctx, dialer := untilRedialled(t)
	_, err := recipes.Connect(ctx, server, saslTimeout, dialer)
	require.ErrorIs(t, err, context.Canceled)
	_, err = saslConnect(t, []string{server + "/app"}, secure)
	require.ErrorIs(t, err, zk.ErrAuthFailed)

	bob := saslMust(t, []string{server + "/app"}, secure, asUser(saslUser, saslPassword),
		recipes.WithChrootACL(zk.AuthACL(zk.PermAll)))
	for _, path := range []string{"/", "/zookeeper/quota"} {
		_, err = bob.Unwrap().SetACL(path, zk.AuthACL(zk.PermAll), -1)
		require.NoError(t, err)
	}
	ann := saslMust(t, []string{server}, secure, asUser("ann", "secret"))
	for _, path := range []string{"/hers", "/app/hers", "/zookeeper/quota/app"} {
		_, err = ann.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.ErrorIs(t, err, zk.ErrNoAuth)
	}
}

// A certificate that expires ends no session that is connected. The next handshake fails,
// whichever side's it is, and succeeds as soon as there is a new one, in time for the
// session.
func TestARealServerWithTLS(t *testing.T) {
	ca, unrelated := clientNewCA(t), clientNewCA(t)
	server := tlsServer(t, ca, strings.Replace(pageConfig(t)[0], "ssl.clientAuth=none",
		"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
		1), zkserver.SASLUsers(saslUsers))
	tomorrow := time.Now().Add(24 * time.Hour)
	with := func(c tls.Certificate) recipes.ClientOption {
		return recipes.WithTLS(&tls.Config{
			RootCAs: ca.pool(), Certificates: []tls.Certificate{c},
		})
	}
	t.Run("rights", func(t *testing.T) {
		bob := saslMust(t, []string{server}, with(ca.issue(t, "bob", tomorrow)))
		ann := saslMust(t, []string{server}, with(ca.issue(t, "ann", tomorrow)))
		path := zkserver.Path(t)
		_, err := bob.Create(path, nil, 0, zk.AuthACL(zk.PermAll))
		require.NoError(t, err)
		acl, _, err := bob.Unwrap().GetACL(path)
		require.NoError(t, err)
		require.Equal(t, []zk.ACL{{Scheme: "x509", ID: "CN=bob", Perms: zk.PermAll}}, acl)
		_, _, err = ann.Get(path)
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
	t.Run("a shared certificate", func(t *testing.T) {
		shared := with(ca.issue(t, "both", tomorrow))
		bob := saslMust(t, []string{server}, shared, asUser(saslUser, saslPassword))
		ann := saslMust(t, []string{server}, shared, asUser("ann", "secret"))
		byAuth, byName := zkserver.Path(t), zkserver.Path(t)
		_, err := bob.Create(byAuth, nil, 0, zk.AuthACL(zk.PermAll))
		require.NoError(t, err)
		_, err = bob.Create(byName, nil, 0, saslACL())
		require.NoError(t, err)
		_, _, err = ann.Get(byAuth)
		require.NoError(t, err, "scheme auth stands for the certificate, too")
		_, _, err = ann.Get(byName)
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
	t.Run("refused", func(t *testing.T) {
		for name, option := range map[string]recipes.ClientOption{
			"another CA's":   with(unrelated.issue(t, "bob", tomorrow)),
			"expired":        with(ca.issue(t, "bob", time.Now().Add(-time.Hour))),
			"no certificate": recipes.WithTLS(&tls.Config{RootCAs: ca.pool()}),
		} {
			_, err := saslConnect(t, []string{server}, option)
			require.ErrorContains(t, err, "remote error: tls: ", name)
		}
	})
	t.Run("the client's expires", func(t *testing.T) {
		t.Parallel()
		tlsClientExpires(t, ca, server)
	})
	t.Run("the server's expires", func(t *testing.T) {
		t.Parallel()
		tlsServerExpires(t, ca, server)
	})
}

func tlsClientExpires(t *testing.T, ca clientCA, server string) {
	until := time.Now().Add(2 * time.Second).Truncate(time.Second) // as it has it
	var own atomic.Pointer[tls.Certificate]
	first := ca.issue(t, "bob", until)
	own.Store(&first)
	now := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return own.Load(), nil
	}
	tlsExpires(t, server, &tls.Config{
		RootCAs: ca.pool(), GetClientCertificate: now,
	}, "remote error: tls: ", func() {
		time.Sleep(time.Until(until.Add(time.Second)))
	}, func() {
		renewed := ca.issue(t, "bob", time.Now().Add(time.Hour))
		own.Store(&renewed)
	})
}

// The client's clock goes ahead, to the day after tomorrow.
func tlsServerExpires(t *testing.T, ca clientCA, server string) {
	var ahead atomic.Int64
	tlsExpires(t, server, &tls.Config{
		RootCAs: ca.pool(),
		Certificates: []tls.Certificate{
			ca.issue(t, "bob", time.Now().Add(24*time.Hour)),
		},
		Time: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}, "certificate has expired or is not yet valid", func() {
		ahead.Store(int64(36 * time.Hour))
	}, func() {
		ahead.Store(0)
	})
}

// tlsExpires lets a certificate expire under a session, and renews it.
func tlsExpires(
	t *testing.T, server string, config *tls.Config, says string, expire, renew func(),
) {
	network, log := &saslNet{through: net.DialTimeout}, &hostileLog{}
	c := saslMust(t, []string{server}, recipes.WithTLS(config), saslLog(log),
		recipes.WithDialer(network.dial))
	session, path := c.SessionID(), zkserver.Path(t)
	_, err := c.Create(path, nil, zk.FlagEphemeral, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)
	expire()
	_, _, err = c.Get(path)
	require.NoError(t, err, "TLS looks at certificates in the handshake alone")
	require.NotContains(t, log.String(), says)
	network.cut()
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), says)
	}, saslTimeout, 10*time.Millisecond)
	renew()
	saslOnceConnected(t, func() error {
		_, _, err := c.Get(path)
		return err
	})
	require.Equal(t, session, c.SessionID())
}
