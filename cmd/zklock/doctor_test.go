package main

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server on which srvr is not allowed hangs up.
func TestDoctorDoubtsAServerWithoutVersion(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	var stdout bytes.Buffer
	d := doctor{target: &target{servers: listener.Addr().String()}, stdout: &stdout}
	require.NoError(t, d.servers(t.Context()))
	require.Equal(t, "?   "+listener.Addr().String()+
		" does not report its version (four-letter word srvr)\n", stdout.String())
	require.False(t, d.ill)
}
