package survey_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// inKazoo is a program with kazoo that queues for a lock, says when it holds it, and
// releases it at a line.
const inKazoo = `
import sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1])
client.start()
lock = client.Lock(sys.argv[2], "kazoo")
lock.acquire()
print("holds", flush=True)
sys.stdin.readline()
lock.release()
client.stop()
`

// What it says of holders, on a real ZooKeeper, too (ZOOKEEPER_RUN=real), is what the
// programs say of themselves, whatever they are made with.
func TestWhateverProgramItIs(t *testing.T) {
	cluster := zkserver.Start(t)
	client, err := recipes.Connect(t.Context(), cluster.Connect(), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s := survey.New(client, config())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		_ = s.Run(ctx) // it ends with ctx
		close(ended)
	}()
	defer func() { cancel(); <-ended }()
	for _, lock := range []func(t *testing.T, servers, path string) (release func()){
		withKazoo, withZKLock, withRecipes,
	} {
		path := fmt.Sprintf("/foreign/%d", time.Now().UnixNano())
		release := lock(t, cluster.Connect(), path)
		awaits(t, s, path, 1)
		release()
		awaits(t, s, path, 0)
	}
}

// awaits waits until as many hold a lock as they say.
func awaits(t *testing.T, s *survey.Survey, path string, holders int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		locks := s.State().Locks
		at := slices.IndexFunc(locks, func(l survey.Lock) bool { return l.Path == path })
		if at >= 0 && len(locks[at].Holders()) == holders {
			return
		}
		require.True(t, time.Now().Before(deadline), "%s: %+v", path, locks)
		time.Sleep(10 * time.Millisecond)
	}
}

func withKazoo(t *testing.T, servers, path string) (release func()) {
	t.Helper()
	if exec.Command("/usr/bin/python3", "-c", "import kazoo").Run() != nil {
		zkserver.Lacking(t, "kazoo: on Debian, as root, apt-get install python3-kazoo")
	}
	cmd := exec.Command("/usr/bin/python3", "-c", inKazoo, servers, path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // else it has ended
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "holds\n", line)
	return func() {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait())
	}
}

func withZKLock(t *testing.T, servers, path string) (release func()) {
	t.Helper()
	// The client gives a dial a second, and fails all that is asked meanwhile.
	patient := func(network, addr string, _ time.Duration) (net.Conn, error) {
		return net.DialTimeout(network, addr, time.Minute)
	}
	conn, _, err := zk.Connect([]string{servers}, 10*time.Second,
		zk.WithLogInfo(false), zk.WithDialer(patient))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	lock := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
	require.NoError(t, lock.Lock())
	return func() { require.NoError(t, lock.Unlock()) }
}

func withRecipes(t *testing.T, servers, path string) (release func()) {
	t.Helper()
	client, err := recipes.Connect(t.Context(), servers, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	lock, err := recipes.NewInterProcessMutex(client, path)
	require.NoError(t, err)
	hold, err := recipes.Acquire(t.Context(), lock)
	require.NoError(t, err)
	return func() { require.NoError(t, hold.Release(t.Context())) }
}
