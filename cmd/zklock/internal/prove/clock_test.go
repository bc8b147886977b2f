package prove

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slowClock are changes of Go's runtime, by its files, after which a clock is slow by a
// fifth. No library can do that from outside: Go asks the kernel, not libc.
var slowClock = map[string][]string{
	"time_nofake.go": {"return nanotime1()", "return nanotime1() / 5 * 4"},
	"time_linux_amd64.s": {
		"TEXT time·now<ABIInternal>", "TEXT ·trueNow<ABIInternal>",
	},
	"timeasm.go": {
		"func time_now() (sec int64, nsec int32, mono int64)",
		`func time_now() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = trueNow()
	return sec, nsec, mono / 5 * 4
}

func trueNow() (sec int64, nsec int32, mono int64)`,
	},
}

// slowWorker builds this test with a clock that is slow.
func slowWorker(t *testing.T) (program string) {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	for name, change := range slowClock {
		//nolint:staticcheck // the tests run where the toolchain is
		file := filepath.Join(runtime.GOROOT(), "src", "runtime", name)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), change[0]), "in %s", file)
		replaced[file] = filepath.Join(dir, name)
		slow := strings.Replace(string(text), change[0], change[1], 1)
		require.NoError(t, os.WriteFile(replaced[file], []byte(slow), 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	program = filepath.Join(dir, "worker")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay,
		"-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// The clocks of the workers' processes are slow by a fifth, and the judge's is not: some
// worker that is cut off takes its lock for held when the servers can have given it away.
func TestClocksThatAreSlow(t *testing.T) {
	if os.Getenv("PROVE_DEFECTS") == "" {
		t.Skip("it builds Go's runtime, and takes minutes: PROVE_DEFECTS=1 runs it, " +
			"as scripts/soak.sh does")
	}
	program := slowWorker(t)
	servers, _ := serve(t)
	c := configFor(t, servers)
	// Of a session that is longer a busy machine is late by a smaller part.
	c.For, c.Calm, c.Workers, c.Rate, c.Session = 10*time.Minute, false, 4, 400,
		20*time.Second
	c.Worker = func() *exec.Cmd {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), workerVariable+"="+servers)
		return cmd
	}
	report := prove(t, c)
	require.Equal(t, Violated, report.Verdict)
	require.Equal(t, "losses", report.Findings[0].What)
}
