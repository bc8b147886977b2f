package recipes

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// aLongHold has n dependents.
func aLongHold(n int) (h *Hold, all []*dependent) {
	h = &Hold{grant: &grant{lost: context.Background()}}
	for range n {
		d := &dependent{end: func() {}}
		h.keep(d)
		all = append(all, d)
	}
	return h, all
}

// A hold lets go of each ctx that is done, in whatever order they end.
func TestAHoldForgetsWhatIsDone(t *testing.T) {
	t.Parallel()
	const n = 50
	h, all := aLongHold(n)
	for i, at := range rand.Perm(n) {
		h.forget(all[at])
		h.forget(all[at]) // does nothing
		require.NotContains(t, h.dependents, all[at])
		require.Len(t, h.dependents, n-1-i)
	}
}

// To let go of a ctx took the longer the more of them a hold had: seconds when the parent
// of a hundred thousand ended. So the last one takes its place, and no other moves.
func TestAHoldForgetsAtOnceWhatIsDone(t *testing.T) {
	t.Parallel()
	h, all := aLongHold(1000)
	for _, d := range all[:500] {
		before, place := slices.Clone(h.dependents), d.index
		h.forget(d)
		moved := 0
		for at, now := range h.dependents {
			require.Equal(t, at, now.index)
			if now != before[at] {
				moved++
			}
		}
		require.Same(t, before[len(before)-1], h.dependents[place])
		require.Equal(t, 1, moved)
	}
}

// A hold with many ctxs needed as deep a stack to end them, which took seconds.
func TestManyCallsNeedNoStack(t *testing.T) {
	t.Parallel()
	var depths []int
	fromLast(10, func(int) {
		depths = append(depths, runtime.Callers(0, make([]uintptr, 1000)))
	})
	require.Len(t, depths, 10)
	require.Equal(t, depths[0], depths[9])
}
