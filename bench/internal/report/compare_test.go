package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
)

// twoVersions has 20 rounds of a machine that is up to three times as fast in one as in
// another, for both versions alike. The new one takes so many requests, and its noise in
// processor time has no direction.
func twoVersions(requests float64) *report.Comparison {
	c := &report.Comparison{Scenarios: plan.Scenarios[:1], Tolerance: 0.03}
	for round := range 20 {
		for _, version := range []string{report.Old, report.New} {
			each, noise := 2.0, 0
			if version == report.New {
				each, noise = requests, round%5-2
			}
			r := load.Result{
				Ops: int64(1000 * (1 + round%3)), Took: time.Second, Requests: &each,
				ClientCPU: pointer(time.Duration(100+10*noise) * time.Millisecond),
			}
			c.Measured = append(c.Measured, &plan.Measurement{
				Scenario: c.Scenarios[0].ID, Peer: version, Round: round,
				Results: []load.Result{r},
			})
		}
	}
	return c
}

func TestEqualVersionsCostTheSame(t *testing.T) {
	table, more, err := twoVersions(2).Verdicts()
	require.NoError(t, err)
	require.False(t, more)
	require.Contains(t, table, "| S1 | time | 1.000 (1.000–1.000) | the same |")
	require.Contains(t, table, "| S1 | requests | 1.000 (1.000–1.000) | the same |")
	require.Contains(t, table, "| S1 | client CPU | 1.000 (0.800–1.100) | undecided |")
	require.NotContains(t, table, "bytes", "which were not counted")
}

func TestAVersionThatCostsMoreIsFound(t *testing.T) {
	table, more, err := twoVersions(2.5).Verdicts()
	require.NoError(t, err)
	require.True(t, more)
	require.Contains(t, table, "| S1 | requests | 1.250 (1.250–1.250) | MORE |")
	table, more, err = twoVersions(1.5).Verdicts()
	require.NoError(t, err)
	require.False(t, more, "it costs less")
	require.Contains(t, table, "| S1 | requests | 0.750 (0.750–0.750) | less |")
}

func TestNoVerdictOnWhatFailed(t *testing.T) {
	c := twoVersions(2)
	c.Measured[7].Results[0].Fault = "stuck"
	_, _, err := c.Verdicts()
	require.ErrorContains(t, err, "S1, new: stuck")
}

func TestBenchstatCanReadIt(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(twoVersions(2).Benchmarks(report.New)), "\n")
	require.Len(t, lines, 20)
	require.Equal(t,
		"BenchmarkS1 1 0.001 sec/op 2 requests/op 8e-05 client-CPU-sec/op", lines[0])
}

func TestSharesAreOfBothProcesses(t *testing.T) {
	s := report.NewShares([]string{"plain", "cached"})
	for _, machine := range []float64{1, 2} {
		s.Add(16, "plain", report.Pair{Ours: 100 * machine, Theirs: 100 * machine})
		s.Add(16, "cached", report.Pair{Ours: 900 * machine, Theirs: 100 * machine})
	}
	require.Contains(t, s.String(),
		"| cached | 16 | 90 (90–90) % | 5.00 (5.00–5.00) | 1.00 (1.00–1.00) |")
}
