package prove

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clockVariable says what is wrong with the clock of a worker of withWrongClocks.
const clockVariable = "PROVE_CLOCK"

// wrongClock is added to Go's runtime: what can be wrong with its clock, from the start
// of the process on. Go reads the time without libc, so that faketime does not reach it.
const wrongClock = `
var (
	clockFrom int64 // 0: all is well
	clockSlow int64 // by this part of the time
	clockBack int64 // seconds by which the wall clock is set back after 5 s
)

func init() {
	switch gogetenv("` + clockVariable + `") {
	case "slow":
		clockSlow = 5
	case "set back":
		clockBack = 3600
	}
	clockFrom = nanotime1()
}

//go:nosplit
func wrong(now int64) int64 {
	if clockSlow > 0 && clockFrom > 0 {
		return now - (now-clockFrom)/clockSlow
	}
	return now
}

func wrongWall(sec, now int64) int64 {
	if clockFrom > 0 && now-clockFrom > 5e9 {
		return sec - clockBack
	}
	return sec
}
`

// wrongNow is how time.Now reads it, which has an assembly of its own.
const wrongNow = `
func trueNow() (sec int64, nsec int32, mono int64)

//go:linkname time_now time.now
func time_now() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = trueNow()
	return wrongWall(sec, mono), nsec, wrong(mono)
}
`

// withWrongClocks is this test binary with such a runtime.
func withWrongClocks(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	runtime := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime")
	replaced := map[string]string{}
	replace := func(file, former, text, more string) {
		source := filepath.Join(runtime, file)
		all, err := os.ReadFile(source)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(all), former), "%s in %s", former, file)
		all = []byte(strings.Replace(string(all), former, text, 1) + more)
		replaced[source] = filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(replaced[source], all, 0o600))
	}
	replace("time_nofake.go", "return nanotime1()", "return wrong(nanotime1())",
		wrongClock)
	replace("timeasm.go", "//go:linkname time_now time.now\n"+
		"func time_now() (sec int64, nsec int32, mono int64)", "", wrongNow)
	replace("time_linux_amd64.s", "TEXT time·now<", "TEXT ·trueNow<", "")
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

// Workers whose clock is wrong, under a judge whose clock is right: one that runs slow is
// found and named; the wall clock does not matter.
func TestWorkersWhoseClockIsWrong(t *testing.T) {
	if os.Getenv("PROVE_DEFECTS") == "" {
		t.Skip("it builds Go's runtime, and runs for minutes: PROVE_DEFECTS=1 runs it, " +
			"as scripts/soak.sh does")
	}
	program := withWrongClocks(t)
	for _, test := range []struct {
		wrong string
		want  []Verdict
	}{
		{"slow", []Verdict{Violated}},
		{"set back", []Verdict{Proven, Undecided}}, // a busy machine decides nothing
	} {
		t.Run(test.wrong, func(t *testing.T) {
			servers, _ := serve(t)
			c := configFor(t, servers)
			c.Calm, c.For, c.Session, c.Rate = false, 40*time.Second, 10*time.Second, 400
			right := c.Worker
			c.Worker = func() *exec.Cmd {
				cmd := right()
				cmd.Path = program
				cmd.Env = append(cmd.Env, clockVariable+"="+test.wrong)
				return cmd
			}
			report := prove(t, c)
			require.Contains(t, test.want, report.Verdict)
			if report.Verdict == Violated {
				require.Equal(t, clocks, report.Findings[0].What)
				require.Regexp(t, `^worker [0-3]: the clock of its process ran `,
					report.Findings[0].Text)
			}
		})
	}
}
