package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// A password of SASL comes from a file, opens what it is for, and is never shown.
func TestSASLDigest(t *testing.T) {
	servers := zktest.Start(t, zktest.WithSASLUsers(map[string]string{
		"bob": "hunter2", "ann": "secret",
	})).Addrs()[0]
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	run := func(flags ...string) (code int, said string) {
		var out, err bytes.Buffer
		args := append([]string{"zklock", "--servers", servers}, flags...)
		code = zklock(t.Context(), args, &out, &err)
		require.NotContains(t, err.String()+out.String(), "hunter")
		return code, err.String()
	}
	bob := file("bob", "hunter2\n")
	code, said := run("--sasl-digest", "bob:@"+bob, "run", "/a", "true")
	require.Zero(t, code, said)
	for login, want := range map[string]string{
		"bob:@" + file("wrong", "hunter3"): `DIGEST-MD5 as "bob": the server refuses`,
		"eve:@" + bob:                      `DIGEST-MD5 as "eve": the server refuses`,
		"ann:@" + file("ann", "secret"):    "not authenticated",
	} {
		code, said := run("--sasl-digest", login, "run", "/a", "true")
		require.Equal(t, exitNoPermission, code, said)
		require.Contains(t, said, want)
	}
	for login, want := range map[string]string{
		"bob:hunter2": "want USER:@FILE", ":@" + bob: "want USER:@FILE",
		"bob:@":                       "want USER:@FILE",
		"bob:@/no/such/file":          "no such file",
		"bob:@" + file("empty", "\n"): "empty: has no password",
	} {
		code, said := run("--sasl-digest", login, "run", "/a", "true")
		require.Equal(t, exitUsage, code, login)
		require.Contains(t, said, want)
	}
	require.NoError(t, os.Chmod(bob, 0o644)) //nolint:gosec // that is the point
	_, said = run("--sasl-digest", "bob:@"+bob, "ls", "/a")
	require.Contains(t, said, "--sasl-digest bob:@"+bob+": others than its owner may")

	conn, err := connectAlone([]string{servers})
	require.NoError(t, err)
	defer conn.Close()
	_, _, err = conn.Children("/a")
	require.ErrorIs(t, err, zk.ErrNoAuth, "what is created is the creator's")
}
