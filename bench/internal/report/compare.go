package report

import (
	"fmt"
	"strings"

	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// The peers of a Comparison.
const (
	Old = "old"
	New = "new"
)

// A Comparison is of two versions of this library.
type Comparison struct {
	Scenarios []plan.Scenario
	Tolerance float64 // a difference below is none
	Measured  []*plan.Measurement
}

// mistaken is the chance that a comparison of equal versions has a verdict that says they
// differ, over all verdicts together.
const mistaken = 0.05

// confidence is that of one verdict.
func (c *Comparison) confidence() float64 {
	return 1 - mistaken/float64(len(c.Scenarios)*len(plan.Metrics))
}

// FewestRounds is how many a verdict takes.
func (c *Comparison) FewestRounds() int { return stats.FewestFor(c.confidence()) }

// Benchmarks writes what was measured of one version as Go's benchmarks do.
func (c *Comparison) Benchmarks(name string) string {
	var text strings.Builder
	for _, in := range c.Scenarios {
		for _, m := range c.Measured {
			if m.Scenario != in.ID || m.Peer != name || m.Fault() != "" {
				continue
			}
			fmt.Fprintf(&text, "Benchmark%s 1", in.ID)
			for _, metric := range plan.Metrics {
				if v, ok := metric.Of(m, in.Unit); ok {
					fmt.Fprintf(&text, " %g %s", v, metric.Unit)
				}
			}
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// Verdicts writes a table of all of them, and tells whether something costs more. It
// fails if a measurement failed.
func (c *Comparison) Verdicts() (text string, more bool, err error) {
	for _, m := range c.Measured {
		if fault := m.Fault(); fault != "" {
			return "", false, fmt.Errorf("%s, %s: %s", m.Scenario, m.Peer, fault)
		}
	}
	t := newTable("new ÷ old", "what", "ratio (interval)", "verdict")
	for _, in := range c.Scenarios {
		for _, metric := range plan.Metrics {
			ratios := stats.Ratios(c.costs(&in, New, metric), c.costs(&in, Old, metric))
			if len(ratios) == 0 {
				continue
			}
			s, verdict := stats.Judge(ratios, c.confidence(), c.Tolerance)
			more = more || verdict == stats.More
			t.row(in.ID, metric.Name, rangeText(s, threeDigits), string(verdict))
		}
	}
	return t.String(), more, nil
}

func threeDigits(v float64) string { return fmt.Sprintf("%.3f", v) }

// costs are those of one version in one scenario, by round.
func (c *Comparison) costs(
	in *plan.Scenario, name string, metric plan.Metric,
) map[int]float64 {
	found := map[int]float64{}
	for _, m := range c.Measured {
		if m.Scenario != in.ID || m.Peer != name {
			continue
		}
		if v, ok := metric.Of(m, in.Unit); ok {
			found[m.Round] = v
		}
	}
	return found
}
