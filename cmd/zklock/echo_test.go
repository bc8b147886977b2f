package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever puts credentials into the wrong place does not find them in a log.
func TestCredentialsAreNotEchoed(t *testing.T) {
	for _, shape := range []string{
		"u:hunter2", "digest:u:hunter2", "auth:u:hunter2", "u:hunter2@zk1:2181",
		"zk://u:hunter2@zk1:2181", "ZOOKEEPER_AUTH=digest:u:hunter2", `u:"hunter2\`,
		"u:hunter2\nx", "u:hunter2 ", "u:hunter2/x", "ü:hunter2é", "digest::hunter2",
	} {
		for _, line := range []string{
			"SECRET", "SECRET ls /a", "-SECRET ls /a", "--SECRET ls /a",
			"--auht=SECRET ls /a", "help SECRET", "--help SECRET", "ls --help SECRET",
			"completion SECRET", "ls SECRET", "ls /a SECRET", "ls SECRET /a",
			"ls --password=SECRET /a", "ls /a -SECRET", "watch SECRET", "doctor SECRET",
			"revoke SECRET",
			"run SECRET true", "run /a SECRET", "run /a -- SECRET",
			"run /a --auth=SECRET true", "run -xSECRET /a true", "run -E SECRET /a true",
			"run -w SECRET /a true", "run --semaphore=SECRET /a true",
			"run -n=SECRET /a true", "once SECRET true", "once --per SECRET /a true",
			"once --per 1h SECRET true", "lead SECRET true", "lead /a SECRET",
			"--session-timeout SECRET ls /a", "ls --json=SECRET /a",
			"ls --limit SECRET /a",
			"--servers SECRET ls /a", "--servers zk1:2181,SECRET ls /a",
			"--servers zk1/a,SECRET ls /a", "--servers zk1/SECRET/ ls /a",
			"--servers zk1 --chroot SECRET ls /a",
			"--servers zk1/b --chroot SECRET ls /a",
			"--servers zk1 --acl SECRET ls /a",
			"--servers zk1 --auth @SECRET ls /a", "--servers zk1 --auth @@SECRET ls /a",
			"--servers zk1 --auth hunter2 ls /a", "--servers zk1 --tls-ca SECRET ls /a",
			"--servers zk1 --tls-cert SECRET --tls-key SECRET ls /a",
			"--servers zk1 --tls-cert echo.go --tls-key SECRET ls /a",
			"--servers zk1 --tls-cert SECRET ls /a",
			"--servers zk1 --sasl-digest SECRET ls /a",
			"--servers zk1 --sasl-digest u:@SECRET ls /a",
			"--servers zk1 --sasl-digest SECRET:@/dev/null ls /a",
			"--servers zk1 --keytab SECRET ls /a",
			"--servers zk1 --keytab u:@SECRET ls /a",
			"--servers zk1 --keytab SECRET:@/dev/null ls /a",
			"--servers zk1 --kerberos=SECRET ls /a",
		} {
			args := append([]string{"zklock"}, strings.Fields(line)...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "SECRET", shape)
			}
			var out, err bytes.Buffer
			code := zklock(t.Context(), args, &out, &err)
			if line != "ls --help SECRET" { // which is what was asked for
				require.NotZero(t, code, "%q", args)
				require.NotEmpty(t, err.String(), "%q", args)
			}
			require.NotContains(t, err.String()+out.String(), "hunter2", "%q", args)
		}
	}
}

// What does not look like credentials is shown.
func TestEcho(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"hunter": "hunter", "/locks/a:b": "/locks/a:b", "-c": "-c", "": "",
		"--auth=x": "--auth", "a=b": "a=b", "u:p": notShown, "--u:p": notShown,
	} {
		require.Equal(t, want, echo(argument), argument)
	}
	for host, want := range map[string]bool{
		"zk1": true, "zk1:2181": true, "zk1:99999": true, "[::1]:2181": true, "::1": true,
		"": true, "zk1:port": false, "a:b:1": false, "u@zk1": false, "[u:p]:1": false,
	} {
		require.Equal(t, want, isAddress(host), host)
	}
}
