package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/seqname"
)

// Whoever looks at a read/write lock from outside sees those hold it who do.
func TestTheReadWriteRuleIsTheObservers(t *testing.T) {
	t.Parallel()
	kinds := []string{readName, writeName, "another-library's-"}
	for _, ahead := range kinds {
		for _, self := range kinds {
			for seq := range int32(2) {
				a, s := seqname.Name{Kind: ahead}, seqname.Name{Kind: self, Seq: seq}
				require.Equal(t, observe.Excludes(a, s), readWriteRule(a, s),
					"%v ahead of %v", a, s)
			}
		}
	}
}
