package worker_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// The servers of this test are this process, so both take the same time. Its users never
// wait, but other programs may leave them little: it lasts until they have had enough to
// compare, since the time of others is counted in steps of 10 ms.
func TestProcessorTimeIsMeasured(t *testing.T) {
	l := some(load.Cycle)
	l.WarmUp, l.Time = time.Millisecond, 100*time.Millisecond
	l.PIDs = []int{os.Getpid()}
	for {
		r := do(t, newMemory(), l)
		require.Empty(t, r.Fault)
		if *r.ClientCPU > 500*time.Millisecond {
			require.InEpsilon(t, *r.ClientCPU, *r.ServerCPU, 0.2)
			return
		}
		l.Time *= 2
	}
}

func TestServersThatCannotBeWatched(t *testing.T) {
	const none = 1 << 27 // more than Linux has
	for _, pids := range [][]int{nil, {none}, {os.Getpid(), none}} {
		l := some(load.Cycle)
		l.WarmUp, l.Time, l.PIDs = time.Millisecond, 10*time.Millisecond, pids
		r := do(t, newMemory(), l)
		require.Empty(t, r.Fault)
		require.Nil(t, r.ServerCPU)
		require.NotNil(t, r.ClientCPU)
	}
}
