package locktest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// Children returns what is in a directory, in the order of the sequence numbers; a
// missing directory is empty.
func Children(tb testing.TB, conn recipes.Conn, path string) []string {
	tb.Helper()
	children, _, err := conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	require.NoError(tb, err)
	slices.SortFunc(children, BySequence)
	return children
}

// AwaitChildren waits until a directory has n children, and returns them.
func AwaitChildren(
	tb testing.TB, conn recipes.Conn, path string, n int,
) (children []string) {
	tb.Helper()
	Eventually(tb, func() bool {
		children = Children(tb, conn, path)
		return len(children) == n
	}, "%s does not come to have %d children", path, n)
	return children
}

// BySequence compares two names, or paths, by the sequence number at their ends.
func BySequence(a, b string) int {
	return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):])
}
