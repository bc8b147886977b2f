package pages_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// goDoc is what "go doc -all ." prints for the library.
func goDoc(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "doc", "-all", ".")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	return string(out)
}

// TestGodocShowsNoInternals: a user cannot look up what an internal package declares.
func TestGodocShowsNoInternals(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(root, "internal", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	text := goDoc(t)
	for _, folder := range folders {
		qualified := regexp.MustCompile(`\b` + filepath.Base(folder) + `\.[A-Z]\w*`)
		require.Empty(t, qualified.FindString(text))
	}
}

// TestGodocNamesPagesThatExist holds "docs/fencing.md" to the folder docs.
func TestGodocNamesPagesThatExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`docs/[\w-]+\.md`).FindAllString(goDoc(t), -1)
	require.NotEmpty(t, named)
	for _, page := range named {
		_, err := os.Stat(filepath.Join(root, page))
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
}
