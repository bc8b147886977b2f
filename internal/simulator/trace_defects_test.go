package simulator_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// inTraces are the planted defects that the model of the queue can express, or that a
// session ends before the holder is told. The traces of some seeds show them, the first
// of them mostly one of the first twenty. Where none of those does, from is where to
// begin.
var inTraces = []struct {
	name string
	from int
}{
	{"the loss is timed from the disconnect", 1},
	{"its own znode is not looked after when the one ahead goes", 1},
	{"what a follower answers by itself keeps the clock", 1},
	{"who has lost the lock hands it over", 1},
	{"a loss is not told to the holder", 1},
	{"a create that nobody waits for any more leaves its znode", 1},
	{"the znode of a hold that has ended goes before its margin is over", 1},
}

// mostTraces is how many seeds each defect may take.
const mostTraces = 150

// TestTracesOfDefects demands that the acceptor rejects traces of a library with each
// defect, but not that of the same seed without it.
func TestTracesOfDefects(t *testing.T) {
	skipDefects(t)
	simulator := filepath.Join(t.TempDir(), "simulator.test")
	mustRun(t, planted(t, "test", "-c", "-vet=off", "-o", simulator, "."))
	for _, d := range inTraces {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			out, failed := runMutant(t, simulator, "TestTraces", d.name,
				"SIM_FROM="+strconv.Itoa(d.from), "SIM_TRACES="+strconv.Itoa(mostTraces))
			require.True(t, failed, "%d traces show nothing", mostTraces)
			found := rejectedSeed.FindStringSubmatch(out)
			require.NotNil(t, found, "no seed is rejected: %s", out)
			t.Logf("%.200s", found[0])
			out, failed = runMutant(t, simulator, "TestTraces", "", "SIM_FROM="+found[1],
				"SIM_TRACES=1")
			require.False(t, failed, "it is rejected without the defect: %s", out)
		})
	}
}
