package zkserver

import (
	"io"
	"net"
	"testing"

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

// TestPortTaken has somebody else take the port after it was chosen: an honest ZooKeeper
// of another test, which whoever does not look closely takes for its own.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	Real(t, "a moment between the choice of its port and its use")
	s, err := newSettings(nil)
	require.NoError(t, err)
	where, err := findSource()
	require.NoError(t, err)
	c, err := where.prepare(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	rival, err := net.Listen("tcp", c.Servers[0].Addr)
	require.NoError(t, err)
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
