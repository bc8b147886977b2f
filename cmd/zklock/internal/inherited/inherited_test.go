//go:build linux

package inherited_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Releases are built without cgo, "go install" has it where there is a C compiler.
func TestInherited(t *testing.T) {
	for _, cgo := range []string{"0", "1"} {
		program := filepath.Join(t.TempDir(), "show")
		build := exec.Command("go", "build", "-o", program, "./testdata/show")
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		out, err := build.CombinedOutput()
		require.NoError(t, err, "CGO_ENABLED=%s: %s", cgo, out)
		for _, before := range []string{
			"", "trap '' TERM;", "trap '' HUP INT QUIT PIPE ALRM;",
			"trap '' USR1 USR2 TSTP TTIN TTOU;", "trap '' TERM; trap 'echo no' QUIT;",
			"exec env --block-signal=TERM,USR1 ", "exec env --block-signal ",
			"trap '' HUP; exec env --block-signal=HUP,INT,QUIT,ABRT,RTMAX ",
		} {
			require.Equal(t, run(t, before+"cat /proc/self/status"),
				run(t, before+program), "CGO_ENABLED=%s: %s", cgo, before)
		}
	}
}

// run returns what a script says of signals, as /proc has it.
func run(t *testing.T, script string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", script).Output()
	require.NoError(t, err)
	return regexp.MustCompile("Sig(Ign|Blk):.*").FindAllString(string(out), -1)
}
