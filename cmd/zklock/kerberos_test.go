package main

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/kdc"
)

// zklock logs in by Kerberos, with what kinit left or with a keytab, to the real servers
// that docs/appendix/kerberos-login.md starts.
func TestKerberos(t *testing.T) {
	dir, servers := startPage(t, `
		for user in ann eve; do
			kadmin.local addprinc -randkey $user
			kadmin.local ktadd -k $user.keytab $user
		done
		kadmin.local modprinc -allow_tix eve
		kinit -k -t ann.keytab ann
	`)
	file := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("KRB5_CONFIG", file("krb5.conf"))
	t.Setenv("KRB5CCNAME", "FILE:"+file("cache"))
	run := func(flags ...string) (code int, said string) {
		// In a process of its own: it waits for all of its children, and here others are.
		cmd := exec.Command("zklock", append([]string{"--servers", servers}, flags...)...)
		var err bytes.Buffer
		cmd.Stderr = &err
		_ = cmd.Run() // the code says it
		return cmd.ProcessState.ExitCode(), err.String()
	}
	bob, eve := "bob:@"+file("bob.keytab"), "eve:@"+file("eve.keytab")
	code, said := run("--kerberos", "run", "/locks/a", "true")
	require.Equal(t, exitNoPermission, code, said)
	require.Contains(t, said, "not authenticated", "what is created is bob's")
	code, said = run("--kerberos", "run", "/b", "true")
	require.Zero(t, code, said)
	code, said = run("--keytab", eve, "run", "/b", "true")
	require.Equal(t, exitNoPermission, code, said)
	require.Contains(t, said, `SASL with GSSAPI as "eve@EXAMPLE.COM": the KDC rejects`)
	code, said = run("ls", "/b")
	require.Equal(t, exitNoPermission, code, said)
	require.Contains(t, said, "client authentication failed")

	require.NoError(t, os.Chmod(file("bob.keytab"), 0o644)) //nolint:gosec // the point
	_, said = run("--keytab", bob, "ls", "/a")
	require.Contains(t, said, "--keytab "+bob+": others than its owner may")
	for want, flags := range map[string][]string{
		"exclude each other":                {"--kerberos", "--keytab", bob},
		"--keytab: want PRINCIPAL:@FILE":    {"--keytab", file("bob.keytab")},
		"has no AES key of ann@EXAMPLE.COM": {"--keytab", "ann:@" + file("bob.keytab")},
		"--keytab: kerberos: keytab: open":  {"--keytab", "bob:@/no/such/file"},
	} {
		code, said := run(append(flags, "ls", "/a")...)
		require.Equal(t, exitUsage, code, said)
		require.Contains(t, said, want)
	}
	t.Setenv("KRB5CCNAME", file("none"))
	code, said = run("--kerberos", "ls", "/a")
	require.Equal(t, exitUsage, code, said)
	require.Contains(t, said, "--kerberos: kerberos: credential cache: open")
}

var shBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// startPage runs the blocks of docs/appendix/kerberos-login.md in a new folder, on other
// ports, and then more. What they start ends with the test, or with this process.
func startPage(t *testing.T, more string) (dir, servers string) {
	t.Helper()
	kdc.MustHave(t, "krb5kdc", "kdb5_util", "kadmin.local", "kinit", "java", "openssl")
	page, err := os.ReadFile("../../docs/appendix/kerberos-login.md")
	require.NoError(t, err)
	script := "set -eu\ntrap 'kill $(jobs -p)' EXIT\n"
	for _, block := range shBlock.FindAllStringSubmatch(string(page), -1) {
		script += block[1]
	}
	server := freePort(t)
	script = strings.NewReplacer("8888", freePort(t), "2181", server).Replace(script)

	cmd := exec.Command("bash", "-c", script+more+"\necho all is there\nread -r end")
	dir = t.TempDir()
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	cmd.Stderr = stderr
	end, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		end.Close()
		_ = cmd.Wait() // zklock may have reaped it
	})
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == "all is there" {
			break
		}
	}
	wrong, err := os.ReadFile(stderr.Name())
	require.NoError(t, err)
	all := strings.Join(said, "\n") + "\n" + string(wrong)
	for _, want := range []string{
		"bob has the lock", "bob has the lock again", "nobody else gets in",
		"all is there",
	} {
		require.Contains(t, said, want, all)
	}
	return dir, "localhost:" + server
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
