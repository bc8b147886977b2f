package zktest

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Addrs returns the addresses of the servers, "127.0.0.1:port". They listen there from the first call on. In a
// testing/synctest bubble a listener would keep the time from passing: there use Names, HostProvider and Dial.
// It panics if the machine has no port left on its loopback interface.
func (s *Server) Addrs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.listeners) < len(s.peers) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(fmt.Sprintf("zktest: listen on the loopback interface: %v", err))
		}
		p := s.peers[len(s.listeners)]
		s.listeners = append(s.listeners, listener)
		if s.closed {
			_ = listener.Close() // nobody could use an error
			continue
		}
		s.running.Go(func() { s.accept(p, listener) })
	}
	addrs := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		addrs[i] = l.Addr().String()
	}
	return addrs
}

// ConnectString is what many clients take: the Addrs, joined by commas.
func (s *Server) ConnectString() string { return strings.Join(s.Addrs(), ",") }

// accept takes connections over TCP. A stopped server, and one behind a cut link, closes them at once; behind a stalled link they are made,
// and nothing comes through.
func (s *Server) accept(p *Peer, listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		if l := s.linkLocked(""); l.cut || !p.up || s.closed {
			_ = c.Close() // nobody could use an error
		} else {
			l.acceptLocked(p, c)
		}
		s.mu.Unlock()
	}
}

// Dial is a zk.Dialer: the Dial of the Link "".
func (s *Server) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	return s.Link("").Dial(network, address, timeout)
}

// peerAt finds the server of an address. Where there is only one, any address is its own.
func (s *Server) peerAt(address string) *Peer {
	if len(s.peers) == 1 {
		return s.peers[0]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.peers {
		if address == p.Addr() || i < len(s.listeners) && address == s.listeners[i].Addr().String() {
			return p
		}
	}
	return nil
}

// HostProvider gives a client the names of the servers, in their order, without asking DNS. Every client needs one of its own.
func (s *Server) HostProvider() zk.HostProvider {
	return &hosts{addrs: s.Names()}
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
