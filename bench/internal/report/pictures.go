package report

import (
	"fmt"
	"html"
	"path/filepath"
	"strings"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// A Picture is one in the report: the name of its file, relative to the report, without
// what tells the variants from each other, and what is to be seen.
type Picture struct{ Name, Title string }

// String is its Markdown: the variant that the reader's page is lit like.
func (p Picture) String() string {
	light, dark := p.Name+themes[0].suffix+".svg", p.Name+themes[1].suffix+".svg"
	return fmt.Sprintf(`<picture>
  <source media="(prefers-color-scheme: dark)" srcset="%s">
  <img alt="%s" src="%s">
</picture>`, dark, html.EscapeString(p.Title), light)
}

// Pictures draws all settings into the directory.
func Pictures(d *Data, dir string) (map[plan.Setting][]Picture, error) {
	drawn := map[plan.Setting][]Picture{}
	for _, s := range d.settings() {
		for _, told := range []*account{d.speedRatios(s), d.queues(s), d.bytes(s)} {
			if len(told.values) == 0 {
				continue
			}
			file := fmt.Sprintf("%s-%d-%s", told.name, s.Servers, s.Delay)
			for _, t := range themes {
				c, err := told.draw(t, told)
				if err == nil {
					err = c.save(filepath.Join(dir, file+t.suffix+".svg"), told.desc())
				}
				if err != nil {
					return nil, fmt.Errorf("draw %s: %w", file, err)
				}
			}
			name := filepath.Base(dir) + "/" + file
			drawn[s] = append(drawn[s], Picture{name, told.title})
		}
	}
	return drawn, nil
}

// A value is what a peer reached in a scenario.
type value struct {
	peer, place string
	users       float64 // in a queue
	stats.Summary
}

// An account is what a picture tells.
type account struct {
	name, title, about string
	unit               string // short: plots leave its width free on one side
	compared           bool   // the values are ratios
	values             []value
	draw               func(theme, *account) (*chart, error)
}

// places are how many scenarios the values are of.
func (a *account) places() int {
	seen := map[string]bool{}
	for _, v := range a.values {
		seen[v.place] = true
	}
	return len(seen)
}

// desc tells it in words.
func (a *account) desc() string {
	var b strings.Builder
	b.WriteString(a.about)
	place := ""
	for _, v := range a.values {
		before := "; "
		if v.place != place {
			place = v.place
			before = "\n" + strings.ReplaceAll(place, "\n", " ") + ": "
		}
		b.WriteString(before + title(v.peer) + " " + rangeText(v.Summary, count))
	}
	return b.String()
}

// about says how the values of a setting came about.
func (d *Data) about(s plan.Setting, values []value) string {
	ranges := "minimum to maximum"
	for _, v := range values {
		if v.N >= stats.FewestForInterval {
			ranges = "95 % confidence interval"
		}
	}
	machine := ""
	for _, f := range d.Facts {
		if f.Name == "processor" {
			machine = ", on one machine, " + f.Text
		}
	}
	return fmt.Sprintf("Rounds: %s%s. Dot: median. Line: %s.",
		d.rounds(s), machine, ranges)
}

// speedRatios are the scenarios that are about throughput, as ratios to zk.Lock.
func (d *Data) speedRatios(s plan.Setting) *account {
	a := &account{
		name: "speed", title: "Speed compared with zk.Lock: " + s.String(),
		unit:     "× " + title(peer.ZKLock),
		compared: true, draw: theme.rows,
	}
	for _, in := range plan.Scenarios {
		base := d.speeds(s, in, peer.ZKLock)
		if in.Unit != plan.Rate || len(base) == 0 {
			continue
		}
		label := in.Label
		if label == "" {
			label = in.Title
		}
		for _, of := range plan.Peers {
			ratios := stats.Ratios(d.speeds(s, in, of.Name), base)
			if of.Name != peer.ZKLock && len(ratios) > 0 {
				a.values = append(a.values, value{
					peer: of.Name, place: label, Summary: stats.Summarize(ratios),
				})
			}
		}
	}
	a.about = d.about(s, a.values)
	return a
}

// queues are the times of a hand-over by the length of the queue.
func (d *Data) queues(s plan.Setting) *account {
	return d.drains(s, "queue", "Time of a hand-over", "ms",
		func(m *plan.Measurement) *float64 {
			speed, ok := m.Speed(plan.Each)
			if !ok {
				return nil
			}
			const second = 1e3 // in milliseconds
			time := second / speed
			return &time
		})
}

// bytes are those of a hand-over by the length of the queue.
func (d *Data) bytes(s plan.Setting) *account {
	return d.drains(s, "bytes", "Bytes of a hand-over", "bytes",
		func(m *plan.Measurement) *float64 {
			if m.Fault() != "" {
				return nil
			}
			return m.Results[0].Bytes
		})
}

func (d *Data) drains(
	s plan.Setting, name, what, unit string, of func(*plan.Measurement) *float64,
) *account {
	a := &account{
		name: name, title: what + " by the length of the queue: " + s.String(),
		unit: unit, draw: theme.lengths,
	}
	for _, in := range plan.Scenarios {
		if in.Load.Shape != load.Drain || !strings.HasPrefix(in.ID, "S5-") {
			continue
		}
		for _, p := range plan.Peers {
			var values []float64
			for _, m := range d.of(s, in.ID, p.Name) {
				if v := of(m); v != nil && *v > 0 {
					values = append(values, *v)
				}
			}
			if len(values) > 0 {
				users := in.Load.Users
				a.values = append(a.values, value{
					p.Name, fmt.Sprintf("%d users", users), float64(users),
					stats.Summarize(values),
				})
			}
		}
	}
	if a.places() == 1 { // no length to draw it by
		a.draw = theme.rows
	}
	a.about = d.about(s, a.values)
	return a
}
