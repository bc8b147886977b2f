package kerberos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
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
	user := principal{types.NewPrincipalName(1, "bob"), "EXAMPLE.COM"}
	file := write(t, "keytab", "")
	check := func(text []byte) {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		_, keytab := readKeytab(file, user)
		_, _, cache := readCache(file)
		for _, err := range []error{keytab, cache} {
			if err != nil {
				require.NotContains(t, err.Error(), "hunter")
				require.Contains(t, err.Error(), file)
			}
		}
	}
	for i := range whole {
		check(whole[:i])
		for _, b := range []byte{0, 4, 0x7f, 0xff} {
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
	nonsense := write(t, "krb5.conf", "[libdefaults]\n nonsense\n")
	for _, c := range []struct {
		principal, file string
		option          Option
		want            string
	}{
		{"bob", "/no/such", config, "kerberos: keytab: open /no/such: no such file"},
		{"eve", file, config, "has no AES key of eve@EXAMPLE.COM"},
		{"bob@ELSEWHERE", file, config, "has no AES key of bob@ELSEWHERE"},
		{"", file, config, `principal "": must be name@REALM`},
		{"a b", file, config, `principal "a b": must be name@REALM`},
		{"a@b@c", file, config, `principal "a@b@c": must be name@REALM`},
		{"bob/", file, config, `principal "bob/": must be name@REALM`},
		{"bob", file, nil, "option 1 is nil"},
		{"bob", file, WithConfigFile(""), "WithConfigFile: the path is empty"},
		{"bob", file, WithService(""), `WithService: the name is "": must be`},
		{"bob", file, WithService("a/b"), `WithService: the name is "a/b": must be`},
		{"bob", file, WithConfigFile("/no/such"), "krb5.conf: configuration file could"},
		{"bob", file, WithConfigFile(nonsense), "krb5.conf: error processing libdef"},
	} {
		err := fromKeytabError(c.principal, c.file, c.option)
		require.ErrorContains(t, err, c.want)
	}
	require.ErrorContains(t, fromCacheError("/no/such", config),
		"credential cache: open /no/such: no such file or directory; run kinit")
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
	now := time.Now()
	l.keep(ticket{end: now.Add(time.Hour), renewTill: now.Add(2 * time.Hour)})
	require.NotNil(t, l.renewal)
	gone := weak.Make(l)
	runtime.KeepAlive(l)
	l = nil // nothing has it now
	require.Eventually(t, func() bool {
		runtime.GC()
		return gone.Value() == nil
	}, 10*time.Second, time.Millisecond)
}

// A stuckSource asks a KDC that never answers.
type stuckSource struct{ answer chan struct{} }

func (stuckSource) renews() bool { return false }

func (s stuckSource) grant(context.Context, *login, *config.Config) (ticket, error) {
	<-s.answer
	return ticket{}, errors.New("too late")
}

// A handshake that ends takes Begin along, although gokrb5's calls cannot be cancelled.
func TestBeginEndsWithItsCtx(t *testing.T) {
	s, err := FromKeytab("bob", write(t, "k", string(testKeytab(t))), testConfig(t))
	require.NoError(t, err)
	source := stuckSource{make(chan struct{})}
	defer close(source.answer)
	s.(*login).source = source
	over := errors.New("the handshake is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	_, err = s.Begin(ctx, "localhost")
	require.ErrorIs(t, err, over)
	require.ErrorContains(t, err, "the KDC does not answer")
}
