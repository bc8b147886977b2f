package main

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
	"github.com/zkrecipes/recipes/bench/internal/service"
	"github.com/zkrecipes/recipes/bench/internal/worker"
)

// versions are workers in this process, of these peers.
type versions map[string]string

func (v versions) Do(
	ctx context.Context, version string, _ int, l load.Load,
) []load.Result {
	p, _ := peer.Find(v[version])
	return []load.Result{worker.Do(ctx, p, l)}
}

// zk.Lock is this library with a request more: it takes three.
func TestAVersionWithOneMoreRequestIsFound(t *testing.T) {
	t.Setenv("ZOOKEEPER_RUN", "embedded")
	servers, err := service.Start(t.Context(), service.ZooKeeper, 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, servers.Close()) })
	for newPeer, verdict := range map[string]string{
		peer.ZKLock: "MORE", peer.Recipes: "(the same|undecided)",
	} {
		comparison := &report.Comparison{
			Scenarios: plan.Scenarios[:1], Tolerance: 0.03,
		}
		c := compareCommand{
			Rounds: comparison.FewestRounds(), Time: time.Millisecond, Least: 50,
		}
		workers := versions{report.Old: peer.Recipes, report.New: newPeer}
		require.NoError(t, c.measure(t.Context(), workers, servers, comparison))
		table, more, err := comparison.Verdicts()
		require.NoError(t, err)
		row := regexp.MustCompile(`S1 \| requests \| [0-9.]+ \([0-9.–]+\) \| ` + verdict)
		require.Regexp(t, row, table)
		if newPeer == peer.ZKLock {
			require.True(t, more)
		}
	}
}
