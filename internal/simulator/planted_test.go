package simulator_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/plant"
)

// TestDefectsArePlanted compiles all defects, so that a change of what they break is
// noticed at once.
func TestDefectsArePlanted(t *testing.T) {
	mustRun(t, planted(t, "build", "."))
}

// planted is a run of the go command on the library with all defects planted. What one
// has compiled the next finds in the build cache.
func planted(t *testing.T, command string, args ...string) *exec.Cmd {
	t.Helper()
	overlay, err := plant.Overlay("../..", t.TempDir(), defects)
	require.NoError(t, err)
	args = append([]string{command, "-overlay", overlay}, args...)
	return exec.CommandContext(t.Context(), "go", args...)
}

func mustRun(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
