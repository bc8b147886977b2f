package simulator_test

import (
	"testing"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// No two sessions have one name at a time, whatever happens to servers, sessions and the
// network, and it is had again once ZooKeeper can be reached.
func TestSimulatorOfNames(t *testing.T) {
	for seed := range uint64(20) {
		in := newScene(seed)
		in.locks = []simulator.Lock{
			{Recipe: simulator.PersistentNode, Paths: []string{"/names/one"}},
		}
		in.owners, in.cached, in.mixed, in.crowded = 1, 0, false, false
		in.bounded, in.shared, in.traced, in.removals = false, false, false, 0
		if r := simulateIn(t, in, seed, false); r.err != nil {
			t.Fatalf("seed %d: %v", seed, r.err)
		}
	}
}
