package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// needRoot skips a test that has to act as two users.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "it acts as two users: run it as root, as in a container")
	}
}

// keyPair writes a certificate for localhost, which signs itself, and its key.
func keyPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	wanted := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, wanted, &private.PublicKey,
		private)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: bytes},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// A file with credentials that others may read or change is told of, whatever flag names
// it, and so is one of another user.
func TestCredentialFiles(t *testing.T) {
	cert, key := keyPair(t)
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("digest:user:pw\n"), 0o600))
	for _, c := range []struct {
		file  string
		given connection
	}{
		{key, connection{tlsCert: cert, tlsKey: key}},
		{password, connection{auth: []string{"@" + password}}},
		{password, connection{saslDigest: "user:@" + password}},
	} {
		said := &strings.Builder{}
		check := func() {
			c.given.servers, c.given.stderr = "zk1", said
			c.given.sessionTimeout, c.given.connectTimeout = time.Minute, time.Minute
			_, err := c.given.check()
			require.NoError(t, err)
		}
		check()
		require.Empty(t, said.String())
		require.NoError(t, os.Chmod(c.file, 0o640)) //nolint:gosec // the point
		c.given.warned = nil
		check()
		check()
		require.Equal(t, 1, strings.Count(said.String(), "(mode 0640); chmod 600 it\n"),
			said.String())
		require.NoError(t, os.Chmod(c.file, 0o600))
		if os.Geteuid() != 0 {
			continue
		}
		said.Reset()
		c.given.warned = nil
		require.NoError(t, os.Chown(c.file, 65534, -1))
		check()
		require.Contains(t, said.String(), "file belongs to another user (65534), who")
		require.NoError(t, os.Chown(c.file, 0, -1))
	}
}

// zklock does not say that it has ended what it could not end: a CMD that has become
// another user.
func TestCommandOfAnotherUser(t *testing.T) {
	needRoot(t)
	need(t, "setpriv", "util-linux")
	cluster := zktest.Start(t)
	//nolint:usetesting // others may enter it, and set-user-id has an effect there
	dir, err := os.MkdirTemp("/var/tmp", "zklock")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // else it stays
	require.NoError(t, os.Chmod(dir, 0o755))    //nolint:gosec // others run in it
	program := func(name string) string {
		found, err := exec.LookPath(name)
		require.NoError(t, err)
		text, err := os.ReadFile(found)
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, 0o755))
		return path
	}
	sudo := program("setpriv")
	require.NoError(t, os.Chmod(sudo, os.ModeSetuid|0o755))
	run := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
		program("zklock"), "run", "--kill-after", "500ms", "/l",
		sudo, "--reuid=0", "sh", "-c",
		"echo ready; until test -e go; do sleep 0.05; done; echo over")
	run.Dir = dir
	run.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+cluster.ConnectString())
	out, err := os.Create(filepath.Join(dir, "out"))
	require.NoError(t, err)
	run.Stdout, run.Stderr = out, out
	require.NoError(t, run.Start())
	said := func() string {
		text, err := os.ReadFile(out.Name())
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return strings.Contains(said(), "ready") },
		patience, 10*time.Millisecond)
	for _, session := range cluster.Sessions() {
		require.True(t, cluster.ExpireSession(session))
	}
	require.Eventually(t, func() bool { return strings.Contains(said(), "goes on") },
		patience, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	_ = run.Wait() // the code says it
	require.Equal(t, exitLost, run.ProcessState.ExitCode(), said())
	require.Regexp(t, `(?s)zklock: the lock was lost; CMD, or a part of it, runs as `+
		`another user: zklock cannot end it, and it goes on without the lock\n`+
		`over\n`, said())
	require.NotContains(t, said(), "was ended")
}

// A list that is too long is skipped, and the others are shown.
func TestWalkSkipsWhatCannotBeListed(t *testing.T) {
	cluster := zktest.Start(t)
	writer := connectTo(t, cluster)
	for _, path := range []string{"/a", "/b", "/c"} {
		_, err := writer.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	for _, path := range []string{"/a/", "/b/" + strings.Repeat("x", 5000), "/c/"} {
		_, err := writer.Create(path+"x-lock-0000000001", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	reader, err := recipes.Connect(t.Context(), cluster.ConnectString(), 30*time.Second,
		recipes.WithMaxReply(4096))
	require.NoError(t, err)
	defer reader.Close()
	var visited, skipped []string
	w := &walk{
		client: reader, most: 100, each: 100,
		visit: func(path string) error { visited = append(visited, path); return nil },
		skip:  func(path string, _ error) { skipped = append(skipped, path) },
	}
	require.NoError(t, w.down(t.Context(), "/"))
	require.Equal(t, []string{"/a", "/c"}, visited)
	require.Equal(t, []string{"/b"}, skipped)
}
