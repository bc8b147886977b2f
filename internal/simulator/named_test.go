package simulator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// namedSeeds is how many seeds are tried unless SIM_SEEDS says otherwise.
const namedSeeds = 20

// No two sessions have one name at a time, whatever happens to servers, sessions and the
// network, and it is had again once ZooKeeper can be reached.
func TestSimulatorOfNames(t *testing.T) {
	seeds, ok := number(t, "SIM_SEEDS")
	if !ok {
		seeds = namedSeeds
	}
	grants := uint64(0)
	for seed := range seeds {
		in := newScene(seed)
		in.locks = []simulator.Lock{
			{Recipe: simulator.PersistentNode, Paths: []string{"/names/one"}},
		}
		in.owners, in.cached, in.mixed, in.crowded = 1, 0, false, false
		in.bounded, in.shared, in.traced, in.removals = false, false, false, 0
		r := simulateIn(t, in, seed, false)
		require.NoError(t, r.err, "seed %d", seed)
		for _, e := range r.history {
			if e.Kind == simulator.Granted {
				grants++
			}
		}
	}
	require.Greater(t, grants, seeds, "hardly anybody has the name")
}
