package report

import (
	"maps"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
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
	cells := d.cpuTimes(s, in, name)
	ratios := stats.Ratios(
		d.byRound(s, in, name, (*plan.Measurement).PerCPU),
		d.byRound(s, in, peer.ZKLock, (*plan.Measurement).PerCPU),
	)
	if len(ratios) == 0 || name == peer.ZKLock {
		return append(cells, "")
	}
	return append(cells, ratioText(stats.Summarize(ratios)))
}

// cpuTimes are those of one peer's clients, and of its servers.
func (d *Data) cpuTimes(s plan.Setting, in *plan.Scenario, name string) []string {
	median := func(of func(*plan.Measurement) (float64, bool)) string {
		all := d.byRound(s, in, name, of)
		if len(all) == 0 {
			return nothing
		}
		seconds := stats.Summarize(slices.Collect(maps.Values(all))).Median
		return durationText(time.Duration(seconds * float64(time.Second)))
	}
	return []string{
		median((*plan.Measurement).ClientCPU), median((*plan.Measurement).ServerCPU),
	}
}

// upkeep is a table of what one costs a second.
func (d *Data) upkeep(s plan.Setting, in *plan.Scenario, names []string) string {
	t := newTable("", "requests", "bytes", "client CPU", "server CPU")
	for _, name := range names {
		row := []string{
			title(name),
			d.figure(s, in, name, digits,
				func(r *load.Result) *float64 { return r.Requests }),
			d.figure(s, in, name, bytesText,
				func(r *load.Result) *float64 { return r.Bytes }),
		}
		t.row(append(row, d.cpuTimes(s, in, name)...)...)
	}
	return t.String()
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
