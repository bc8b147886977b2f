package seqnode

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A list that shows nothing but participants, as nearly all do, costs nothing more.
func TestALookoutCostsNothing(t *testing.T) {
	children := []string{"a-lock-0000000001", "b-lock-0000000002", "c-lock-0000000003"}
	bare := &Queue{Dir: "/lock", Kinds: mutexKinds}
	watched := &Queue{Dir: "/lock", Kinds: mutexKinds, Lookout: &Lookout{
		Find: func([]string, []string) string {
			t.Error("there is nothing to find")
			return ""
		},
	}}
	allocs := func(q *Queue) float64 {
		return testing.AllocsPerRun(100, func() {
			_, _ = newView(q, listing{children: children}) // the order is certain
		})
	}
	require.Equal(t, allocs(bare), allocs(watched)) //nolint:testifylint // the very same
}

func TestALookoutTellsOnce(t *testing.T) {
	var told []string
	q := &Queue{Dir: "/lock", Kinds: mutexKinds, Lookout: &Lookout{
		Find: func(children, kinds []string) string {
			require.Equal(t, mutexKinds, kinds)
			at := slices.Index(children, "other")
			if at < 0 {
				return ""
			}
			return children[at]
		},
		Tell: func(dir, found string) { told = append(told, dir+"/"+found) },
	}}
	same := *q
	q.members([]string{"lock-0000000001", "what"})
	require.Empty(t, told)
	for _, of := range []*Queue{q, &same, q} {
		require.Len(t, of.members([]string{"lock-0000000001", "other"}), 1)
		require.Equal(t, []string{"/lock/other"}, told)
	}
	require.True(t, q.isOneWith(&same))
	require.False(t, q.isOneWith(&Queue{Lookout: new(Lookout)}))
}
