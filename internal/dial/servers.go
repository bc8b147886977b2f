package dial

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// ParseConnectString splits "host1:2181,host2/chroot" into servers that each have a port,
// and the chroot, a valid path, which is "/" if there is none.
func ParseConnectString(s string) (servers []string, chroot string, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, "", errors.New("connect string is empty")
	}
	if strings.Contains(s, "://") {
		return nil, "", errors.New(
			"connect string has a scheme; want host:port,host:port/chroot",
		)
	}
	hosts, chroot := s, "/"
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], s[i:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		server, err := withPort(strings.TrimSpace(host))
		if err != nil {
			return nil, "", fmt.Errorf("connect string: server %q: %w", host, err)
		}
		servers = append(servers, server)
	}
	// A comma may be part of a path, but here it rather is a chroot repeated behind each
	// server, which would otherwise pass unseen as a single server with a strange chroot.
	if strings.Contains(chroot, ",") {
		return nil, "", fmt.Errorf("connect string: chroot %q has a comma; "+
			"a chroot comes once, at the end", chroot)
	}
	if err := zkpath.Check(chroot); err != nil {
		return nil, "", fmt.Errorf("connect string: chroot: %w", err)
	}
	return servers, chroot, nil
}

// withPort returns a server's name or address with a port.
func withPort(s string) (string, error) {
	host, port := s, strconv.Itoa(zk.DefaultPort)
	switch {
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
	case strings.Contains(s, ":"):
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", withoutBrackets(s, err)
		}
	}
	if host == "" {
		return "", errors.New("has no host")
	}
	if strings.ContainsAny(host, " \t\r\n[]@") {
		return "", errors.New("is not a host name")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not between 1 and 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

// withoutBrackets is err, with what was meant if that is an IPv6 address.
func withoutBrackets(s string, err error) error {
	at := strings.LastIndexByte(s, ':')
	host, port := s[:at], s[at+1:]
	meant := "[" + s + "]"
	if net.ParseIP(host) != nil && len(port) >= 4 {
		meant = net.JoinHostPort(host, port)
	} else if net.ParseIP(s) == nil {
		return err
	}
	return fmt.Errorf("%w; write an IPv6 address in brackets, such as %s", err, meant)
}

// shuffled is the default zk.HostProvider: all servers in turn, in random order. Unlike
// zk's own it keeps the names, so that they are looked up again at each dial and a
// certificate can be checked against them. After Init only zk's goroutine that connects
// uses it.
type shuffled struct {
	servers []string
	next    int
	tried   int // servers handed out since the last that connected, which counts as one
}

func (s *shuffled) Init(servers []string) error {
	s.servers = slices.Clone(servers)
	rand.Shuffle(len(s.servers), func(i, j int) { //nolint:gosec // no secret
		s.servers[i], s.servers[j] = s.servers[j], s.servers[i]
	})
	return nil
}

func (s *shuffled) Len() int { return len(s.servers) }

func (s *shuffled) Next() (server string, retryStart bool) {
	if s.tried == len(s.servers) {
		s.tried, retryStart = 0, true
	}
	server = s.servers[s.next]
	s.next = (s.next + 1) % len(s.servers)
	s.tried++
	return server, retryStart
}

func (s *shuffled) Connected() { s.tried = 1 }
