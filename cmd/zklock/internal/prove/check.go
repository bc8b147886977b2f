package prove

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// What --check bears of a file that somebody has sent.
const (
	eventsMost  = 200_000 // in a round
	pathsMost   = 100
	roundsMost  = 10_000
	together    = 200 // that ask for one lock at the same time
	sessionMost = 24 * time.Hour
)

// errNoFile says that a file is no history.
var errNoFile = errors.New("it is no history of \"zklock prove\"")

// Check checks a file again. It bounds its time and its memory, and reports a file that
// it cannot decide as undecided. An error says that it is no such file.
func Check(file io.Reader) (*Report, error) {
	return checkWithin{memory: 1 << 30, time: 10 * time.Minute}.check(file)
}

// checkWithin is what a check may take.
type checkWithin struct {
	memory uint64 // bytes
	time   time.Duration
}

func (w checkWithin) check(file io.Reader) (*Report, error) {
	type answer struct {
		report *Report
		err    error
	}
	done := make(chan answer, 1)
	c := &checking{report: &Report{Findings: []Finding{}, Advice: []string{}}}
	go func() {
		err := errNoFile // what the checks do not expect, nobody has recorded
		defer func() {
			if recover() != nil {
				done <- answer{err: err}
			}
		}()
		err = c.read(file)
		done <- answer{c.report, err}
	}()
	tick := time.NewTicker(time.Second / 10)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case a := <-done:
			return a.report, a.err
		case <-tick.C:
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			if memory.HeapAlloc > w.memory || time.Since(began) > w.time {
				return w.tooLarge(), nil
			}
		}
	}
}

// tooLarge is the report on a file that cannot be checked.
func (w checkWithin) tooLarge() *Report {
	r := &Report{Verdict: Undecided, Advice: []string{}}
	r.undecided(-1, "check", fmt.Sprintf(
		"it takes more than %v, or more than %d MiB", w.time, w.memory>>20))
	return r
}

// A checking reads a file, of which it keeps a round.
type checking struct {
	report  *Report
	head    *roundHead // of the round that is read; nil: none
	history simulator.History
	paths   map[string]bool
	counts  counts
	rounds  int
	begun   bool
	ended   bool
}

func (c *checking) read(file io.Reader) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, reportMost)
	for n := 1; lines.Scan(); n++ {
		var one record
		err := json.Unmarshal(lines.Bytes(), &one)
		tooLong := len(lines.Bytes()) > lineMost && one.End == nil
		if err != nil || tooLong || !c.take(one) {
			return fmt.Errorf("line %d: %w", n, errNoFile)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !c.begun {
		return errNoFile
	}
	if !c.ended || c.head != nil {
		c.report.undecided(-1, "check", "the file has no end")
	}
	c.report.decide()
	return nil
}

// reportMost bounds a line, and lineMost one that is no report.
const reportMost = 4 << 20

// take takes a record, if that can stand here.
func (c *checking) take(one record) bool {
	switch {
	case c.ended:
		return false
	case one.Head != nil:
		h := one.Head
		ok := !c.begun && h.Format == fileFormat
		c.begun = true
		c.report.Version, c.report.Began = h.Version, h.Began
		c.report.Root, c.report.Seed = h.Root, h.Seed
		return ok
	case one.Round != nil:
		return c.begin(*one.Round)
	case one.Event != nil:
		return c.event(*one.Event)
	case one.RoundEnd != nil:
		return c.finish(*one.RoundEnd)
	case one.End != nil:
		c.ended = c.begun
		c.copy(one.End)
		return c.begun && c.head == nil
	}
	return false
}

// copy takes what no check can find out again.
func (c *checking) copy(end *Report) {
	r := c.report
	r.Lasted, r.Workers, r.Hosts, r.Rate = end.Lasted, end.Workers, end.Hosts, end.Rate
	r.Calm, r.Ensemble, r.Skipped = end.Calm, end.Ensemble, end.Skipped
	kept := slices.DeleteFunc(end.Findings, func(f Finding) bool {
		return f.Round >= 0 && f.Verdict != Undecided && f.What != endOfRound
	})
	r.Findings = append(kept, r.Findings...) // no history has them
	r.Counts.Faults = end.Counts.Faults
	r.Advice = append(r.Advice, r.advise()...)
}

func (c *checking) begin(head roundHead) bool {
	c.rounds++
	if !c.begun || c.head != nil || c.rounds > roundsMost ||
		head.Session < time.Millisecond || head.Session > sessionMost {
		return false
	}
	c.head, c.history, c.paths = &head, nil, map[string]bool{}
	c.counts = counts{}
	return true
}

func (c *checking) event(e simulator.Event) bool {
	c.paths[e.Path] = true
	last := time.Duration(0)
	if n := len(c.history); n > 0 {
		last = c.history[n-1].At
	}
	if c.head == nil || len(c.history) >= eventsMost || len(c.paths) > pathsMost ||
		e.At < last || e.At > sessionMost {
		return false
	}
	c.history = append(c.history, e)
	c.counts.add(e)
	return true
}

// finish checks a round.
func (c *checking) finish(end roundHead) bool {
	if c.head == nil || end.Number != c.head.Number || end.Late < 0 ||
		end.Late > sessionMost {
		return false
	}
	c.head.Late = end.Late
	c.report.Session = c.head.Session
	if crowded(c.history) {
		c.report.undecided(end.Number, "check", fmt.Sprintf(
			"more than %d ask for one lock at the same time", together))
	} else {
		c.report.take(*c.head, c.counts, nil, c.history)
	}
	c.head = nil
	return true
}

// crowded tells whether so many ask for one lock at the same time that the search of an
// order has no bound.
func crowded(h simulator.History) bool {
	asking := map[string]int{}
	for _, e := range h {
		switch e.Kind {
		case simulator.Called:
			if asking[e.Path]++; asking[e.Path] > together {
				return true
			}
		case simulator.Granted, simulator.Failed:
			asking[e.Path]--
		}
	}
	return false
}
