package locktest

import (
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/wiretap"
)

// lineDialer dials through tap and lets wrap tamper with the client's end.
func lineDialer(tap *wiretap.Tap, wrap func(net.Conn) net.Conn) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := tap.Dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return wrap(&plainLine{Conn: conn}), nil
	}
}

// handshakeWithin is what a server has for the first byte of its answer. The client would
// give it almost seven session timeouts, and a server that is just starting can accept a
// connection and never answer (docs/appendix/hazards.md, E3).
const handshakeWithin = 5 * time.Second

// A plainLine does not tell that a write failed, it only closes. With both the client's
// loop can be left stuck for ever, if the request was made while the client was being
// closed: its reply channel has room for two answers, and gets three. And it bounds the
// handshake.
type plainLine struct {
	net.Conn
	answered bool // of the goroutine that reads
}

func (l *plainLine) Read(b []byte) (int, error) {
	if !l.answered {
		if err := l.SetReadDeadline(time.Now().Add(handshakeWithin)); err != nil {
			return 0, err
		}
	}
	n, err := l.Conn.Read(b)
	l.answered = l.answered || n > 0
	return n, err
}

func (l *plainLine) Write(b []byte) (int, error) {
	if _, err := l.Conn.Write(b); err != nil {
		_ = l.Close()
	}
	return len(b), nil
}
