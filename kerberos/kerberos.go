package kerberos

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zkrecipes/recipes"
)

// An Option changes how [FromKeytab] and [FromCache] log in. Only this package has
// options.
type Option interface{ set(s *settings) error }

type option func(s *settings) error

func (o option) set(s *settings) error { return o(s) }

type settings struct {
	service string
	config  string // the path of krb5.conf
}

// WithConfigFile sets the path of krb5.conf. Default: the first file of KRB5_CONFIG, or
// /etc/krb5.conf if that is not set. The file is read at each handshake.
func WithConfigFile(path string) Option {
	return option(func(s *settings) error {
		if path == "" {
			return errors.New("WithConfigFile: the path is empty")
		}
		s.config = path
		return nil
	})
}

// WithService sets the first part of the servers' principals. Use it if they are not
// zookeeper/host. Default: "zookeeper".
func WithService(name string) Option {
	return option(func(s *settings) error {
		if name == "" || strings.ContainsAny(name, "/@") {
			return fmt.Errorf("WithService: the name is %q: must be the part of a "+
				"principal before the slash", name)
		}
		s.service = name
		return nil
	})
}

// FromKeytab authenticates as principal, "bob@EXAMPLE.COM" or "batch/host@EXAMPLE.COM",
// with its key in keytabFile. Without a realm the one of krb5.conf is used. Use it for
// services. It logs in at the first handshake, and again when its ticket has expired or
// is rejected. It reads the file at each login, so a renewed keytab is used without a
// restart. A file that cannot be used now is an error.
func FromKeytab(
	principal, keytabFile string, opts ...Option,
) (recipes.SASL, error) {
	l, err := newLogin(opts)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	l.source = keytabSource{keytabFile}
	if l.user, err = l.parse(principal); err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	if _, err := readKeytab(keytabFile, l.user); err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	return l, nil
}

// FromCache authenticates with the tickets that kinit has written to a credential cache:
// the file of KRB5CCNAME, or /tmp/krb5cc_UID if that is not set. Use it for people, and
// where another program, such as k5start, keeps a cache. It reads the file at each
// handshake. A ticket that is renewable is renewed after three quarters of its life, for
// this process alone: the file stays as it is. The principal is that of the cache, and
// must stay the same. The file must belong to the user of this process, with mode 0600,
// since what is in it chooses the principal. A file that cannot be used now
// is an error; an expired ticket is one only at a handshake.
func FromCache(opts ...Option) (recipes.SASL, error) {
	l, err := fromCache(cacheFile, opts)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	return l, nil
}

func fromCache(where func() (string, error), opts []Option) (*login, error) {
	l, err := newLogin(opts)
	if err != nil {
		return nil, err
	}
	file, err := where()
	if err != nil {
		return nil, err
	}
	l.source = cacheSource{file}
	cached, user, err := readCache(file)
	l.user = user
	l.keep(cached)
	return l, err
}

func newLogin(opts []Option) (*login, error) {
	first, _, _ := strings.Cut(os.Getenv("KRB5_CONFIG"), string(os.PathListSeparator))
	s := settings{service: "zookeeper", config: cmp.Or(first, "/etc/krb5.conf")}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("option %d is nil", i+1)
		}
		if err := o.set(&s); err != nil {
			return nil, err
		}
	}
	l := &login{settings: s, services: map[string]ticket{}}
	_, err := readConfig(s.config)
	return l, err
}

// A principal is a name in a realm.
type principal struct {
	name  types.PrincipalName
	realm string
}

func (p principal) String() string {
	return p.name.PrincipalNameString() + "@" + p.realm
}

// parse reads "name@REALM", "name/host@REALM", or either without a realm.
func (s settings) parse(text string) (principal, error) {
	name, realm, _ := strings.Cut(text, "@")
	if realm == "" {
		config, err := readConfig(s.config)
		if err != nil {
			return principal{}, err
		}
		realm = config.LibDefaults.DefaultRealm
	}
	p := principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, name), realm}
	for _, part := range append(p.name.NameString, realm) {
		if part == "" || strings.ContainsAny(part, "@ ") {
			return principal{}, fmt.Errorf("principal %q: must be name@REALM or "+
				"name/host@REALM", text)
		}
	}
	return p, nil
}
