package kerberos

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/stretchr/testify/require"
)

// secret is in the keys of the tests' files.
const secret = "hunter2hunter2hunter2hunter2"

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func testConfig(t *testing.T) Option {
	t.Helper()
	return WithConfigFile(write(t, "krb5.conf", "includedir /nowhere\n[libdefaults]\n"+
		" default_realm = EXAMPLE.COM\n default_tkt_enctypes = rc4-hmac\n"))
}

// testKeytab has an AES key of bob's, whose bytes are the secret.
func testKeytab(t *testing.T) []byte {
	t.Helper()
	keys := keytab.New()
	require.NoError(t, keys.AddEntry("bob", "EXAMPLE.COM", "x", time.Now(), 1,
		etypeID.AES256_CTS_HMAC_SHA1_96))
	keys.Entries[0].Key.KeyValue = []byte(secret + "1234")
	text, err := keys.Marshal()
	require.NoError(t, err)
	return text
}

// A damaged file is an error that shows nothing of it, wherever it is cut or changed.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	whole := testKeytab(t)
	config := testConfig(t)
	file := write(t, "keytab", "")
	check := func(text []byte) {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		for _, err := range []error{
			fromKeytabError("bob", file, config), fromCacheError(file, config),
		} {
			if err != nil {
				require.NotContains(t, err.Error(), "hunter")
				require.Contains(t, err.Error(), file)
			}
		}
	}
	for i := range whole {
		check(whole[:i])
		for _, b := range []byte{0, 1, 4, 0x7f, 0xff} {
			changed := append([]byte(nil), whole...)
			changed[i] = b
			check(changed)
			changed[1] = 4 // the version of a cache
			check(changed)
		}
	}
	require.ErrorContains(t, fromKeytabError("bob", write(t, "k", ""), config),
		"is not a keytab, or is damaged")
	require.ErrorContains(t, fromCacheError(write(t, "c", ""), config),
		"is not one, or is damaged")
}

func fromKeytabError(principal, file string, opts ...Option) error {
	_, err := FromKeytab(principal, file, opts...)
	return err
}

func fromCacheError(file string, opts ...Option) error {
	_, err := fromCache(func() (string, error) { return file, nil }, opts)
	return err
}

func TestArgumentsThatAreWrong(t *testing.T) {
	file, config := write(t, "keytab", string(testKeytab(t))), testConfig(t)
	for want, err := range map[string]error{
		"kerberos: keytab: open /no/such: no such file": fromKeytabError(
			"bob", "/no/such", config),
		"has no AES key of eve@EXAMPLE.COM":       fromKeytabError("eve", file, config),
		"has no AES key of bob@ELSEWHERE":         fromKeytabError("bob@ELSEWHERE", file, config),
		`principal "": must be name@REALM`:        fromKeytabError("", file, config),
		`principal "a b": must be name@REALM`:     fromKeytabError("a b", file, config),
		`principal "a@b@c": must be name@REALM`:   fromKeytabError("a@b@c", file, config),
		`principal "bob/": must be name@REALM`:    fromKeytabError("bob/", file, config),
		"option 2 is nil":                         fromKeytabError("bob", file, config, nil),
		"WithConfigFile: the path is empty":       fromKeytabError("bob", file, WithConfigFile("")),
		`WithService: the name is "": must`:       fromKeytabError("bob", file, WithService("")),
		`WithService: the name is "a/b": must be`: fromKeytabError("bob", file, WithService("a/b")),
		"krb5.conf: configuration file could not": fromKeytabError("bob", file,
			WithConfigFile("/no/such")),
		"krb5.conf: error processing libdefaults": fromKeytabError("bob", file,
			WithConfigFile(write(t, "c", "[libdefaults]\n nonsense\n"))),
		"credential cache: open /no/such": fromCacheError("/no/such", config),
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, fromKeytabError("bob", file, config))
}

// The environment names the files as it does for MIT's programs.
func TestEnvironment(t *testing.T) {
	config := write(t, "krb5.conf", "[libdefaults]\n default_realm = EXAMPLE.COM\n")
	t.Setenv("KRB5_CONFIG", config+":/no/such")
	require.NoError(t, fromKeytabError("bob", write(t, "k", string(testKeytab(t)))))
	for name, want := range map[string]string{
		"": fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()), "FILE:/a": "/a", "/a:b": "/a:b",
	} {
		t.Setenv("KRB5CCNAME", name)
		path, err := cacheFile()
		require.NoError(t, err)
		require.Equal(t, want, path)
	}
	for _, name := range []string{"KEYRING:persistent:0", "KCM:", "DIR:/a", "MEMORY:a"} {
		t.Setenv("KRB5CCNAME", name)
		_, err := FromCache()
		require.ErrorContains(t, err, "KRB5CCNAME="+name+": must be FILE:path")
	}
}

// No format prints a key.
func TestALoginIsPrintedWithoutItsKeys(t *testing.T) {
	s, err := FromKeytab("bob", write(t, "k", string(testKeytab(t))), testConfig(t))
	require.NoError(t, err)
	l := s.(*login)
	l.keep(ticket{end: time.Now().Add(time.Hour)})
	l.granting.key.KeyValue = []byte(secret)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, `GSSAPI as "bob@EXAMPLE.COM"`, fmt.Sprintf(format, s))
	}
}

// A login that nobody uses any more is not renewed for days.
func TestAnUnusedLoginGoes(t *testing.T) {
	l := &login{source: cacheSource{}}
	l.keep(ticket{end: time.Now().Add(time.Hour), renewTill: time.Now().Add(2 * time.Hour)})
	require.NotNil(t, l.renewal)
	gone := weak.Make(l)
	runtime.KeepAlive(l)
	l = nil //nolint:ineffassign // so that nothing has it
	require.Eventually(t, func() bool {
		runtime.GC()
		return gone.Value() == nil
	}, 10*time.Second, time.Millisecond)
}
