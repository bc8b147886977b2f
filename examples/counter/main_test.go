package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// asCommand has the test binary be the command, also for the worker processes that it
// starts.
const asCommand = "COUNTER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(zkserver.Main(m))
}

func counter(t *testing.T, servers string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-workers", "3", "-increments", "20")
	cmd.Env = append(os.Environ(), asCommand+"=1", "ZOOKEEPER_SERVERS="+servers)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "the counter is 60\n")
	return string(out)
}

func TestOnAnEmbeddedZooKeeper(t *testing.T) {
	require.Regexp(t, `^ZooKeeper: 127\.0\.0\.1:\d+, embedded`, counter(t, ""))
}

func TestOnTheZooKeeperThatIsNamed(t *testing.T) {
	servers := zkserver.Shared(t).Connect()
	require.Contains(
		t, counter(t, servers), "ZooKeeper: "+servers+", from ZOOKEEPER_SERVERS\n",
	)
}
