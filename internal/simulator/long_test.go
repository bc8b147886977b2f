package simulator_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/simulator"
)

// TestSimulatorForLong runs one seed with many processes for as long as SIM_LONG says, a
// duration of virtual time such as 8h; by default for a minute. What grows with the time
// that a process lives, and what a crowd does, is not met in a run of three processes for
// 40 seconds. SIM_SEED=x is the seed.
func TestSimulatorForLong(t *testing.T) {
	const processes = 64
	seed, ok := number(t, "SIM_SEED")
	if !ok {
		seed = 1
	}
	in := newScene(seed)
	in.workers, in.owners, in.lasts = processes, 1, time.Minute
	if text := os.Getenv("SIM_LONG"); text != "" {
		var err error
		in.lasts, err = time.ParseDuration(text)
		require.NoError(t, err, "SIM_LONG")
	}
	if !raceDetector {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	r := simulateIn(t, in, seed, false)
	total := tally(map[simulator.Kind]int{}, r.history)
	t.Logf("seed %d (%v), %d processes for %v: %v", seed, in, processes, in.lasts, total)
	require.NoError(t, r.err)
	require.NotZero(t, total[simulator.Granted])
	require.NotZero(t, total[simulator.Lost])
}
