//go:build linux

package inherited_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Releases are built without cgo, "go install" has it where there is a C compiler.
func TestIgnored(t *testing.T) {
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
			got := strings.Join(strings.Fields(string(out)), " ")
			require.Equal(t, want, got, "CGO_ENABLED=%s: %s", cgo, script)
		}
	}
}
