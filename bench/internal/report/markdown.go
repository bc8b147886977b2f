package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// yardsticks are what the others are compared with.
var yardsticks = []string{peer.Raw, peer.ZKLock, plan.Curator}

// Markdown writes the report, with the pictures of each setting.
func Markdown(w io.Writer, d *Data, pictures map[plan.Setting][]Picture) error {
	var page strings.Builder
	d.writeHead(&page)
	d.writeGoals(&page)
	for _, s := range d.settings() {
		fmt.Fprintf(&page, "\n## %s\n", capital(s.String()))
		for _, p := range pictures[s] {
			fmt.Fprintf(&page, "\n%s\n", p)
		}
		for _, in := range plan.Scenarios {
			d.writeScenario(&page, s, &in)
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (d *Data) writeHead(page *strings.Builder) {
	fmt.Fprintf(page, `# The locks next to their peers

Made by [bench](README.md) on %s within %s. Rounds: %s. Time of one measurement: %v.
`, d.Made.Format(time.DateOnly), d.Took.Round(time.Minute), d.rounds(), d.Time)
	if d.Note != "" {
		fmt.Fprintf(page, "\n%s\n", d.Note)
	}
	for _, m := range d.Missing {
		fmt.Fprintf(page, "\nNot measured: %s.\n", m)
	}
	page.WriteString("\n| | |\n| --- | --- |\n")
	for _, f := range d.Facts {
		fmt.Fprintf(page, "| %s | %s |\n", f.Name, f.Text)
	}
	fmt.Fprintf(page, `
## How to read it

Clients and servers share one machine with whatever else runs on it, so a time alone says
little. In each round all peers do the same, one right after the other, in random order,
and the tables compare two peers of the same round. They have the median of the rounds'
ratios; more than 1 is faster. In brackets is its 95 %% confidence interval (it assumes no
distribution) or, of fewer than %d rounds, the minimum and maximum. If that range includes
1, or there is one round, neither peer is shown to be faster: "undecided". "%s" is what a
peer cannot do, or what was not counted. Requests and bytes are those of an operation,
both ways, with heartbeats. The servers count Curator's requests; they do not report
bytes.

Client and server CPU are the processor time of an operation. "Per CPU, × zk.Lock"
compares how many operations a second of the processor is enough for, of clients and
servers together: other programs on the machine change it less than the time.
`, stats.FewestForInterval, nothing)
	if noise := d.noise(); noise != nil {
		fmt.Fprintf(page, `
How noisy it was: %s was %s times as fast in its fastest round as in its
slowest (the median of all scenarios and settings).
`, title(peer.Raw), count(stats.Summarize(noise).Median))
	}
}

// noise tells of each scenario how many times as fast the yardstick was in its fastest
// round as in its slowest.
func (d *Data) noise() (spreads []float64) {
	for _, s := range d.settings() {
		for _, in := range plan.Scenarios {
			speeds := slices.Sorted(maps.Values(d.speeds(s, in, peer.Raw)))
			if len(speeds) > 1 {
				spreads = append(spreads, speeds[len(speeds)-1]/speeds[0])
			}
		}
	}
	return spreads
}

func (d *Data) writeGoals(page *strings.Builder) {
	t := newTable("target", "where", "measured", "reached")
	for _, s := range d.settings() {
		for _, o := range d.outcomes(s) {
			t.row(o.asked, s.String(), o.measured, o.reached)
		}
	}
	fmt.Fprintf(page, `
## Targets

If the range lies on both sides of a target, the median decides between "perhaps" and
"perhaps not".

%s`, t)
}

// writeScenario writes the table of one scenario, if it was measured.
func (d *Data) writeScenario(
	page *strings.Builder, s plan.Setting, in *plan.Scenario,
) {
	var names []string
	for _, p := range plan.Peers {
		if len(d.of(s, in.ID, p.Name)) > 0 {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(page, "\n### %s: %s\n\n%s\n\n", in.ID, in.Title, in.About)
	switch in.Unit {
	case plan.Footprint:
		page.WriteString(d.footprints(s, in, names))
	case plan.Upkeep:
		page.WriteString(d.upkeep(s, in, names))
	default:
		page.WriteString(d.speedTable(s, in, names))
	}
	for _, name := range names {
		for _, m := range d.of(s, in.ID, name) {
			if fault := m.Fault(); fault != "" {
				fault, _, _ = strings.Cut(fault, "\n")
				fmt.Fprintf(page, "\n%s, round %d: %s.\n", title(name), m.Round+1, fault)
			}
		}
	}
}

func (d *Data) speedTable(
	s plan.Setting, in *plan.Scenario, names []string,
) string {
	head := []string{"", "median"}
	var against []string
	for _, y := range yardsticks {
		if len(d.speeds(s, *in, y)) > 0 {
			against = append(against, y)
			head = append(head, "× "+title(y))
		}
	}
	if in.Processes > 1 {
		head = append(head, "least share")
	}
	head = append(head, "requests", "bytes")
	cpu := d.hasCPU(s, in, names)
	if cpu {
		head = append(head, "client CPU", "server CPU", "per CPU, × "+title(peer.ZKLock))
	}
	t := newTable(head...)
	for _, name := range names {
		row := d.speedRow(s, in, name, against)
		if cpu && len(row) == len(head)-cpuColumns {
			row = append(row, d.cpuCells(s, in, name)...)
		}
		t.row(row...)
	}
	return t.String()
}

func (d *Data) speedRow(
	s plan.Setting, in *plan.Scenario, name string, against []string,
) []string {
	speeds := d.speeds(s, *in, name)
	if len(speeds) == 0 {
		return []string{title(name), d.whyNot(s, in, name)}
	}
	all := stats.Summarize(slices.Collect(maps.Values(speeds)))
	row := []string{title(name), speedText(in.Unit, all.Median)}
	for _, y := range against {
		ratios := stats.Ratios(speeds, d.speeds(s, *in, y))
		if y == name || len(ratios) == 0 {
			row = append(row, "")
			continue
		}
		row = append(row, ratioText(stats.Summarize(ratios)))
	}
	if in.Processes > 1 {
		row = append(row, shareText(stats.Summarize(d.shares(s, in.ID, name))))
	}
	return append(row,
		d.figure(s, in, name, count,
			func(r *load.Result) *float64 { return r.Requests }),
		d.figure(s, in, name, bytesText,
			func(r *load.Result) *float64 { return r.Bytes }),
	)
}

// whyNot says in a word why a peer has no result.
func (d *Data) whyNot(s plan.Setting, in *plan.Scenario, name string) string {
	for _, m := range d.of(s, in.ID, name) {
		switch {
		case m.Fault() != "":
			return "failed"
		case !m.Unsupported():
			return "none in the time"
		}
	}
	return nothing
}

func (d *Data) footprints(
	s plan.Setting, in *plan.Scenario, names []string,
) string {
	t := newTable("", "heap", "goroutines or threads", "watches")
	for _, name := range names {
		t.row(title(name),
			d.figure(s, in, name, bytesText,
				func(r *load.Result) *float64 { return r.Heap }),
			d.figure(s, in, name, digits,
				func(r *load.Result) *float64 { return r.Threads }),
			d.figure(s, in, name, digits,
				func(r *load.Result) *float64 { return r.Watches }))
	}
	return t.String()
}

// figure writes the median of one figure over all rounds and processes.
func (d *Data) figure(
	s plan.Setting, in *plan.Scenario, name string, text func(float64) string,
	which func(*load.Result) *float64,
) string {
	var values []float64
	for _, m := range d.of(s, in.ID, name) {
		for i := range m.Results {
			if v := which(&m.Results[i]); v != nil && m.Fault() == "" {
				values = append(values, *v)
			}
		}
	}
	if len(values) == 0 {
		return nothing
	}
	slices.Sort(values)
	return text(stats.Summarize(values).Median)
}
