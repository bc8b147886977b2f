package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/dial"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// defaultConnectTimeout bounds the first handshake. A session that was established once
// survives any outage.
const defaultConnectTimeout = 10 * time.Second

// authVariable has the credentials where no flag has. It is for zklock alone.
const authVariable = "ZOOKEEPER_AUTH"

// A connection is what the connection flags say.
type connection struct {
	stderr         io.Writer
	warned         map[string]bool // of the files of flags
	servers        string
	chroot         string
	sessionTimeout time.Duration
	connectTimeout time.Duration
	tlsCA          string
	tlsCert        string
	tlsKey         string
	auth           []string
	saslDigest     string
	kerberos       bool
	keytab         string
	acl            []string
}

func (c *connection) flags() []cli.Flag {
	const category = "connection"
	return []cli.Flag{
		&cli.StringFlag{
			Name: "servers", Destination: &c.servers, Category: category,
			Sources: cli.EnvVars("ZOOKEEPER_SERVERS", "ZKHOSTS"), HideDefault: true,
			Usage: "connect `STRING`: host:port,host:port/chroot",
		},
		&cli.StringFlag{
			Name: "chroot", Destination: &c.chroot, Category: category,
			Usage: "`PATH` that all other paths are below",
		},
		&cli.DurationFlag{
			Name: "session-timeout", Destination: &c.sessionTimeout, Category: category,
			Value: 30 * time.Second,
			Usage: "`DURATION` for which the lock of a dead zklock remains",
		},
		&cli.DurationFlag{
			Name: "connect-timeout", Destination: &c.connectTimeout, Category: category,
			Value: defaultConnectTimeout,
			Usage: "`DURATION` to wait for ZooKeeper's first response; the default " +
				"of once is --per; lead keeps trying",
		},
		&cli.StringFlag{
			Name: "tls-ca", Destination: &c.tlsCA, Category: category, TakesFile: true,
			Usage: "`FILE` with the CA certificates for the servers",
		},
		&cli.StringFlag{
			Name: "tls-cert", Destination: &c.tlsCert, Category: category,
			TakesFile: true, Usage: "`FILE` with this client's certificate",
		},
		&cli.StringFlag{
			Name: "tls-key", Destination: &c.tlsKey, Category: category,
			TakesFile: true, Usage: "`FILE` with the key of that certificate",
		},
		&cli.StringSliceFlag{
			Name: "auth", Destination: &c.auth, Category: category,
			Sources: cli.EnvVars(authVariable), HideDefault: true,
			Usage: "`digest:USER:PASSWORD`, or @FILE that contains it (all users can " +
				"see a command line); may be repeated; CMD does not get " + authVariable +
				": if CMD runs zklock, it must set that again, or use @FILE",
		},
		&cli.StringFlag{
			Name: "sasl-digest", Destination: &c.saslDigest, Category: category,
			Usage: "`USER:@FILE`: log in by SASL with DIGEST-MD5, as USER with the " +
				"password in FILE",
		},
		&cli.BoolFlag{
			Name: "kerberos", Destination: &c.kerberos, Category: category,
			Usage: "log in by SASL with Kerberos, with the tickets of kinit " +
				"(KRB5CCNAME, KRB5_CONFIG)",
		},
		&cli.StringFlag{
			Name: "keytab", Destination: &c.keytab, Category: category,
			Usage: "`PRINCIPAL:@FILE`: log in by SASL with Kerberos, as PRINCIPAL with " +
				"the key in the keytab FILE",
		},
		&cli.StringSliceFlag{
			Name: "acl", Destination: &c.acl, Category: category, HideDefault: true,
			Usage: "permissions of all znodes that it creates: `creator`, world, or " +
				"SCHEME:ID:PERMS with PERMS from cdrwa; may be repeated (default: " +
				"creator with --auth, --tls-cert or a SASL login, else world)",
		},
	}
}

// A target is a connection that was checked, as far as that goes without a server.
type target struct {
	servers        string // without a chroot
	chroot         string // "/" where there is none
	sessionTimeout time.Duration
	connectTimeout time.Duration
	options        []recipes.ClientOption
	acl            []zk.ACL    // of all that is created
	oddScheme      string      // of --auth, if it is not digest
	tls            *tls.Config // nil: none
}

// check refuses what no server has to be asked about.
func (c *connection) check() (*target, error) {
	if c.servers == "" {
		return nil, usage("no servers: give --servers, or set ZOOKEEPER_SERVERS")
	}
	servers, chroot, err := dial.ParseConnectString(c.servers)
	if err != nil {
		return nil, usage("--servers: %w", hideServers(err, c.servers))
	}
	if c.chroot != "" {
		if chroot != "/" {
			return nil, usage("--chroot %s: --servers has one already, %s",
				echo(c.chroot), chroot)
		}
		if err := zkpath.Check(c.chroot); err != nil {
			return nil, usage("--chroot: %w", hide(err, c.chroot, wantPath))
		}
		chroot = c.chroot
	}
	if c.sessionTimeout < time.Second {
		return nil, usage("--session-timeout %v: must be 1s or more", c.sessionTimeout)
	}
	if c.connectTimeout <= 0 {
		return nil, usage("--connect-timeout %v: must be positive", c.connectTimeout)
	}
	to := &target{
		servers: strings.Join(servers, ","), chroot: chroot,
		sessionTimeout: c.sessionTimeout, connectTimeout: c.connectTimeout,
	}
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	if config != nil {
		to.options, to.tls = append(to.options, recipes.WithTLS(config)), config
	}
	login, err := c.login()
	if err != nil {
		return nil, err
	}
	if login != nil {
		to.options = append(to.options, recipes.WithSASL(login))
	}
	for _, value := range c.auth {
		scheme, auth, err := c.parseAuth(value)
		if err != nil {
			return nil, err
		}
		to.options = append(to.options, recipes.WithAuth(scheme, auth))
		if scheme != "digest" {
			to.oddScheme = scheme
		}
	}
	to.acl, err = c.rights()
	to.options = append(to.options, recipes.WithChrootACL(to.acl))
	return to, err
}

// secret reads a file with credentials. It names, once, a file that users other than its
// owner may read or change, or that belongs to another one: a user who changes it can put
// in an account of their own, to which all that is created then belongs.
func (c *connection) secret(flag, file string) ([]byte, error) {
	opened, err := os.Open(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat() // of what is read, whatever the name is of by now
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && !c.warned[flag] {
		c.warnOf(flag, info)
	}
	return io.ReadAll(opened)
}

func (c *connection) warnOf(flag string, info os.FileInfo) {
	if c.warned == nil {
		c.warned = map[string]bool{}
	}
	c.warned[flag] = true
	if mode := info.Mode().Perm(); mode&0o066 != 0 {
		say(c.stderr, fmt.Sprintf("%s: others than its owner may read or change "+
			"the file (mode %04o); chmod 600 it", flag, mode))
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner != 0 && owner != os.Geteuid() {
		say(c.stderr, fmt.Sprintf("%s: the file belongs to another user (%d), who may "+
			"change it; chown it", flag, owner))
	}
}

// publicEnviron is the environment without credentials, for the processes that zklock
// starts: jobs print theirs, and any process of the user can read that of another.
func publicEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, authVariable+"=")
	})
}

// parseAuth reads "scheme:credentials", or "@FILE" with that in it. No error shows any of
// it.
func (c *connection) parseAuth(
	value string,
) (scheme string, auth []byte, err error) {
	from := "--auth"
	if file, ok := strings.CutPrefix(value, "@"); ok {
		from = "--auth @" + file
		text, err := c.secret(from, file)
		if err != nil {
			return "", nil, usage("--auth: %w", hide(err, file, wantFile))
		}
		value = strings.TrimRight(string(text), "\r\n")
	}
	scheme, credentials, ok := strings.Cut(value, ":")
	if !ok || scheme == "" || credentials == "" {
		return "", nil, usage("%s: want SCHEME:CREDENTIALS, as digest:USER:PASSWORD",
			from)
	}
	if scheme == "digest" && !strings.Contains(credentials, ":") {
		return "", nil, usage("%s: want digest:USER:PASSWORD", from)
	}
	return scheme, []byte(credentials), nil
}

// tls is nil where no flag asks for it.
func (c *connection) tls() (*tls.Config, error) {
	if c.tlsCA == "" && c.tlsCert == "" && c.tlsKey == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.tlsCA != "" {
		pem, err := os.ReadFile(c.tlsCA)
		if err != nil {
			return nil, usage("--tls-ca: %w", hide(err, c.tlsCA, wantFile))
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usage("--tls-ca %s: has no certificate", echo(c.tlsCA))
		}
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return nil, usage("--tls-cert and --tls-key go together")
	}
	if c.tlsCert != "" {
		pair, err := c.keyPair("--tls-cert", c.tlsCert, "--tls-key", c.tlsKey)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// keyPair reads a certificate and its key from the files that two flags name.
func (c *connection) keyPair(
	certFlag, certFile, keyFlag, keyFile string,
) (pair tls.Certificate, err error) {
	cert, err := os.ReadFile(certFile) //nolint:gosec // the user names it
	if err != nil {
		return pair, usage("%s: %w", certFlag, hide(err, certFile, wantFile))
	}
	key, err := c.secret(keyFlag+" "+keyFile, keyFile)
	if err != nil {
		return pair, usage("%s: %w", keyFlag, hide(err, keyFile, wantFile))
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		err = usage("%s %s, %s %s: %w; want a certificate and its key in PEM, the key "+
			"not encrypted", certFlag, echo(certFile), keyFlag, echo(keyFile), err)
	}
	return pair, err
}

// connect opens a session below the chroot, and creates the chroot if it is missing.
func (t *target) connect(ctx context.Context) (*recipes.Client, error) {
	return t.open(ctx, t.options...)
}

// look opens a session for those who change nothing: a chroot that is not there is
// refused.
func (t *target) look(ctx context.Context) (*recipes.Client, error) {
	client, err := t.open(ctx, append(slices.Clip(t.options),
		recipes.WithExistingChroot())...)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, usage("chroot %s: there is no such znode", t.chroot)
	}
	return client, err
}

func (t *target) open(
	ctx context.Context, options ...recipes.ClientOption,
) (*recipes.Client, error) {
	limit := fmt.Errorf("no response within %v: %w", t.connectTimeout,
		recipes.ErrUnavailable)
	ctx, cancel := context.WithTimeoutCause(ctx, t.connectTimeout, limit)
	defer cancel()
	servers := t.servers
	if t.chroot != "/" {
		servers += t.chroot
	}
	client, err := recipes.Connect(ctx, servers, t.sessionTimeout, options...)
	if err == nil {
		return client, nil
	}
	if errors.Is(err, zk.ErrAuthFailed) && t.oddScheme != "" {
		return nil, fmt.Errorf("%w; --auth has the scheme %q: want "+
			"digest:USER:PASSWORD", err, t.oddScheme)
	}
	if cut := (&exitError{}); errors.As(err, &cut) || codeOf(err) != exitSoftware {
		return nil, err
	}
	return nil, exit(exitUnavailable, "%w", err)
}
