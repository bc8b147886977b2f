package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/kdc"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// zklock logs in by Kerberos to a real ZooKeeper, with what kinit left or with a keytab.
func TestKerberos(t *testing.T) {
	t.Setenv("ZOOKEEPER_RUN", "local") // a server in a container cannot read the keytab
	k := kdc.Start(t)
	for _, principal := range []string{"zookeeper/localhost", "bob", "ann", "eve"} {
		k.Add(t, principal, "")
	}
	server := zkserver.Start(t, zkserver.Kerberos("zookeeper/localhost@"+kdc.Realm,
		k.Keytab(t, "zookeeper/localhost", "server.keytab"), k.Config)).Servers[0]
	_, port, err := net.SplitHostPort(server.Addr)
	require.NoError(t, err)
	bob, ann := k.Keytab(t, "bob", "bob.keytab"), k.Keytab(t, "ann", "ann.keytab")
	eve := k.Keytab(t, "eve", "eve.keytab")
	k.Admin(t, "modprinc -allow_tix eve") // before zklock reaps what the test starts
	t.Setenv("KRB5_CONFIG", k.Config)
	t.Setenv("KRB5CCNAME", "FILE:"+k.Login(t, "ann", ann, "ann.cache"))
	run := func(flags ...string) (code int, said string) {
		var out, err bytes.Buffer
		args := append([]string{"zklock", "--servers", "localhost:" + port}, flags...)
		code = zklock(t.Context(), args, &out, &err)
		return code, err.String()
	}
	code, said := run("--keytab", "bob:@"+bob, "run", "/a", "true")
	require.Zero(t, code, said)
	code, said = run("--kerberos", "run", "/a", "true")
	require.Equal(t, exitNoPermission, code, said)
	require.Contains(t, said, "not authenticated", "what is created is bob's")
	code, said = run("--kerberos", "run", "/b", "true")
	require.Zero(t, code, said)
	code, said = run("--keytab", "eve:@"+eve, "run", "/a", "true")
	require.Equal(t, exitNoPermission, code)
	require.Contains(t, said, `SASL with GSSAPI as "eve@EXAMPLE.COM": the KDC rejects`)

	require.NoError(t, os.Chmod(bob, 0o644)) //nolint:gosec // that is the point
	_, said = run("--keytab", "bob:@"+bob, "ls", "/a")
	require.Contains(t, said, "--keytab bob:@"+bob+": others than its owner may")
	for want, flags := range map[string][]string{
		"exclude each other":                {"--kerberos", "--keytab", "bob:@" + bob},
		"--keytab: want PRINCIPAL:@FILE":    {"--keytab", bob},
		"has no AES key of eve@EXAMPLE.COM": {"--keytab", "eve:@" + bob},
		"--keytab: kerberos: keytab: open":  {"--keytab", "bob:@/no/such/file"},
	} {
		code, said := run(append(flags, "ls", "/a")...)
		require.Equal(t, exitUsage, code, said)
		require.Contains(t, said, want)
	}
	t.Setenv("KRB5CCNAME", filepath.Join(t.TempDir(), "none"))
	code, said = run("--kerberos", "ls", "/a")
	require.Equal(t, exitUsage, code, said)
	require.Contains(t, said, "--kerberos: kerberos: credential cache: open")
}
