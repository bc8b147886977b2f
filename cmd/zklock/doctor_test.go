package main

import (
	"bytes"
	"io"
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

// Servers of which one is down and one is without quorum are not well.
func TestDoctorFindsServersThatDoNotServe(t *testing.T) {
	down, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, down.Close())
	alone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer alone.Close()
	go func() {
		for {
			conn, err := alone.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, len("srvr")))
			_, _ = io.WriteString(conn,
				"This ZooKeeper instance is not currently serving requests\n")
			_ = conn.Close()
		}
	}()
	var stdout bytes.Buffer
	d := doctor{
		target: &target{servers: down.Addr().String() + "," + alone.Addr().String()},
		stdout: &stdout,
	}
	require.NoError(t, d.servers(t.Context()))
	require.Regexp(t, "^BAD "+down.Addr().String()+" does not answer: .*refused\n"+
		"BAD "+alone.Addr().String()+" serves nobody: it has no quorum, "+
		"or is still starting\n$", stdout.String())
	require.True(t, d.ill)
}
