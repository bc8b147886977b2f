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
	server := answering(t, "")
	var stdout bytes.Buffer
	d := doctor{target: &target{servers: server}, stdout: &stdout}
	require.NoError(t, d.servers(t.Context()))
	require.Equal(t, "?   "+server+
		" does not report its version (four-letter word srvr)\n", stdout.String())
	require.False(t, d.ill)
}

// Servers of which one is down and one is without quorum are not well.
func TestDoctorFindsServersThatDoNotServe(t *testing.T) {
	down, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, down.Close())
	alone := answering(t, "This ZooKeeper instance is not currently serving requests\n")
	var stdout bytes.Buffer
	d := doctor{
		target: &target{servers: down.Addr().String() + "," + alone},
		stdout: &stdout,
	}
	require.NoError(t, d.servers(t.Context()))
	require.Regexp(t, "^BAD "+down.Addr().String()+" does not answer: .*refused\n"+
		"BAD "+alone+" serves nobody: it has no quorum, "+
		"or is still starting\n$", stdout.String())
	require.True(t, d.ill)
}

// What prove has against a release, doctor doubts as well.
func TestDoctorDoubtsAReleaseThatTheDocsAdviseAgainst(t *testing.T) {
	server := answering(t, "Zookeeper version: 3.8.0-5a02a05, built on 2022-02-25\n")
	var stdout bytes.Buffer
	d := doctor{target: &target{servers: server}, stdout: &stdout}
	require.NoError(t, d.servers(t.Context()))
	require.Equal(t, "?   "+server+" is ZooKeeper 3.8.0-5a02a05: its servers can "+
		"diverge, or forget what they confirmed (docs/servers.md)\n", stdout.String())
	require.False(t, d.ill)
}

// answering starts a server that says the same of itself to everybody.
func answering(t *testing.T, told string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, len("srvr")))
			_, _ = io.WriteString(conn, told)
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}
