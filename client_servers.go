package recipes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// parseConnectString splits "host1:2181,host2/chroot" into addresses that each have a port,
// and the chroot, which is "/" where there is none.
func parseConnectString(s string) (addresses []string, chroot string, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, "", errors.New("connect string: is empty")
	}
	hosts, chroot := s, "/"
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], s[i:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		address, err := serverAddress(strings.TrimSpace(host))
		if err != nil {
			return nil, "", fmt.Errorf("connect string: server %q: %w", host, err)
		}
		addresses = append(addresses, address)
	}
	// A comma may be part of a path, but here it rather is a chroot repeated behind each server, which would otherwise
	// pass unseen as a single server with a strange chroot.
	if strings.Contains(chroot, ",") {
		return nil, "", fmt.Errorf("connect string: chroot %q has a comma; a chroot comes once, at the end", chroot)
	}
	if err := zkpath.Check(chroot); err != nil {
		return nil, "", fmt.Errorf("connect string: chroot: %w", err)
	}
	return addresses, chroot, nil
}

// serverAddress returns s with a port.
func serverAddress(s string) (string, error) {
	host, port := s, strconv.Itoa(zk.DefaultPort)
	switch {
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
	case strings.Contains(s, ":"):
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", err
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

// clientHosts is the default zk.HostProvider: all servers in turn, in random order. Unlike zk's own it keeps the names,
// so that they are looked up anew at each dial and a certificate can be checked against them. Only the goroutine of zk
// that connects uses it, after Init.
type clientHosts struct {
	servers []string
	next    int
	tried   int // servers handed out since the last that connected, which counts as one
}

func (h *clientHosts) Init(servers []string) error {
	h.servers = append([]string(nil), servers...)
	rand.Shuffle(len(h.servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
	return nil
}

func (h *clientHosts) Len() int { return len(h.servers) }

func (h *clientHosts) Next() (server string, retryStart bool) {
	if h.tried == len(h.servers) {
		h.tried, retryStart = 0, true
	}
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	h.tried++
	return server, retryStart
}

func (h *clientHosts) Connected() { h.tried = 1 }
