package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// workersOf are the processes of a prove's workers, by what they call themselves.
func workersOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	out, _ := exec.Command("ps", "-o", "pid=,args=", "--ppid", strconv.Itoa(parent)).
		Output() // it fails if there are none
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[1] == proveWorkerName {
			pid, err := strconv.Atoi(fields[0])
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// proving is "zklock prove" with these arguments, as a process.
func proving(t *testing.T, servers string, args ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "zklock")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, program)) // testscript goes by the name
	cmd := exec.Command(program, append([]string{"prove"}, args...)...)
	cmd.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+servers)
	return cmd
}

// selfSigned writes a certificate for loopback, and returns it.
func selfSigned(t *testing.T) (config *tls.Config, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{
			Certificate: [][]byte{der}, PrivateKey: key,
		}},
	}, file
}

// The proxy ends no TLS: a worker talks to the server itself, by the server's own name.
// All that is created is the creator's, below the chroot.
func TestProveWithTLSAndALogin(t *testing.T) {
	t.Parallel()
	config, ca := selfSigned(t)
	cluster, err := zktest.New(zktest.WithTLS(config))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	files := []string{
		filepath.Join(t.TempDir(), "history"), filepath.Join(t.TempDir(), "page"),
	}
	cmd := proving(t, cluster.ConnectString()+"/app", "--for", "20s", "--workers", "2",
		"--root", "/mine", "--tls-ca", ca, "--auth", "digest:me:hunter2",
		"--json", files[0], "--html", files[1])
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	trust := x509.NewCertPool()
	text, err := os.ReadFile(ca)
	require.NoError(t, err)
	require.True(t, trust.AppendCertsFromPEM(text))
	client, err := recipes.Connect(t.Context(), cluster.ConnectString(), patience,
		recipes.WithTLS(&tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	for _, path := range []string{
		"/app/mine", "/app/mine/witness", "/app/mine/0/mutex-1",
	} {
		require.Eventually(t, func() bool {
			_, _, err := client.Get(path)
			return errors.Is(err, zk.ErrNoAuth)
		}, patience, 10*time.Millisecond, "nobody else may read %s", path)
	}
	err = cmd.Wait()
	require.NotContains(t, said.String(), "VIOLATED")
	require.Contains(t, said.String(), "acquisitions")
	require.NotContains(t, said.String(), "hunter2")
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEmpty(t, text)
		require.NotContains(t, string(text), "hunter2")
	}
	if err != nil { // a machine that is too busy decides nothing
		require.Contains(t, said.String(), "UNDECIDED", said.String())
		require.NotContains(t, said.String(), "acquisitions: 0,", said.String())
	}
	require.NotContains(t, cluster.Znodes(), "/app/mine")
}

// A file of somebody else's stays as it is, also for root.
func TestAFileOfSomebodyElse(t *testing.T) {
	name := filepath.Join(t.TempDir(), "theirs")
	require.NoError(t, os.WriteFile(name, []byte("theirs"), 0o666))
	if err := os.Chown(name, os.Geteuid()+1, -1); err != nil {
		t.Skip("only root can give a file away")
	}
	_, err := private(name)
	require.ErrorIs(t, err, errTheirs)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(text))
	require.NoError(t, os.Chown(name, os.Geteuid(), -1))
	require.NoError(t, os.Chmod(name, 0o644)) //nolint:gosec // the file's own test
	file, err := private(name)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Zero(t, info.Size())
}

// workersAppear waits for a prove's workers.
func workersAppear(t *testing.T, of *exec.Cmd, n int) (pids []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		pids = workersOf(t, of.Process.Pid)
		return len(pids) == n
	}, patience, 10*time.Millisecond)
	return pids
}

// A judge that was suspended has seen nothing meanwhile: the round does not count, and
// another one is made.
func TestProveIsSuspended(t *testing.T) {
	t.Parallel()
	cluster, err := zktest.New()
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	cmd := proving(t, cluster.ConnectString(), "--calm", "--for", "10s", "--workers", "2",
		"--session-timeout", "30s")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, os.Stderr
	require.NoError(t, cmd.Start())
	workersAppear(t, cmd, 2)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(5 * time.Second) // more than a tenth of the session
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	err = cmd.Wait()
	require.Contains(t, said.String(),
		"does not count: round 0: the judge did not run for")
	require.NotContains(t, said.String(), "VIOLATED")
	if err == nil {
		require.Contains(t, said.String(), "rounds: 1,")
	}
}

// If prove is killed, its workers end, also those that are suspended just then.
func TestTheWorkersOfProveEndWithIt(t *testing.T) {
	t.Parallel()
	cluster, err := zktest.New()
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	cmd := proving(t, cluster.ConnectString(), "--calm", "--for", "1h", "--workers", "3")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended
	pids := workersAppear(t, cmd, 3)
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGSTOP))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !runs(strconv.Itoa(pid)) }, patience,
			10*time.Millisecond, "worker %d still runs", pid)
	}
}
