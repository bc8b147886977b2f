package zktest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// addresses are where the servers listen.
func (s settings) addresses() ([]string, error) {
	given := s.listen
	if len(given) == 0 {
		given = []string{"127.0.0.1:0"}
	}
	if len(given) != 1 && len(given) != s.size {
		return nil, fmt.Errorf(
			"zktest: WithListen(%s): want one address, or one for each of %d servers",
			strings.Join(given, ","), s.size)
	}
	each := s.size / len(given)
	var addrs []string
	for _, addr := range given {
		more, err := consecutive(addr, each)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, more...)
	}
	return addrs, nil
}

// consecutive are n addresses with the ports from that of addr on.
func consecutive(addr string, n int) ([]string, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("zktest: WithListen(%s): %w", addr, err)
	}
	first, err := strconv.Atoi(text)
	if err != nil || first < 0 || first > 0 && first+n-1 > math.MaxUint16 {
		return nil, fmt.Errorf(
			"zktest: WithListen(%s): want a port, and %d in all up to 65535", addr, n)
	}
	addrs := make([]string, n)
	for i := range addrs {
		port := 0
		if first > 0 {
			port = first + i
		}
		addrs[i] = net.JoinHostPort(host, strconv.Itoa(port))
	}
	return addrs, nil
}

// openListeners opens one for each server, or none.
func (s settings) openListeners() ([]net.Listener, error) {
	addrs, err := s.addresses()
	if err != nil {
		return nil, err
	}
	var open []net.Listener
	for i, addr := range addrs {
		listener, err := listen(addr)
		if err != nil {
			for _, l := range open {
				_ = l.Close() // nobody could use an error
			}
			return nil, fmt.Errorf("zktest: server %d: %w", i+1, err)
		}
		open = append(open, listener)
	}
	return open, nil
}

// listen opens a listener. Port 0 is a free one below the range from which systems take
// the ports of outgoing connections: else a client that tries to reach a stopped server
// could be given the very port that the server needs when it is started again.
func listen(addr string) (net.Listener, error) {
	const low, high, tries = 10_000, 20_000, 100
	host, port, _ := net.SplitHostPort(addr) // consecutive has joined them
	if port == "0" {
		for range tries {
			free := strconv.Itoa(low + rand.IntN(high-low))
			l, err := net.Listen("tcp", net.JoinHostPort(host, free))
			if err == nil || errors.As(err, new(*net.DNSError)) {
				return l, err
			}
		}
	}
	return net.Listen("tcp", addr)
}

// A door is where a server listens for clients over TCP.
type door struct {
	addr     net.Addr
	listener net.Listener // nil: closed, the system refuses connections
}

// serveLocked takes clients by the listeners, one for each server.
func (c *Cluster) serveLocked(listeners []net.Listener) {
	for i, l := range listeners {
		c.doors = append(c.doors, door{addr: l.Addr(), listener: l})
		if c.reachableLocked(c.servers[i]) {
			c.running.Go(func() { c.accept(i, l) })
		}
	}
	c.admitLocked()
}

// reachableLocked: a server accepts connections over TCP.
func (c *Cluster) reachableLocked(s *Server) bool {
	return s.up && !c.closed && !c.linkLocked("").cut
}

// admitLocked closes the doors of servers that are not reachable, and opens those of the
// others again. A port that another program has taken meanwhile is tried at each ping.
func (c *Cluster) admitLocked() {
	for i := range c.doors {
		d := &c.doors[i]
		reachable := c.reachableLocked(c.servers[i])
		switch {
		case !reachable && d.listener != nil:
			_ = d.listener.Close() // nobody could use an error
			d.listener = nil
		case reachable && d.listener == nil:
			l, err := net.Listen("tcp", d.addr.String())
			if err != nil {
				continue
			}
			d.listener = l
			c.running.Go(func() { c.accept(i, l) })
		}
	}
}

// Addrs returns the addresses of the servers, "127.0.0.1:port" unless WithListen sets
// others. For a server that listens on all addresses of the machine it returns one that
// other machines can dial, if there is any. Without WithListen they listen there from the
// first call on. In a testing/synctest bubble a listener would keep the time from
// passing: Addrs panics there, as ConnectString does; use Names, HostProvider and Dial.
// Addrs also panics if the machine has no port left on its loopback interface.
func (c *Cluster) Addrs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doors == nil {
		if bubble(goroutines(false)) != "" {
			panic("zktest: a listener would keep the time of the testing/synctest " +
				"bubble from passing: connect to Servers, by the Dial of a Link")
		}
		listeners, err := c.openListeners()
		if err != nil {
			panic(err)
		}
		c.serveLocked(listeners)
	}
	addrs := make([]string, len(c.doors))
	for i, d := range c.doors {
		addrs[i] = dialable(d.addr)
	}
	return addrs
}

// dialable is an address at which clients find who listens on addr.
func dialable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort(outward(), strconv.Itoa(tcp.Port))
}

// outward is the machine's first IPv4 address that is not its own alone.
func outward() string {
	known, _ := net.InterfaceAddrs() // none: then it is alone
	for _, one := range known {
		at, ok := one.(*net.IPNet)
		if ok && at.IP.To4() != nil && at.IP.IsGlobalUnicast() {
			return at.IP.String()
		}
	}
	return "127.0.0.1"
}

// ConnectString returns the Addrs joined by commas, as many clients expect them.
func (c *Cluster) ConnectString() string { return strings.Join(c.Addrs(), ",") }

// acceptPause is the pause after a connection that could not be accepted.
const acceptPause = 10 * time.Millisecond

// accept takes connections over TCP until the listener is closed. Behind a stalled link
// they are made, and nothing comes through. Any other error passes, as that of a process
// that is out of file descriptors, and so a real server waits for that.
func (c *Cluster) accept(server int, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
			continue
		}
		c.mu.Lock()
		if c.doors[server].listener != listener { // closed meanwhile
			_ = conn.Close() // nobody could use an error
		} else {
			c.linkLocked("").acceptLocked(c.servers[server], c.secureLocked(conn))
		}
		c.mu.Unlock()
	}
}

// Dial is a zk.Dialer: the Dial of the Link "".
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
		if address == s.Addr() || i < len(c.doors) &&
			address == dialable(c.doors[i].addr) {
			return s
		}
	}
	return nil
}

// HostProvider gives a client the names of the servers, in their order, without DNS. Each
// client needs its own.
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
