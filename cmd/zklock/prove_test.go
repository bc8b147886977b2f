package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// workersOf are the processes of a prove's workers, by what they call themselves.
func workersOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	out, _ := exec.Command("ps", "-o", "pid=,args=", "--ppid", strconv.Itoa(parent)).
		Output() // it fails if there are none
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[1] == proveWorkerName {
			pid, err := strconv.Atoi(fields[0])
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// If prove is killed, its workers end, also those that are suspended just then.
func TestTheWorkersOfProveEndWithIt(t *testing.T) {
	cluster, err := zktest.New()
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	program := filepath.Join(t.TempDir(), "zklock")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, program)) // testscript goes by the name
	cmd := exec.Command(program, "prove", "--calm", "--for", "1h", "--workers", "3")
	cmd.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+cluster.ConnectString())
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended
	var pids []int
	require.Eventually(t, func() bool {
		pids = workersOf(t, cmd.Process.Pid)
		return len(pids) == 3
	}, patience, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGSTOP))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !runs(strconv.Itoa(pid)) }, patience,
			10*time.Millisecond, "worker %d still runs", pid)
	}
}
