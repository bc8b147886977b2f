package zkserver

import (
	"fmt"
	"slices"
	"time"
)

// An Option says what a cluster is to be like.
type Option func(*settings)

type settings struct {
	servers    int
	tick       time.Duration
	maxSession time.Duration
	config     []string
	jvm        []string
	saslUsers  map[string]string // nil: no SASL with DIGEST-MD5
	kerberos   *kerberos         // nil: no SASL with GSSAPI
	// route is that of RoutePeers, nil where there is none.
	route func(from, to int, actual PeerPorts) (PeerPorts, error)
}

// Servers asks for an ensemble of n servers; n is odd. The default is 1, without an
// ensemble.
func Servers(n int) Option { return func(s *settings) { s.servers = n } }

// Tick sets ZooKeeper's tickTime, whole milliseconds, 200 ms by default. The server
// grants no session timeout below two ticks, and ends sessions only at the end of a tick.
func Tick(d time.Duration) Option { return func(s *settings) { s.tick = d } }

// MaxSession sets the longest session timeout that the server grants, one minute by
// default.
func MaxSession(d time.Duration) Option { return func(s *settings) { s.maxSession = d } }

// Config adds lines to zoo.cfg. They come last, and so win.
func Config(lines ...string) Option {
	return func(s *settings) { s.config = append(s.config, lines...) }
}

// JVM adds flags of Java, such as -Dznode.container.checkIntervalMs=200, none with a
// space in it. They come last, and so win.
func JVM(flags ...string) Option {
	return func(s *settings) { s.jvm = append(s.jvm, flags...) }
}

// SASLUsers has the servers take logins by SASL with DIGEST-MD5, of these users with
// these passwords. Neither has a quote in it.
func SASLUsers(passwords map[string]string) Option {
	return func(s *settings) { s.saslUsers = passwords }
}

// A kerberos is what a server needs to know of itself.
type kerberos struct{ principal, keytab, config string }

// Kerberos has the servers take logins by SASL with GSSAPI, as principal with the key in
// the file keytab, and with the krb5.conf. It is for local servers only: those in
// containers see no such files.
func Kerberos(principal, keytab, krb5Conf string) Option {
	return func(s *settings) { s.kerberos = &kerberos{principal, keytab, krb5Conf} }
}

// PeerPorts are where, on loopback, one server of an ensemble finds another one.
type PeerPorts struct {
	Quorum   int // for the followers of a leader
	Election int
}

// RoutePeers has the traffic between the servers of an ensemble go where route says, so
// that a test can put a proxy in between. route returns where one server is to look for
// another one, whose real ports are given; from and to are indices of [Cluster.Servers].
// It is called for each ordered pair of servers, before any of them is started; should a
// start fail, then again with other ports. An election can go past it: a server calls
// back at the address that the caller tells, and that is the real one. It is for local
// servers only: those in containers reach one another directly.
func RoutePeers(
	route func(from, to int, actual PeerPorts) (PeerPorts, error),
) Option {
	return func(s *settings) { s.route = route }
}

func newSettings(opts []Option) (settings, error) {
	s := settings{
		servers:    1,
		tick:       200 * time.Millisecond,
		maxSession: time.Minute,
		// Quick to start and small: an ensemble shares two cores with the tests.
		jvm: []string{
			"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		},
	}
	for _, o := range opts {
		o(&s)
	}
	switch {
	case s.servers < 1 || s.servers%2 == 0:
		return s, fmt.Errorf("zkserver: Servers(%d): want an odd number", s.servers)
	case s.tick < time.Millisecond:
		return s, fmt.Errorf("zkserver: Tick(%v): want a millisecond at least", s.tick)
	case s.maxSession < 2*s.tick:
		return s, fmt.Errorf(
			"zkserver: MaxSession(%v): want two ticks of %v at least", s.maxSession,
			s.tick,
		)
	}
	s.jvm = slices.Clip(s.jvm)
	return s, nil
}
