package pages_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGodocShowsNoInternals: a user cannot look up what an internal package declares.
func TestGodocShowsNoInternals(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(root, "internal", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	command := exec.CommandContext(t.Context(), "go", "doc", "-all", ".")
	command.Dir = root
	text, err := command.CombinedOutput()
	require.NoErrorf(t, err, "%s", text)
	for _, folder := range folders {
		qualified := regexp.MustCompile(`\b` + filepath.Base(folder) + `\.[A-Z]\w*`)
		require.Empty(t, qualified.FindString(string(text)))
	}
}
