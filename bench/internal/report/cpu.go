package report

import (
	"maps"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// cpuColumns is the number of those that the processor time takes in a table.
const cpuColumns = 3

// hasCPU tells whether the processor time was measured.
func (d *Data) hasCPU(s plan.Setting, in *plan.Scenario, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return len(d.byRound(s, in, name, (*plan.Measurement).ClientCPU)) > 0
	})
}

// cpuCells are the cells of one peer.
func (d *Data) cpuCells(s plan.Setting, in *plan.Scenario, name string) []string {
	median := func(of func(*plan.Measurement) (float64, bool)) string {
		all := d.byRound(s, in, name, of)
		if len(all) == 0 {
			return nothing
		}
		seconds := stats.Summarize(slices.Collect(maps.Values(all))).Median
		return durationText(time.Duration(seconds * float64(time.Second)))
	}
	cells := []string{
		median((*plan.Measurement).ClientCPU), median((*plan.Measurement).ServerCPU),
	}
	ratios := stats.Ratios(
		d.byRound(s, in, name, (*plan.Measurement).PerCPU),
		d.byRound(s, in, peer.ZKLock, (*plan.Measurement).PerCPU),
	)
	if len(ratios) == 0 || name == peer.ZKLock {
		return append(cells, "")
	}
	return append(cells, ratioText(stats.Summarize(ratios)))
}

// byRound are the figures of one peer, by round.
func (d *Data) byRound(
	s plan.Setting, in *plan.Scenario, name string,
	of func(*plan.Measurement) (float64, bool),
) map[int]float64 {
	found := map[int]float64{}
	for _, m := range d.of(s, in.ID, name) {
		if v, ok := of(m); ok {
			found[m.Round] = v
		}
	}
	return found
}
