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
		return wrap(&plainLine{conn}), nil
	}
}

// A plainLine does not tell that a write failed, it only closes. With both the client's
// loop can be left stuck for ever, if the request was made while the client was being
// closed: its reply channel has room for two answers, and gets three.
type plainLine struct{ net.Conn }

func (l *plainLine) Write(b []byte) (int, error) {
	if _, err := l.Conn.Write(b); err != nil {
		_ = l.Close()
	}
	return len(b), nil
}
