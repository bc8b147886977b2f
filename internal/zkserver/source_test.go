package zkserver_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// rerun runs TestSmokeShared in a process of its own that finds no server but that of
// ZOOKEEPER_SERVERS.
func rerun(t *testing.T, servers string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSmokeShared$", "-test.v")
	cmd.Env = append(
		os.Environ(), "ZOOKEEPER_SERVERS="+servers, "ZOOKEEPER_RUN=local",
		"ZOOKEEPER_HOME="+t.TempDir(),
	)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What a test lacks is a skip that says how to get it, and a failure where it must run.
func TestWhatIsLackingIsSkipped(t *testing.T) {
	t.Parallel()
	try := func(env ...string) string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSmokeLog$", "-test.v")
		cmd.Env = append(append(os.Environ(), "ZOOKEEPER_SERVERS=", "ZOOKEEPER_RUN=",
			"MUST=", "ZOOKEEPER_HOME="+t.TempDir()), env...)
		out, _ := cmd.CombinedOutput() // an error is what it is about
		return string(out)
	}
	out := try()
	require.Contains(t, out, "--- SKIP: TestSmokeLog")
	require.Contains(t, out, "ZOOKEEPER_RUN=real runs this test")
	require.Contains(t, out, "\n1 tests were skipped")

	nothing := []string{"MUST=1", "DOCKER_HOST=", "HOME=", "XDG_RUNTIME_DIR=", "PATH="}
	out = try(nothing...)
	require.Contains(t, out, "--- FAIL: TestSmokeLog")
	require.Contains(t, out, "no ZooKeeper to be had")
	require.Contains(t, try("MUST=1", "ZOOKEEPER_RUN=keeper"), "--- SKIP: TestSmokeLog")
}

func TestNoServerFails(t *testing.T) {
	t.Parallel()
	out, err := rerun(t, "")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, out)
	require.Contains(t, out, "--- FAIL: TestSmokeShared")
	require.Contains(
		t, out, "no ZooKeeper to be had: start a container engine, or install",
	)
	require.Contains(t, out, "no lib/zookeeper*.jar", "the reason, too")
}

func TestGivenServersAreShared(t *testing.T) {
	t.Parallel()
	out, err := rerun(t, zkserver.Start(t).Connect())
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS: TestSmokeShared")
}

func TestGivenServersAreNotOurs(t *testing.T) {
	own := zkserver.Start(t)
	t.Setenv("ZOOKEEPER_SERVERS", own.Connect())
	given, err := zkserver.Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ZOOKEEPER_SERVERS", given.Kind())
	require.Equal(t, own.Connect(), given.Connect())
	server := given.Servers[0]
	for _, touch := range []func() error{
		server.Freeze, server.Thaw, server.Kill, server.Restart,
	} {
		require.ErrorContains(t, touch(), "not ours to touch")
	}
	require.NoError(t, given.Close())
	answer, err := server.FourLetter("srvr")
	require.NoError(t, err, "it serves on")
	require.Contains(t, answer, "Mode: standalone")

	private := zkserver.Start(t)
	require.NotEqual(t, "ZOOKEEPER_SERVERS", private.Kind())
	require.NotEqual(t, own.Connect(), private.Connect())

	require.NoError(t, own.Close())
	_, err = zkserver.Find(t.Context())
	require.ErrorContains(
		t, err, "no server of ZOOKEEPER_SERVERS="+own.Connect()+" serves",
	)
}

func TestForcedWay(t *testing.T) {
	t.Setenv("ZOOKEEPER_RUN", "cloud")
	_, err := zkserver.Open(t.Context())
	require.ErrorContains(
		t, err, "ZOOKEEPER_RUN=cloud: want real, local, container, embedded, keeper or "+
			"nothing",
	)

	t.Setenv("ZOOKEEPER_RUN", "local")
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	_, err = zkserver.Open(t.Context())
	require.ErrorContains(t, err, "no lib/zookeeper*.jar", "an engine does not stand in")
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string][]zkserver.Option{
		"Servers(0)":     {zkserver.Servers(0)},
		"Servers(2)":     {zkserver.Servers(2)},
		"Tick(1µs)":      {zkserver.Tick(time.Microsecond)},
		"MaxSession(1s)": {zkserver.MaxSession(time.Second), zkserver.Tick(time.Second)},
	} {
		_, err := zkserver.Open(t.Context(), opts...)
		require.ErrorContains(t, err, want)
	}
}
