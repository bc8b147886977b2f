package interop_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// startCommand runs cmd/zktest, and returns what it says: where it takes clients, and
// where faults.
func startCommand(t *testing.T, flags ...string) (servers, admin string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "zktest")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/zktest")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(binary, flags...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	})
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan())
	servers = lines.Text()
	require.True(t, lines.Scan())
	return servers, lines.Text()
}

// Curator takes locks on the test server, hands them over and loses them, as on the real
// one.
func TestCuratorOnTheTestServer(t *testing.T) {
	needsOthers(t)
	servers, admin := startCommand(t, "-servers", "3", "-tick", "500ms",
		"-max-session", "30s", "-chroot", "/of/java")
	look := newGoAt(t, servers, steady)
	for _, r := range exclusive {
		t.Run(r.name, func(t *testing.T) {
			java := newJavaAt(t, sharedJVM(t), servers, steady)
			path := "/" + newName("lock")
			first := java.lock(r, path).contender()
			second := java.lock(r, path).contender()
			inGo := look.lock(r, path).contender()
			require.True(t, first.try(0))
			require.False(t, second.try(0))
			waiting := inGo.acquire()
			look.awaitChildren(path+r.queue, r.ahead+1)
			first.release()
			require.NoError(t, locktest.Within(t, waiting, "Go is granted"))
			again := second.acquire()
			look.awaitChildren(path+r.queue, r.ahead+1)
			inGo.release()
			require.NoError(t, locktest.Within(t, again, "Java is granted"))

			after := inGo.acquire()
			look.awaitChildren(path+r.queue, r.ahead+1)
			answer, err := http.Post(
				fmt.Sprintf("%s/sessions/%#x/expire", admin, java.session), "", nil,
			)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusOK, answer.StatusCode)
			require.NoError(t, locktest.Within(t, after, "Go is granted once Java ends"))
			inGo.release()
		})
	}
}
