package prove

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// A Verdict is what a run has shown.
type Verdict string

// The verdicts.
const (
	Proven    Verdict = "proven"
	Violated  Verdict = "violated"
	Undecided Verdict = "undecided"
)

// What is found by no check of a history.
const (
	endOfRound = "end of the round" // workers do not come to it
	forgetful  = "servers"          // they forget
	clocks     = "clocks"           // they do not run alike
)

// A Finding is what was found in a round.
type Finding struct {
	Verdict Verdict  `json:"verdict"` // Violated or Undecided
	Round   int      `json:"round"`   // -1: of the whole run
	What    string   `json:"what"`
	Text    string   `json:"text"`
	Excerpt []string `json:"excerpt,omitempty"` // the lines of the history that show it
}

// A Report is what is said at the end of a run.
type Report struct {
	Version string        `json:"version"`
	Began   time.Time     `json:"began"`
	Lasted  time.Duration `json:"lasted"`
	Root    string        `json:"root"`
	Seed    uint64        `json:"seed"`
	Session time.Duration `json:"session"`
	Workers int           `json:"workers"` // of all machines
	Hosts   int           `json:"hosts"`
	Rate    int           `json:"rate"`
	Calm    bool          `json:"calm"`
	Rounds  int           `json:"rounds"`            // that count
	Skipped []string      `json:"skipped,omitempty"` // why others do not
	Counts  counts        `json:"counts"`
	// Late is by how much the judge was late at worst.
	Late     time.Duration `json:"late"`
	Ensemble Ensemble      `json:"ensemble"`
	Findings []Finding     `json:"findings"`
	Verdict  Verdict       `json:"verdict"`
	Advice   []string      `json:"advice"`
	Left     string        `json:"left,omitempty"` // why the root could not be deleted

	shown round // for a picture
}

// A round is what a picture shows.
type round struct {
	head    roundHead
	history simulator.History
}

func newReport(c Config, session time.Duration, sessions Span) *Report {
	return &Report{
		Version: c.Version, Began: time.Now(), Root: c.Root, Seed: c.Seed,
		Session: session, Workers: c.Workers, Hosts: 1, Rate: c.Rate, Calm: c.Calm,
		Ensemble: Ensemble{Sessions: sessions, Tick: sessions.Least / 2},
		Findings: []Finding{}, Advice: []string{},
	}
}

func (r *Report) head() *Head {
	return &Head{
		Format: fileFormat, Version: r.Version, Began: r.Began, Root: r.Root,
		Seed: r.Seed,
	}
}

// open tells whether nothing was found yet.
func (r *Report) open() bool { return len(r.Findings) == 0 }

func (r *Report) violated(round int, what, text string, lines []string) {
	r.Findings = append(r.Findings, Finding{Violated, round, what, text, lines})
}

// forgotten comes before all else that was found, which may come of it.
func (r *Report) forgotten(what error) {
	r.Findings = slices.Insert(r.Findings, 0, Finding{
		Violated, -1, forgetful, "the servers forget: " + what.Error(), nil,
	})
}

func (r *Report) undecided(round int, what, text string) {
	r.Findings = append(r.Findings, Finding{Undecided, round, what, text, nil})
}

// An undecidedError is why a round shows nothing.
type undecidedError struct{ why error }

func (e *undecidedError) Error() string { return e.why.Error() }
func (e *undecidedError) Unwrap() error { return e.why }

// take judges a round, and tells whether it counts. failed is what its workers came to.
func (r *Report) take(
	head roundHead, c counts, failed error, history simulator.History,
) (counts bool) {
	r.Counts.sum(c)
	r.Late = max(r.Late, head.Late)
	for _, e := range history {
		if e.Kind == clockOff {
			r.violated(head.Number, clocks, e.Text, nil)
		}
	}
	limits := head.limits()
	for _, err := range flat(history.Check(limits)) {
		var v *simulator.Violation
		switch found := errors.As(err, &v); {
		case !found:
			r.undecided(head.Number, "history", err.Error())
		case v.Undecided:
			r.undecided(head.Number, v.Check, v.Text())
		default:
			lines := excerpt(history, limits, v)
			r.violated(head.Number, v.Check, v.Text(), lines)
		}
	}
	for _, err := range flat(failed) {
		// Where the machine stood still, the end may have had too little time.
		stuck := errors.As(err, new(*stuckError)) && !head.isLate()
		if stuck && !errors.As(err, new(*undecidedError)) {
			r.violated(head.Number, endOfRound, err.Error(), nil)
			continue
		}
		r.undecided(head.Number, "workers", err.Error())
	}
	if !head.Calm || r.shown.history == nil || !r.open() {
		r.shown = round{head, history}
	}
	if doubt := head.doubt(c); doubt != "" {
		r.Skipped = append(r.Skipped, doubt)
		return false
	}
	r.Rounds++
	return true
}

// isLate tells whether the judge was late by more than it may be.
func (h roundHead) isLate() bool { return h.Late > h.Session/lateMost }

// doubt is why a round shows less than it seems to, "" if it does not.
func (h roundHead) doubt(c counts) string {
	switch {
	case h.isLate():
		return fmt.Sprintf("round %d: the judge did not run for %v, and may miss %v: "+
			"was it suspended, or is this machine too busy?", h.Number,
			h.Late.Round(time.Millisecond), h.Session/lateMost)
	case c.Acquired == 0:
		return fmt.Sprintf("round %d: no lock was acquired", h.Number)
	}
	return ""
}

// sumUp ends a run.
func (r *Report) sumUp() {
	r.Lasted = time.Since(r.Began)
	r.decide()
	r.Advice = append(r.Advice, r.advise()...)
}

// decide sums up what was found.
func (r *Report) decide() {
	if r.Rounds == 0 && r.open() {
		r.undecided(-1, "rounds", "no round counts")
	}
	r.Verdict = Proven
	for _, f := range r.Findings {
		if r.Verdict != Violated {
			r.Verdict = f.Verdict
		}
	}
}
