package service_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/service"
)

// echo serves one connection after the other, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn) // until the client hangs up
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestLinesLeadToTheServers(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			lines, err := service.OpenLines([]string{echo(t), echo(t)}, delay)
			require.NoError(t, err)
			defer lines.Close()
			require.Len(t, lines.Addrs, 2)
			for _, addr := range lines.Addrs {
				conn, err := net.Dial("tcp", addr)
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, "hello")
				require.NoError(t, err)
				back := make([]byte, len("hello"))
				_, err = io.ReadFull(conn, back)
				require.NoError(t, err)
				require.Equal(t, "hello", string(back))
			}
		})
	}
}

func TestWhatIsNotInstalledIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, kind := range []service.Kind{service.Etcd, service.Redis} {
		_, err := service.Start(t.Context(), kind, 1)
		require.ErrorIs(t, err, service.ErrMissing)
		require.ErrorContains(t, err, "apt-get install")
	}
}
