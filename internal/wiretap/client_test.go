package wiretap_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// packet is one in the making, or received: without its length.
type packet []byte

func (p *packet) bytes(b []byte) *packet {
	*p = append(*p, b...)
	return p
}

func (p *packet) int32(v int32) *packet {
	return p.bytes(binary.BigEndian.AppendUint32(nil, uint32(v)))
}

func (p *packet) int64(v int64) *packet {
	return p.bytes(binary.BigEndian.AppendUint64(nil, uint64(v)))
}

func (p *packet) string(s string) *packet {
	return p.int32(int32(len(s))).bytes([]byte(s))
}

func (p packet) int32At(i int) int32 { return int32(binary.BigEndian.Uint32(p[i:])) }

// send ignores a failure: the client is gone then, which the next receive shows.
func (p packet) send(conn net.Conn) {
	_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...))
}

// receive returns nil when the client is gone.
func receive(conn net.Conn) packet {
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil
	}
	body := make([]byte, binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil
	}
	return body
}

// hello is a connect request.
func hello() *packet {
	return new(packet).int32(0).int64(0).int32(4000).int64(0).string("")
}

// quiet is a zk.Logger.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect returns once there is a session. From then on the channel has an element for
// each time that there is one again; the client's own event channel would drop it where
// the test is slow.
func connect(
	tb testing.TB, addr string, timeout time.Duration, dial zk.Dialer,
	hosts zk.HostProvider,
) (*zk.Conn, <-chan struct{}) {
	tb.Helper()
	sessions := make(chan struct{}, 100)
	told := func(e zk.Event) {
		if e.State == zk.StateHasSession {
			sessions <- struct{}{}
		}
	}
	conn, _, err := zk.Connect([]string{addr}, timeout,
		zk.WithDialer(dial), zk.WithHostProvider(hosts),
		zk.WithLogger(quiet{}), zk.WithEventCallback(told))
	if err != nil {
		tb.Fatal(err)
	}
	<-sessions
	return conn, sessions
}
