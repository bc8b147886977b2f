package observe_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/observe"
)

func TestALintTellsOnce(t *testing.T) {
	kinds, told := []string{"lock-"}, []string(nil)
	q := observe.Queue{Dir: "/lock", Kinds: kinds, Lint: &observe.Lint{
		Find: func(children, kinds []string) string {
			require.Equal(t, []string{"lock-"}, kinds)
			at := slices.Index(children, "other")
			if at < 0 {
				return ""
			}
			return children[at]
		},
		Tell: func(dir, found string) { told = append(told, dir+"/"+found) },
	}}
	same := q
	q.Participants([]string{"lock-0000000001", "what"})
	require.Empty(t, told)
	for _, of := range []observe.Queue{q, same, q} {
		require.Len(t, of.Participants([]string{"lock-0000000001", "other"}), 1)
		require.Equal(t, []string{"/lock/other"}, told)
	}
}
