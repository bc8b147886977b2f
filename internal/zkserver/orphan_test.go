package zkserver_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// orphanMaker is the argument that makes the test binary start a server, tell its
// address, and wait to be killed.
const orphanMaker = "make-orphan"

func makeOrphan() {
	c, err := zkserver.Open(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.Connect())
	select {}
}

func TestSmokeKilledProcessLeavesNoServer(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "a process of its own")
	maker := exec.Command(os.Args[0], orphanMaker)
	if zkserver.Shared(t).Kind() == "container" {
		maker.Env = append(os.Environ(), "ZOOKEEPER_RUN=container")
	} else {
		maker.Env = append(os.Environ(), "ZOOKEEPER_RUN=local", "TMPDIR="+t.TempDir())
	}
	out, err := maker.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, maker.Start())
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	addr = addr[:len(addr)-1]
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err, "it serves while its maker lives")
	require.NoError(t, conn.Close())

	require.NoError(t, maker.Process.Kill())
	require.ErrorContains(t, maker.Wait(), "killed")
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, within, 20*time.Millisecond)
}
