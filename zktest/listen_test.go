package zktest

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A troubledListener accepts nothing at first.
type troubledListener struct {
	net.Listener
	errors []error
}

func (l *troubledListener) Accept() (net.Conn, error) {
	if len(l.errors) == 0 {
		return l.Listener.Accept()
	}
	err := l.errors[0]
	l.errors = l.errors[1:]
	return nil, &net.OpError{Op: "accept", Err: err}
}

// A server that was out of file descriptors once was deaf forever.
func TestAnAcceptThatFails(t *testing.T) {
	c, err := New()
	require.NoError(t, err)
	defer c.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := &troubledListener{tcp, []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED,
	}}
	c.mu.Lock()
	c.serveLocked([]net.Listener{listener})
	c.mu.Unlock()
	conn, err := net.Dial("tcp", tcp.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("ruok"))
	require.NoError(t, err)
	var answer [4]byte
	_, err = conn.Read(answer[:])
	require.NoError(t, err)
	require.Equal(t, "imok", string(answer[:]))
}
