package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// A usageError is the caller's.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// flags are what the command was told.
type flags struct {
	listen                 []string
	public                 bool
	chroot, admin          string
	servers                int
	tick                   time.Duration
	minSession, maxSession time.Duration
	slowCommit, slowClose  time.Duration
	eagerACL, shuffle      bool
	reconfig, readOnly     bool
	keeper                 bool
	keeperUnknown          []zktest.Op
	saslUsers              map[string]string
	super                  string // USER:PASSWORD
	secure                 secure
	containerCheck         time.Duration
	eof, withParent        bool
	version                bool
	seed                   uint64
}

// flagOf names the flag of an option of package zktest.
var flagOf = map[string]string{
	"Listen": "listen", "Servers": "servers", "Tick": "tick", "Seed": "seed",
	"MinSessionTimeout": "min-session", "MaxSession": "max-session",
	"SlowCommit": "slow-commit", "SlowClose": "slow-close",
	"ContainerCheck": "container-check", "EagerACLCheck": "eager-acl",
	"Shuffle": "shuffle", "SuperUser": "super", "SASLUsers": "sasl-user",
	"Reconfig": "reconfig", "ReadOnlyMode": "read-only", "Keeper": "keeper",
	"TLS": "tls-cert",
}

func (f *flags) set() *flag.FlagSet {
	s := flag.NewFlagSet("zktest", flag.ContinueOnError)
	s.SetOutput(io.Discard) // an error is one line, and the help is the doc
	f.listen, f.tick = []string{"127.0.0.1:0"}, 2*time.Second
	f.containerCheck = time.Minute
	s.Func("listen", "", func(text string) error {
		f.listen = strings.Split(text, ",")
		return nil
	})
	s.BoolVar(&f.public, "public", false, "")
	s.IntVar(&f.servers, "servers", 1, "")
	for name, d := range map[string]*time.Duration{
		"tick": &f.tick, "min-session": &f.minSession, "max-session": &f.maxSession,
		"slow-commit": &f.slowCommit, "slow-close": &f.slowClose,
		"container-check": &f.containerCheck,
	} {
		s.Func(name, "", func(text string) (err error) {
			if *d, err = time.ParseDuration(text); err != nil {
				return errors.New("want a duration, such as 200ms")
			}
			return nil
		})
	}
	s.BoolVar(&f.eagerACL, "eager-acl", false, "")
	s.BoolVar(&f.shuffle, "shuffle", false, "")
	s.BoolVar(&f.reconfig, "reconfig", false, "")
	s.BoolVar(&f.readOnly, "read-only", false, "")
	s.BoolVar(&f.keeper, "keeper", false, "")
	s.Func("keeper-unknown", "", func(text string) error {
		for name := range strings.SplitSeq(text, ",") {
			op, ok := ops[name]
			if !ok || op == zktest.Any {
				return errors.New("want requests, such as set-watches,create-container")
			}
			f.keeperUnknown = append(f.keeperUnknown, op)
		}
		return nil
	})
	s.Func("sasl-user", "", func(text string) error {
		user, password, ok := strings.Cut(text, ":")
		if !ok || user == "" {
			return errors.New("want USER:PASSWORD")
		}
		if f.saslUsers == nil {
			f.saslUsers = map[string]string{}
		}
		f.saslUsers[user] = password
		return nil
	})
	s.StringVar(&f.super, "super", "", "")
	f.secure.set(s)
	s.Uint64Var(&f.seed, "seed", 0, "")
	s.StringVar(&f.chroot, "chroot", "", "")
	s.StringVar(&f.admin, "admin", "127.0.0.1:0", "")
	s.BoolVar(&f.eof, "eof", false, "")
	s.BoolVar(&f.withParent, "with-parent", false, "")
	s.BoolVar(&f.version, "version", false, "")
	return s
}

// parse refuses here what package zktest does not refuse.
func parse(args []string) (flags, error) {
	var f flags
	s := f.set()
	err := s.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return f, err
	case err != nil:
		return f, usageError{fmt.Errorf("%w (-help lists the flags)", err)}
	case s.NArg() > 0:
		return f, usageError{
			fmt.Errorf("%q: want flags only (-help lists them)", s.Arg(0)),
		}
	}
	if err := f.checkListen(s); err != nil {
		return f, err
	}
	if user, _, ok := strings.Cut(f.super, ":"); f.super != "" && (!ok || user == "") {
		return f, usageError{fmt.Errorf("-super %q: want USER:PASSWORD", f.super)}
	}
	if f.keeperUnknown != nil && !f.keeper {
		return f, usageError{errors.New("-keeper-unknown: want -keeper, too")}
	}
	if err := f.secure.load(); err != nil {
		return f, err
	}
	f.chroot = strings.TrimSuffix(f.chroot, "/")
	if f.chroot != "" && !strings.HasPrefix(f.chroot, "/") {
		return f, usageError{fmt.Errorf("-chroot %q: want a path that begins with /",
			f.chroot)}
	}
	return f, checkAdmin(f.admin)
}

// checkListen keeps the servers from strangers, unless that is asked for. A list of
// addresses says how many servers there are.
func (f *flags) checkListen(s *flag.FlagSet) error {
	counted := false
	s.Visit(func(one *flag.Flag) { counted = counted || one.Name == "servers" })
	if !counted {
		f.servers = len(f.listen)
	}
	for _, addr := range f.listen {
		if addr == "" {
			return usageError{fmt.Errorf("-listen %q: want HOST:PORT",
				strings.Join(f.listen, ","))}
		}
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			continue // package zktest says so
		}
		if everywhere(host) && !f.public {
			return usageError{fmt.Errorf("-listen %s: any machine could connect; "+
				"want an address such as 127.0.0.1:2181, or -public", addr)}
		}
	}
	return nil
}

// everywhere reports whether any machine can reach a server that listens on host. An IPv6
// address may have a zone, which net.ParseIP does not take: "::%lo" listens on all
// interfaces, too. So does 0.0.0.0 in the form of IPv6.
func everywhere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.WithZone("").Unmap().IsUnspecified()
}

// checkAdmin keeps others than this machine's users from disturbing the servers.
func checkAdmin(addr string) error {
	if addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError{fmt.Errorf("-admin %q: %w", addr, err)}
	}
	if !loopback(host) {
		return usageError{fmt.Errorf(
			"-admin %q: want a loopback address, such as 127.0.0.1:0", addr,
		)}
	}
	return nil
}

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (f *flags) options() []zktest.Option {
	options := []zktest.Option{
		zktest.WithListen(f.listen...), zktest.WithServers(f.servers),
		zktest.WithTick(f.tick), zktest.WithSeed(f.seed),
		zktest.WithMinSessionTimeout(f.minSession), zktest.WithMaxSession(f.maxSession),
		zktest.WithSlowCommit(f.slowCommit), zktest.WithSlowClose(f.slowClose),
		zktest.WithContainerCheck(f.containerCheck),
	}
	if f.eagerACL {
		options = append(options, zktest.WithEagerACLCheck())
	}
	if f.shuffle {
		options = append(options, zktest.WithShuffle())
	}
	if f.readOnly {
		options = append(options, zktest.WithReadOnlyMode())
	}
	if f.keeper {
		options = append(options, zktest.WithKeeper(f.keeperUnknown...))
	}
	if f.saslUsers != nil {
		options = append(options, zktest.WithSASLUsers(f.saslUsers))
	}
	if f.reconfig {
		options = append(options, zktest.WithReconfig())
	}
	if user, password, ok := strings.Cut(f.super, ":"); ok {
		options = append(options, zktest.WithSuperUser(user, password))
	}
	if f.secure.config != nil {
		options = append(options, zktest.WithTLS(f.secure.config))
	}
	return options
}

// makeChroot makes the znode that clients take for their root.
func makeChroot(cluster *zktest.Cluster, chroot string) error {
	if chroot == "" {
		return nil
	}
	conn, _, err := zk.Connect(cluster.Names(), time.Minute,
		zk.WithDialer(cluster.Dial), zk.WithHostProvider(cluster.HostProvider()),
		zk.WithLogInfo(false))
	if err != nil {
		return fmt.Errorf("-chroot %q: %w", chroot, err)
	}
	defer conn.Close()
	for at := 1; at > 0; {
		path := chroot
		if next := strings.IndexByte(chroot[at:], '/'); next >= 0 {
			path = chroot[:at+next]
			at += next + 1
		} else {
			at = 0
		}
		_, err := conn.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		if err != nil {
			return usageError{fmt.Errorf("-chroot %q: create %s: %w", chroot, path, err)}
		}
	}
	return nil
}
