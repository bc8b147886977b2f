package client_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// clientNet is a network of its own, for a synctest bubble: what each address does with a
// connection. Addresses that it lacks refuse.
type clientNet map[string]func(net.Conn)

var errClientRefused = errors.New("connection refused")

func (n clientNet) dial(_, address string, _ time.Duration) (net.Conn, error) {
	serve, ok := n[address]
	if !ok {
		return nil, errClientRefused
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		serve(theirs)
	}()
	return ours, nil
}

// clientMute accepts everything and says nothing.
func clientMute(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// clientHangsUp closes the connection instead of an answer.
func clientHangsUp(conn net.Conn) { _, _ = clientFrame(conn) }

// clientSays answers the first request with this, and nothing after.
func clientSays(answer []byte) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := clientFrame(conn); err != nil {
			return
		}
		if _, err := conn.Write(answer); err == nil {
			clientMute(conn)
		}
	}
}

// clientHangsUpSaying closes the connection behind this answer.
func clientHangsUpSaying(answer []byte) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := clientFrame(conn); err == nil {
			_, _ = conn.Write(answer)
		}
	}
}

// clientAnswer is the answer to a handshake.
func clientAnswer(session int64, granted time.Duration) []byte {
	return clientVersionAnswer(0, session, granted)
}

func clientVersionAnswer(version uint32, session int64, granted time.Duration) []byte {
	b := binary.BigEndian.AppendUint32(nil, 36)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(granted.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, 16)
	return append(b, make([]byte, 16)...)
}

// clientFrame reads a packet, without its length.
func clientFrame(conn net.Conn) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(conn, frame)
	return frame, err
}

const (
	clientOpClose = -11
	clientOpAuth  = 100
)

// clientServe is a server that grants a session, and does well whatever it is asked, with
// an empty answer. It tells each operation to asked, which may be nil, and hangs up where
// that returns false.
func clientServe(
	session int64, granted time.Duration, asked func(op int32) bool,
) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := clientFrame(conn); err != nil {
			return
		}
		if _, err := conn.Write(clientAnswer(session, granted)); err != nil {
			return
		}
		for {
			frame, err := clientFrame(conn)
			if err != nil {
				return
			}
			op := int32(binary.BigEndian.Uint32(frame[4:]))
			if asked != nil && !asked(op) {
				return
			}
			reply := binary.BigEndian.AppendUint32(nil, 16)
			reply = append(reply, frame[:4]...)
			if _, err := conn.Write(append(reply, make([]byte, 12)...)); err != nil {
				return
			}
		}
	}
}

// clientInTurn serves the first connection with the first of serve, and so on; the last
// serves all that follow.
func clientInTurn(serve ...func(net.Conn)) func(net.Conn) {
	var connections atomic.Int32
	return func(conn net.Conn) {
		i := min(int(connections.Add(1)), len(serve))
		serve[i-1](conn)
	}
}

// clientOrder is a zk.HostProvider that keeps the order of the connect string.
type clientOrder struct {
	servers []string
	next    int
}

func (o *clientOrder) Init(servers []string) error { o.servers = servers; return nil }
func (o *clientOrder) Len() int                    { return len(o.servers) }
func (o *clientOrder) Connected()                  {}

func (o *clientOrder) Next() (string, bool) {
	i := o.next
	o.next++
	return o.servers[i%len(o.servers)], i > 0 && i%len(o.servers) == 0
}
