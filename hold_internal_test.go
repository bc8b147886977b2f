package recipes

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

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
// of a hundred thousand ended.
func TestAHoldForgetsSoonWhatIsDone(t *testing.T) {
	forgetting := func(n int) time.Duration {
		fastest := time.Hour
		for range 3 {
			h, all := aLongHold(n)
			began := time.Now()
			for _, d := range all[n-1000:] {
				h.forget(d)
			}
			fastest = min(fastest, time.Since(began))
		}
		return fastest
	}
	require.Less(t, forgetting(100_000), 30*forgetting(1000))
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
