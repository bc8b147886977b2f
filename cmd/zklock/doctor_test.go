package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
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

// If ZooKeeper goes away after the servers were asked, doctor says only what is new of
// them.
func TestDoctorWhenZooKeeperGoesAway(t *testing.T) {
	cluster := zktest.Start(t)
	const version = "Zookeeper version: 3.9.4-x"
	leaving := leavesAfterSrvr(t, cluster.Addrs()[0], version)
	alive := answering(t, version)
	t.Setenv("ZOOKEEPER_SERVERS", alive+","+leaving)
	var stdout, stderr bytes.Buffer
	args := []string{"zklock", "--connect-timeout", "2s", "doctor", "/none"}
	code := zklock(t.Context(), args, &stdout, &stderr)
	require.Equal(t, exitUnavailable, code, "%s", &stderr)
	for _, server := range []string{leaving, alive} {
		known := "ok  " + server + " is ZooKeeper 3.9.4-x, with container znodes\n"
		require.Equal(t, 1, strings.Count(stdout.String(), known), "%s", &stdout)
	}
	require.Contains(t, stdout.String(), "BAD "+leaving+" does not answer: ")
}

// leavesAfterSrvr passes connections on to a server until it has told its version, once.
// From then on there is nobody.
func leavesAfterSrvr(t *testing.T, server, told string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var passed []net.Conn
	serve := func(conn net.Conn) (more bool) {
		first := make([]byte, len("srvr"))
		_, _ = io.ReadFull(conn, first)
		if string(first) == "srvr" {
			_ = listener.Close()
			_, _ = io.WriteString(conn, told)
			return false
		}
		to, err := net.Dial("tcp", server)
		if err != nil {
			return false
		}
		passed = append(passed, to)
		_, _ = to.Write(first)
		go func() { _, _ = io.Copy(to, conn) }()
		go func() { _, _ = io.Copy(conn, to) }()
		return true
	}
	go func() {
		for more := true; more; {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			passed = append(passed, conn)
			more = serve(conn)
		}
		for _, conn := range passed {
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
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
