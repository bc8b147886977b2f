package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// startSecured starts a server that talks to nobody without a certificate, and returns
// the flags for it.
func startSecured(t *testing.T) (flags []string) {
	t.Helper()
	cert, key := keyPair(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	pem, err := os.ReadFile(cert)
	require.NoError(t, err)
	clients := x509.NewCertPool()
	require.True(t, clients.AppendCertsFromPEM(pem))
	cluster := zktest.Start(t, zktest.WithTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}))
	_, port, err := net.SplitHostPort(cluster.Addrs()[0])
	require.NoError(t, err)
	return []string{
		"--servers", "localhost:" + port, "--tls-ca", cert, "--tls-cert", cert,
		"--tls-key", key,
	}
}

// On a cluster that wants certificates doctor sees what it sees on any other, and whose
// locks are open to all who have one.
func TestDoctorOverTLS(t *testing.T) {
	flags := startSecured(t)
	zklock := func(args ...string) (string, error) {
		out, err := exec.Command("zklock", append(flags[:len(flags):len(flags)],
			args...)...).CombinedOutput()
		return string(out), err
	}
	said, err := zklock("run", "/mine", "true")
	require.NoError(t, err, said)
	said, err = zklock("doctor", "/mine")
	require.NoError(t, err, said)
	require.Regexp(t, `(?m)^ok +localhost:\d+ is ZooKeeper 3.*, with container znodes$`,
		said)
	require.NotContains(t, said, "world:anyone")
	said, err = zklock("--acl", "world", "run", "/open", "true")
	require.NoError(t, err, said)
	said, err = zklock("doctor", "/open")
	require.NoError(t, err, said)
	require.Regexp(t, `(?m)^\? +/open: world:anyone has CREATE, DELETE, ADMIN`, said)
}
