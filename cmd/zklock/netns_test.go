//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkrecipes/recipes/zktest"
)

// A network is three machines, as far as their network is concerned: namespaces whose
// only link is to a fourth one in the middle, which passes on nothing but what its
// proxies do.
type network struct {
	t       *testing.T
	cluster *zktest.Cluster
	token   string
}

const (
	machines  = 3
	inTheDoor = ":7000"
)

// space is the namespace of a machine, and of the middle if its number is 0.
func space(machine int) string {
	return fmt.Sprintf("zklock-%d-%d", os.Getpid(), machine)
}

// outer is a machine's end of its link, inner that in the middle.
func outer(machine int) string { return fmt.Sprintf("10.77.%d.1", machine) }
func inner(machine int) string { return fmt.Sprintf("10.77.%d.2", machine) }

// ip runs ip, with words separated by spaces.
func ip(t *testing.T, format string, args ...any) {
	t.Helper()
	words := strings.Fields(fmt.Sprintf(format, args...))
	out, err := exec.Command("ip", words...).CombinedOutput()
	require.NoError(t, err, "ip %v: %s", words, out)
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{
		t: t, cluster: zktest.Start(t), token: filepath.Join(t.TempDir(), "token"),
	}
	for m := range machines + 1 {
		ip(t, "netns add %s", space(m))
		t.Cleanup(func() { ip(t, "netns del %s", space(m)) })
		ip(t, "-n %s link set lo up", space(m))
	}
	for m := 1; m <= machines; m++ {
		ip(t, "-n %s link add out type veth peer name in%d netns %s", space(m), m,
			space(0))
		ip(t, "-n %s addr add %s/24 dev out", space(m), outer(m))
		ip(t, "-n %s addr add %s/24 dev in%d", space(0), inner(m), m)
		ip(t, "-n %s link set out up", space(m))
		ip(t, "-n %s link set in%d up", space(0), m)
		n.proxy(inner(m)+":2181", func() (net.Conn, error) {
			return net.Dial("tcp", n.cluster.ConnectString())
		})
		if m > 1 {
			n.proxy(inner(m)+inTheDoor, func() (conn net.Conn, err error) {
				inTheMiddle(t, func() { conn, err = net.Dial("tcp", outer(1)+inTheDoor) })
				return conn, err
			})
		}
	}
	return n
}

// inTheMiddle runs something on a thread that is in the middle's namespace: what sockets
// it makes are there.
func inTheMiddle(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with this
		done <- func() error {
			file, err := os.Open("/run/netns/" + space(0))
			if err != nil {
				return err
			}
			defer file.Close()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			do()
			return nil
		}()
	}()
	require.NoError(t, <-done)
}

// proxy passes on, late, what comes to an address in the middle.
func (n *network) proxy(address string, dial func() (net.Conn, error)) {
	n.t.Helper()
	var listener net.Listener
	var err error
	inTheMiddle(n.t, func() { listener, err = net.Listen("tcp", address) })
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = listener.Close() }) // which ends what follows
	go func() {
		for {
			one, err := listener.Accept()
			if err != nil {
				return
			}
			other, err := dial()
			if err != nil {
				_ = one.Close()
				continue
			}
			go passOn(one, other)
			go passOn(other, one)
		}
	}()
}

// passOn passes on until one of both hangs up, with a delay as between cities.
func passOn(to io.WriteCloser, from io.Reader) {
	const delay = 10 * time.Millisecond
	defer func() { _ = to.Close() }() // the other end has gone
	for buffer := make([]byte, 32<<10); ; {
		size, err := from.Read(buffer)
		time.Sleep(delay)
		if _, failed := to.Write(buffer[:size]); err != nil || failed != nil {
			return
		}
	}
}

// prove starts a prove on a machine.
func (n *network) prove(machine int, said io.Writer, args ...string) *exec.Cmd {
	n.t.Helper()
	cmd := proving(n.t, inner(machine)+":2181", append(args, "--token", "@"+n.token)...)
	cmd.Args = append([]string{"ip", "netns", "exec", space(machine)}, cmd.Args...)
	var err error
	cmd.Path, err = exec.LookPath("ip")
	require.NoError(n.t, err)
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(n.t, cmd.Start())
	n.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended
	return cmd
}

// start starts a run of all machines. The first is the judge's.
func (n *network) start(said *strings.Builder, args ...string) (all []*exec.Cmd) {
	n.t.Helper()
	all = append(all, n.prove(1, said, append(args, "--listen", outer(1)+inTheDoor,
		"--machines", strconv.Itoa(machines), "--workers", "2")...))
	require.Eventually(n.t, func() bool {
		text, err := os.ReadFile(n.token)
		return err == nil && strings.HasSuffix(string(text), "\n")
	}, patience, 10*time.Millisecond)
	for m := 2; m <= machines; m++ {
		all = append(all, n.prove(m, os.Stderr, "--join", inner(m)+inTheDoor))
	}
	return all
}

func needNamespaces(t *testing.T) {
	t.Helper()
	if os.Getenv("ZKLOCK_NETNS") == "" {
		t.Skip("ZKLOCK_NETNS is not set: it needs root, and makes network namespaces")
	}
	need(t, "ip", "iproute2")
}

// Three machines that reach each other, and the servers, through a proxy.
func TestProveOverNetworkNamespaces(t *testing.T) {
	needNamespaces(t)
	n := newNetwork(t)
	var said strings.Builder
	all := n.start(&said, "--for", "20s", "--session-timeout", "10s")
	err := all[0].Wait()
	t.Log(said.String())
	require.NotContains(t, said.String(), "VIOLATED")
	require.Contains(t, said.String(), "machines: 3, workers: 6")
	require.NotContains(t, said.String(), "acquisitions: 0,")
	if err != nil { // a machine that is too busy decides nothing
		require.Contains(t, said.String(), "the judge did not run")
	}
	for _, cmd := range all[1:] {
		require.NoError(t, cmd.Wait())
	}
	for _, path := range n.cluster.Znodes() {
		require.NotContains(t, path, "zklock-prove")
	}
}

// A machine whose network is gone for good: the judge decides nothing, and no process
// remains, although no packet tells either side.
func TestProveOverANetworkThatGoes(t *testing.T) {
	needNamespaces(t)
	n := newNetwork(t)
	var said strings.Builder
	all := n.start(&said, "--for", "1h", "--session-timeout", "10s")
	workersAppear(t, all[2], 2)
	time.Sleep(5 * time.Second) // in the midst of a round
	ip(t, "-n %s link set in%d down", space(0), machines)
	require.Error(t, all[0].Wait())
	t.Log(said.String())
	require.Contains(t, said.String(), "UNDECIDED")
	require.Equal(t, 1,
		strings.Count(said.String(), "a machine that had joined is gone"))
	require.NoError(t, all[1].Wait())
	ended := make(chan error, 1)
	go func() { ended <- all[2].Wait() }()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(patience):
		t.Fatal("it waits for a judge that cannot be heard")
	}
	require.Equal(t, exitUndecided, all[2].ProcessState.ExitCode())
	out, err := exec.Command("ip", "netns", "pids", space(machines)).Output()
	require.NoError(t, err)
	require.Empty(t, string(out), "no worker is left")
}
