package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A build for Windows fails with one line, and not with each signal that is missing.
func TestBuildForWindowsSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, ".")
	build.Env = append(os.Environ(), "GOOS=windows", "GOWORK=off")
	out, err := build.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(string(out), "\n"), string(out))
	require.Contains(t, string(out), "needs the signals and process groups of Unix")
}
