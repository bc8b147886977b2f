package zkserver

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFreePorts(t *testing.T) {
	t.Parallel()
	ports, err := freePorts(9)
	require.NoError(t, err)
	require.Len(t, ports, 9)
	seen := map[int]bool{}
	for _, p := range ports {
		require.False(t, seen[p], "%d twice", p)
		seen[p] = true
		require.Less(
			t, p, 32768, "where Linux begins to take ports for outgoing connections",
		)
	}
}

// listenAgain listens at an address whose listener this process has just closed. A child
// that another test starts meanwhile holds all sockets of this process, closed ones, too,
// until it has become another program: so for some milliseconds the address can be in use
// though nobody listens there.
func listenAgain(t *testing.T, addr string) net.Listener {
	t.Helper()
	var l net.Listener
	require.Eventually(t, func() bool {
		var err error
		l, err = net.Listen("tcp", addr)
		return err == nil
	}, 5*time.Second, 10*time.Millisecond)
	return l
}

// TestPortTaken has somebody else take the port after it was chosen: an honest ZooKeeper
// of another test, which whoever does not look closely takes for its own.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	Real(t, "a moment between the choice of its port and its use")
	s, err := newSettings(nil)
	require.NoError(t, err)
	where, err := findSource(runOf(t))
	require.NoError(t, err)
	c, err := where.prepare(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	rival := listenAgain(t, c.Servers[0].Addr)
	t.Cleanup(func() { _ = rival.Close() })
	go func() {
		for {
			conn, err := rival.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "clientPort=1\ndataDir=/elsewhere/version-2\n")
			_ = conn.Close()
		}
	}()
	require.ErrorIs(t, c.start(t.Context()), errPortTaken)
}
