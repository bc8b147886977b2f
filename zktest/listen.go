package zktest

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Addrs returns the addresses of the servers, "127.0.0.1:port". They listen there from
// the first call on. In a testing/synctest bubble a listener would keep the time from
// passing: there use Names, HostProvider and Dial. It panics if the machine has no port
// left on its loopback interface.
func (c *Cluster) Addrs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.listeners) < len(c.servers) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(fmt.Sprintf("zktest: listen on the loopback interface: %v", err))
		}
		s := c.servers[len(c.listeners)]
		c.listeners = append(c.listeners, listener)
		if c.closed {
			_ = listener.Close() // nobody could use an error
			continue
		}
		c.running.Go(func() { c.accept(s, listener) })
	}
	addrs := make([]string, len(c.listeners))
	for i, l := range c.listeners {
		addrs[i] = l.Addr().String()
	}
	return addrs
}

// ConnectString is what many clients take: the Addrs, joined by commas.
func (c *Cluster) ConnectString() string { return strings.Join(c.Addrs(), ",") }

// accept takes connections over TCP. A stopped server, and one behind a cut link, closes
// them at once; behind a stalled link they are made, and nothing comes through.
func (c *Cluster) accept(s *Server, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		c.mu.Lock()
		if l := c.linkLocked(""); l.cut || !s.up || c.closed {
			_ = conn.Close() // nobody could use an error
		} else {
			l.acceptLocked(s, conn)
		}
		c.mu.Unlock()
	}
}

// Dial is a zk.Dialer: the Dial of  the Link "".
func (c *Cluster) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	return c.Link("").Dial(network, address, timeout)
}

// serverAt finds the server of an address. Where there is only one, any address is its
// own.
func (c *Cluster) serverAt(address string) *Server {
	if len(c.servers) == 1 {
		return c.servers[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.servers {
		if address == s.Addr() || i < len(c.listeners) &&
			address == c.listeners[i].Addr().String() {
			return s
		}
	}
	return nil
}

// HostProvider gives a client the names of the servers, in their order, without asking
// DNS. Every client needs one of its own.
func (c *Cluster) HostProvider() zk.HostProvider {
	return &hosts{addrs: c.Names()}
}

// hosts goes round the servers. The client calls it from one goroutine.
type hosts struct {
	addrs []string
	next  int
	tried int // since the last connect
}

func (h *hosts) Init([]string) error { return nil }
func (h *hosts) Len() int            { return len(h.addrs) }

func (h *hosts) Next() (server string, retryStart bool) {
	server = h.addrs[h.next]
	h.next = (h.next + 1) % len(h.addrs)
	h.tried++
	return server, h.tried > 1 && h.tried%len(h.addrs) == 1%len(h.addrs)
}

func (h *hosts) Connected() { h.tried = 0 }
