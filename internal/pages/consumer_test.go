package pages_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// untilReleased is the README's line for a module that uses a clone.
const untilReleased = "go mod edit -replace github.com/zkrecipes/recipes=../recipes && " +
	"go mod tidy"

// What the tests of a package need is in the go.sum of each module that imports the
// package. These were 52 modules, most of them for one kind of server of the tests.
func TestTheLibraryBringsFewModules(t *testing.T) {
	t.Parallel()
	const most = 12
	library, err := filepath.Abs(root)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module consumer\n\ngo 1.25.0\n",
		"consumer.go": fmt.Sprintf("package consumer\n\nimport _ %q\n", libraryPath),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.Contains(t, read(t, "README.md"), untilReleased)
	for line := range strings.SplitSeq(untilReleased, " && ") {
		args := strings.Fields(line)
		for i, arg := range args {
			args[i] = strings.Replace(arg, "../recipes", library, 1)
		}
		command := exec.CommandContext(t.Context(), args[0], args[1:]...)
		command.Dir = dir
		// The database of checksums would need a network.
		command.Env = append(os.Environ(), "GOFLAGS=", "GOSUMDB=off", "GOWORK=off")
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	require.NoError(t, err)
	modules := map[string]bool{}
	for line := range strings.Lines(string(sum)) {
		modules[strings.Fields(line)[0]] = true
	}
	require.Contains(t, modules, "github.com/go-zookeeper/zk")
	require.LessOrEqual(t, len(modules), most, modules)
}
