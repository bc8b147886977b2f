package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// maxFrame is the real server's jute.maxbuffer: on a longer packet it hangs up.
const maxFrame = 0xfffff

// A conn is the connection of one client to one server, over TCP or a pipe. One goroutine
// reads its packets and one writes; between them and the server lie the two lanes on
// which the link's faults act.
type conn struct {
	server  *Server
	link    *Link
	net     net.Conn
	address string // by which the ip scheme knows the client
	began   time.Time
	in      *lane // packets from the client
	out     *lane // frames to the client

	// The rest is guarded by the Cluster's mutex.

	heard    time.Time
	traffic  traffic
	last     lastAnswer
	session  int64 // 0 before the handshake is done
	timeout  time.Duration
	who      []identity
	sasl     saslLogin
	calls    []*call // not answered yet, in the order in which they came
	greeting []byte  // what answers the handshake, nil: what it should
	shaking  bool    // the handshake is at the leader: nothing else is taken meanwhile
	deaf     bool    // the client has closed its end
	leaving  bool    // the connection closes behind what is on its way to the client
	dropped  bool
	lingers  bool       // the reader discards what comes
	frames   [][]byte   // for the writer; nil frame: close behind what was written
	more     *sync.Cond // there are frames, or the connection is dropped
}

// acceptLocked serves a client on a connection to p, and returns at once.
func (l *Link) acceptLocked(s *Server, netConn net.Conn) {
	cluster := s.cluster
	c := &conn{
		server: s, link: l, net: netConn, address: host(netConn), began: time.Now(),
		last: lastAnswer{xid: -1}, more: sync.NewCond(&cluster.mu),
	}
	c.heard = c.began
	c.who = []identity{{scheme: "ip", id: c.address}}
	c.in = newLane(&cluster.mu, func() bool {
		return s.frozen || c.shaking || l.heldLocked(ToServer)
	})
	c.out = newLane(&cluster.mu, func() bool { return l.heldLocked(ToClient) })
	s.conns = append(s.conns, c)
	cluster.running.Go(c.read)
	cluster.running.Go(c.write)
}

// host is the address of a client. A pipe has none.
func host(c net.Conn) string {
	if addr, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return addr.IP.String()
	}
	return "127.0.0.1"
}

// from is the address of the client with its port. A pipe has none.
func (c *conn) from() string {
	if addr, ok := c.net.RemoteAddr().(*net.TCPAddr); ok {
		return addr.String()
	}
	return net.JoinHostPort(c.address, "0")
}

// read hands on what the client sends, until it hangs up.
func (c *conn) read() {
	cluster := c.server.cluster
	for {
		packet, err := readPacket(c.net)
		cluster.mu.Lock()
		if err != nil {
			c.lingers = errors.As(err, new(*fourLetters))
			c.in.push(c.link.delayLocked(), func() { c.endLocked(err) })
			c.deaf = !c.lingers
			if c.deaf && c.leaving {
				c.dropLocked()
			}
			cluster.mu.Unlock()
			if c.lingers {
				c.discard()
			}
			return
		}
		c.in.push(c.link.delayLocked(), func() { c.arriveLocked(packet) })
		cluster.mu.Unlock()
	}
}

// lingerAtMost is how long what follows a packet that is too long is read.
const lingerAtMost = time.Second

// discard reads what nobody wants, until the client hangs up. The system resets a
// connection that is closed with something unread, which the client may see before what
// was sent to it; a real server's client sees the end.
func (c *conn) discard() {
	_ = c.net.SetReadDeadline(time.Now().Add(lingerAtMost))
	_, _ = io.Copy(io.Discard, c.net)
	c.server.cluster.mu.Lock()
	defer c.server.cluster.mu.Unlock()
	c.lingers = false
	if c.dropped {
		_ = c.net.Close()
	}
}

// closeLocked closes the connection: the other direction later, where that is still read.
func (c *conn) closeLocked() {
	if tcp, ok := c.net.(*net.TCPConn); ok && c.lingers {
		_ = tcp.CloseWrite()
		return
	}
	_ = c.net.Close() // wakes the reader; there is nobody left who could use an error
}

func readPacket(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > maxFrame {
		return nil, (*fourLetters)(&head)
	}
	packet := make([]byte, length)
	_, err := io.ReadFull(r, packet)
	return packet, err
}

// fourLetters is what stands where a length should: too great a length, or a command such
// as "ruok".
type fourLetters [4]byte

func (f *fourLetters) Error() string {
	return fmt.Sprintf("packet length %q is out of range", f[:])
}

// write sends frames until the connection is dropped.
func (c *conn) write() {
	cluster := c.server.cluster
	for {
		cluster.mu.Lock()
		for len(c.frames) == 0 && !c.dropped {
			c.more.Wait()
		}
		if c.dropped || c.frames[0] == nil {
			c.dropLocked()
			cluster.mu.Unlock()
			return
		}
		frame := c.frames[0]
		c.frames = c.frames[1:]
		cluster.mu.Unlock()
		if _, err := c.net.Write(frame); err != nil {
			_ = c.net.Close() // the reader sees it, and says so when its turn has come
			return
		}
	}
}

// sendReplyLocked sends the answer to a, or what goes out in its place.
func (c *conn) sendReplyLocked(a *call, zxid int64, err code, body reply) {
	frame := a.instead
	if frame == nil {
		frame = encodeReply(a.req.xid, zxid, err, body)
	}
	c.sendLocked(frame)
}

// sendLocked puts a frame on its way to the client.
func (c *conn) sendLocked(frame []byte) {
	if frame != nil {
		c.traffic.sent++
		c.server.traffic.sent++
	}
	c.out.push(c.link.delayLocked(), func() {
		c.frames = append(c.frames, frame)
		c.more.Signal()
	})
}

// endLocked takes what ends a connection. A word of four letters is only known by its
// length, which is none.
func (c *conn) endLocked(err error) {
	var word *fourLetters
	if !errors.As(err, &word) || c.session != 0 {
		c.dropLocked()
		return
	}
	c.receivedLocked()
	c.sendLocked(c.server.tellLocked(*word))
	c.hangUpLocked()
}

// hangUpLocked closes the connection behind what is on its way to the client, and listens
// to it no more. It stays on the list till then: what a link holds back is let go from
// there.
func (c *conn) hangUpLocked() {
	switch {
	case c.leaving:
		return
	case c.deaf:
		c.dropLocked()
		return
	}
	c.leaving = true
	c.in.close()
	c.server.watches.drop(c)
	c.sendLocked(nil)
}

// dropLocked closes the connection at once, for both sides.
func (c *conn) dropLocked() {
	if c.dropped {
		return
	}
	c.dropped = true
	c.orphanLocked()
	c.in.close()
	c.out.close()
	c.server.forgetLocked(c)
	c.more.Signal()
	c.closeLocked()
}

// notifyLocked tells of an event, unless its znode may not be read by the client:
// CVE-2024-23944 (ZOOKEEPER-4799).
func (c *conn) notifyLocked(e event) {
	if e.mayHear(c.who) {
		c.sendLocked(encodeEvent(e))
	}
}

// arriveLocked takes one packet.
func (c *conn) arriveLocked(packet []byte) {
	c.receivedLocked()
	if c.session == 0 {
		c.connectLocked(packet)
		return
	}
	req, err := decodeRequest(packet)
	if err != nil || slices.Contains(c.server.cluster.unknown, req.op.kind()) {
		c.dropLocked()
		return
	}
	asked := &call{conn: c, req: req, came: c.heard}
	switch c.link.verdictLocked(req.op) {
	case loseRequest:
		c.dropLocked()
		return
	case loseReply:
		asked.lost = true
	case throttle:
		asked.ready, asked.zxid, asked.err = true, c.server.zxid, codeThrottled
	default:
		asked.instead = c.link.hostileLocked(req.op, req.xid)
	}
	c.requestLocked(asked)
}
