// Package report says what was measured: in tables, in pictures, and beside what was
// asked for.
package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/plan"
)

// A Fact is one of the machine, or the version of a program.
type Fact struct{ Name, Text string }

// Data are all that a report is made of.
type Data struct {
	Made         time.Time           `json:"made"`
	Took         time.Duration       `json:"took"`
	Time         time.Duration       `json:"time"`           // of one measurement
	Note         string              `json:"note,omitempty"` // by whoever made it
	Facts        []Fact              `json:"facts"`
	Missing      []string            `json:"missing,omitempty"` // what was not measured
	Measurements []*plan.Measurement `json:"measurements"`
}

// Read reads what Save has saved.
func Read(file string) (*Data, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &Data{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// Save writes a measurement a line.
func (d *Data) Save(file string) error {
	head := *d
	head.Measurements = nil
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	const last = "null}" // what Marshal makes of no measurements
	text = append(text[:len(text)-len(last)], '[')
	for i, m := range d.Measurements {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, '\n'), line...)
	}
	return os.WriteFile(file, append(text, "\n]}\n"...), 0o644)
}

// AddFact adds a fact, once.
func (d *Data) AddFact(name, text string) {
	if f := (Fact{name, text}); !slices.Contains(d.Facts, f) {
		d.Facts = append(d.Facts, f)
	}
}

// Add takes the measurements of another run over, as further settings or scenarios.
func (d *Data) Add(other *Data) {
	d.Measurements = append(d.Measurements, other.Measurements...)
	d.Took += other.Took
	d.Missing = append(d.Missing, other.Missing...)
}

// settings are those that something was measured in, in that order.
func (d *Data) settings() (found []plan.Setting) {
	seen := map[plan.Setting]bool{}
	for _, m := range d.Measurements {
		if !seen[m.Setting] {
			seen[m.Setting] = true
			found = append(found, m.Setting)
		}
	}
	return found
}

// rounds says how many there were, from the fewest of a measurement to the most; with no
// settings, of all.
func (d *Data) rounds(of ...plan.Setting) string {
	type measured struct {
		setting        plan.Setting
		scenario, peer string
	}
	times := map[measured]int{}
	for _, m := range d.Measurements {
		if len(of) == 0 || slices.Contains(of, m.Setting) {
			times[measured{m.Setting, m.Scenario, m.Peer}]++
		}
	}
	counts := slices.Sorted(maps.Values(times))
	if len(counts) == 0 {
		return "none"
	}
	fewest, most := counts[0], counts[len(counts)-1]
	if fewest == most {
		return strconv.Itoa(most)
	}
	return fmt.Sprintf("%d to %d", fewest, most)
}

// of returns what was measured of one peer.
func (d *Data) of(s plan.Setting, scenario, peer string) (found []*plan.Measurement) {
	for _, m := range d.Measurements {
		if m.Setting == s && m.Scenario == scenario && m.Peer == peer {
			found = append(found, m)
		}
	}
	return found
}

// speeds are those of one peer, by round.
func (d *Data) speeds(
	s plan.Setting, scenario plan.Scenario, peer string,
) map[int]float64 {
	found := map[int]float64{}
	for _, m := range d.of(s, scenario.ID, peer) {
		if speed, ok := m.Speed(scenario.Unit); ok {
			found[m.Round] = speed
		}
	}
	return found
}

// scenario returns the one with this ID.
func scenario(id string) plan.Scenario {
	for _, s := range plan.Scenarios {
		if s.ID == id {
			return s
		}
	}
	panic("BUG: there is no scenario " + id)
}

// title is how the tables write a peer.
func title(name string) string {
	for _, p := range plan.Peers {
		if p.Name == name {
			return p.Title
		}
	}
	return name
}
