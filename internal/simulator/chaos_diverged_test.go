//go:build unix

package simulator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestFirstDifference(t *testing.T) {
	t.Parallel()
	tree := func(made ...int64) map[string]int64 {
		found := map[string]int64{"/": 0}
		for i, czxid := range made {
			found[string(rune('a'+i))] = czxid
		}
		return found
	}
	require.Empty(t, firstDifference([]map[string]int64{tree(1, 2), tree(1, 2)}))
	for name, trees := range map[string][]map[string]int64{
		"the first has more":  {tree(1, 2), tree(1), tree(1)},
		"the last has more":   {tree(1), tree(1), tree(1, 2)},
		"another of one name": {tree(1, 2), tree(1, 3), tree(1, 2)},
	} {
		require.NotEmpty(t, firstDifference(trees), name)
	}
}

func TestServersThatAgreeHaveNotDiverged(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "servers of an ensemble")
	e := startEnsemble(t, 1)
	require.Empty(t, e.diverged(t.Context()))
	trees, err := znodes(t.Context(), e.Servers[0].Addr)
	require.NoError(t, err)
	require.Contains(t, trees, "/zookeeper/config", "the whole tree is walked")
}
