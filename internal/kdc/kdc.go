package kdc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Realm is that of a KDC, unless InRealm says otherwise.
const Realm = "EXAMPLE.COM"

// A KDC is a key distribution center with its database. Its methods fail the test.
type KDC struct {
	// Config is the krb5.conf of its clients.
	Config string

	realm   string
	dir     string
	address string
	faked   []string // the environment that fakes the time, if any
	kdc     *exec.Cmd

	mu sync.Mutex // kadmin.local is for one at a time
}

// An Option says what a KDC is to be like.
type Option func(*KDC)

// InRealm names the KDC's realm.
func InRealm(name string) Option { return func(k *KDC) { k.realm = name } }

// Faketime has the KDC read another clock, "+1h" say. It needs Debian's package faketime,
// but not its program, which forks and so cannot be killed for its child.
func Faketime(offset string) Option {
	return func(k *KDC) {
		library := "libfaketime.so.1"
		if found, _ := filepath.Glob("/usr/lib/*/faketime/" + library); len(found) > 0 {
			library = found[0]
		}
		k.faked = []string{"LD_PRELOAD=" + library, "FAKETIME=" + offset}
	}
}

// Start starts a KDC, which is gone when tb ends.
func Start(tb testing.TB, opts ...Option) *KDC {
	tb.Helper()
	k := &KDC{realm: Realm, dir: tb.TempDir()}
	for _, o := range opts {
		o(k)
	}
	MustHave(tb, k.programs()...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	k.address = listener.Addr().String()
	listener.Close()
	k.Config = k.write(tb, "krb5.conf", fmt.Sprintf(krb5Conf, k.realm, k.address))
	k.write(tb, "kdc.conf", fmt.Sprintf(kdcConf, k.realm, k.address, k.dir))
	k.Run(tb, "kdb5_util", "create", "-s", "-P", "only for the test", "-r", k.realm)
	k.serve(tb)
	return k
}

const krb5Conf = `[libdefaults]
 default_realm = %[1]s
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 %[1]s = {
  kdc = %[2]s
 }
`

const kdcConf = `[kdcdefaults]
 kdc_listen = %[2]s
 kdc_tcp_listen = %[2]s
[realms]
 %[1]s = {
  database_name = %[3]s/principal
  key_stash_file = %[3]s/stash
  max_life = 1d
  max_renewable_life = 7d
  default_principal_flags = +preauth
 }
`

// programs are those that a KDC takes.
func (k *KDC) programs() []string {
	needs := []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit"}
	if k.faked != nil {
		needs = append(needs, "faketime")
	}
	return needs
}

// MustHave skips a test that needs programs of Kerberos and has them not. With MUST set,
// it fails.
func MustHave(tb testing.TB, programs ...string) {
	tb.Helper()
	for _, name := range programs {
		if _, err := find(name); err != nil {
			zkserver.Lacking(tb, fmt.Sprintf("kdc: no Kerberos to be had: %v; install "+
				"it (Debian: apt-get install krb5-kdc krb5-admin-server krb5-user "+
				"faketime)", err))
		}
	}
}

// find looks also where only root's PATH does.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err == nil {
			break
		}
		path, err = exec.LookPath(filepath.Join(dir, name))
	}
	return path, err
}

// File is the path of a file in the KDC's directory, where keytabs and caches are.
func (k *KDC) File(name string) string { return filepath.Join(k.dir, name) }

func (k *KDC) write(tb testing.TB, name, text string) (path string) {
	tb.Helper()
	path = k.File(name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func (k *KDC) command(name string, args ...string) *exec.Cmd {
	if path, err := find(name); err == nil {
		name = path
	}
	cmd := exec.Command(name, args...)
	cmd.Env = slices.Concat(os.Environ(), k.faked, []string{
		"KRB5_CONFIG=" + k.Config, "KRB5_KDC_PROFILE=" + k.File("kdc.conf"),
	})
	return cmd
}

// Run runs a program of Kerberos with the KDC's configuration, and returns what it says.
func (k *KDC) Run(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	out, err := k.command(name, args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// serve starts the KDC's process, and waits until it answers.
func (k *KDC) serve(tb testing.TB) {
	tb.Helper()
	k.kdc = k.command("krb5kdc", "-n")
	log, err := os.Create(k.File("log"))
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	k.kdc.Stdout, k.kdc.Stderr = log, log
	dismiss, err := zkserver.StartGuarded(k.kdc)
	if err != nil {
		tb.Fatal(err)
	}
	var why error // once it has ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		why = k.kdc.Wait()
		dismiss()
	}()
	tb.Cleanup(func() {
		if err := k.kdc.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
			<-ended
		}
	})
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", k.address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			text, err := os.ReadFile(log.Name())
			tb.Fatalf("krb5kdc ended (%v): %s%v", why, text, err)
		default:
		}
		if time.Now().After(until) {
			tb.Fatalf("krb5kdc does not answer: %v", err)
		}
	}
}

// Admin has kadmin.local answer a query.
func (k *KDC) Admin(tb testing.TB, query string) string {
	tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.Run(tb, "kadmin.local", "-q", query)
	if strings.Contains(out, "while") { // it exits with 0 all the same
		tb.Fatalf("kadmin.local: %s: %s", query, out)
	}
	return out
}

// Add adds a principal with a random key; options are those of kadmin's addprinc.
func (k *KDC) Add(tb testing.TB, principal, options string) {
	tb.Helper()
	k.Admin(tb, "addprinc "+options+" -randkey "+principal)
}

// Keytab gives principal a new random key and adds that to a keytab in the KDC's
// directory, whose path it returns.
func (k *KDC) Keytab(tb testing.TB, principal, name string) (path string) {
	tb.Helper()
	path = k.File(name)
	k.Admin(tb, "ktadd -k "+path+" "+principal)
	return path
}

// Login logs principal in by a keytab. The tickets are in a cache whose path it returns;
// options are those of kinit.
func (k *KDC) Login(
	tb testing.TB, principal, keytab, cache string, options ...string,
) (path string) {
	tb.Helper()
	path = k.File(cache)
	k.Run(tb, "kinit", slices.Concat([]string{"-k", "-t", keytab, "-c", path}, options,
		[]string{principal})...)
	return path
}
