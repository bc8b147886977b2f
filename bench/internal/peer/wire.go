package peer

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Wire dials a peer's connections and counts what goes over them. It costs two atomic
// additions a packet.
type Wire struct {
	dial            zk.Dialer
	requests, bytes atomic.Int64
}

// NewWire dials with dial, nil stands for [net.DialTimeout].
func NewWire(dial zk.Dialer) *Wire {
	if dial == nil {
		dial = net.DialTimeout
	}
	return &Wire{dial: dial}
}

// Counted returns the requests and bytes so far, pings included.
func (w *Wire) Counted() (requests, bytes int64) {
	return w.requests.Load(), w.bytes.Load()
}

// DialPackets is a [zk.Dialer] for protocols whose clients send each request by one
// Write.
func (w *Wire) DialPackets(
	network, address string, timeout time.Duration,
) (net.Conn, error) {
	return w.open(network, address, timeout, 1)
}

// DialBytes is for other protocols; see [Wire.Request].
func (w *Wire) DialBytes(
	network, address string, timeout time.Duration,
) (net.Conn, error) {
	return w.open(network, address, timeout, 0)
}

// Request counts one request of a connection of DialBytes.
func (w *Wire) Request() { w.requests.Add(1) }

func (w *Wire) open(
	network, address string, timeout time.Duration, perWrite int64,
) (net.Conn, error) {
	conn, err := w.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn, wire: w, perWrite: perWrite}, nil
}

type counted struct {
	net.Conn
	wire     *Wire
	perWrite int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.bytes.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wire.requests.Add(c.perWrite)
	c.wire.bytes.Add(int64(n))
	return n, err
}
