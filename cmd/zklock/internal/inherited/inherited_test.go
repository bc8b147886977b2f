//go:build linux

package inherited_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Releases are built without cgo, "go install" has it where there is a C compiler.
func TestIgnored(t *testing.T) {
	before := ignored(t, "cat") // by whatever runs this test, such as nohup
	for _, cgo := range []string{"0", "1"} {
		program := filepath.Join(t.TempDir(), "show")
		build := exec.Command("go", "build", "-o", program, "./testdata/show")
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		out, err := build.CombinedOutput()
		require.NoError(t, err, "CGO_ENABLED=%s: %s", cgo, out)
		for script, want := range map[string]string{
			"":                                   "",
			"trap '' TERM;":                      "15",
			"trap '' HUP INT QUIT PIPE ALRM;":    "1 2 3 13 14",
			"trap '' USR1 USR2 TSTP TTIN TTOU;":  "10 12 20 21 22",
			"trap '' TERM; trap 'echo no' QUIT;": "15",
		} {
			out, err := exec.Command("sh", "-c", script+"exec "+program).Output()
			require.NoError(t, err)
			want := slices.Concat(before, strings.Fields(want))
			require.ElementsMatch(t, slices.Compact(slices.Sorted(slices.Values(want))),
				strings.Fields(string(out)), "CGO_ENABLED=%s: %s", cgo, script)
		}
	}
}

// ignored are the signals that a program finds ignored, if nobody ignores any for it.
func ignored(t *testing.T, program string) (numbers []string) {
	t.Helper()
	out, err := exec.Command(program, "/proc/self/status").Output()
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(out), "SigIgn:")
	require.True(t, found)
	mask, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	require.NoError(t, err)
	for n := 1; n <= 64; n++ {
		if mask>>(n-1)&1 != 0 {
			numbers = append(numbers, strconv.Itoa(n))
		}
	}
	return numbers
}
