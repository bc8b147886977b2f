package main

import (
	"fmt"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/zkrecipes/recipes/bench/internal/plan"
)

// progress shows how far a run has come: on a terminal by a bar, else by a line for each
// measurement.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(measurements int) *progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(measurements,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish())}
}

// next says what is done now.
func (p *progress) next(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
		return
	}
	fmt.Fprintln(os.Stderr, what)
}

// done counts a measurement, and says if it failed.
func (p *progress) done(m *plan.Measurement) {
	if fault := m.Fault(); fault != "" {
		fmt.Fprintf(os.Stderr, "\n%s by %s failed: %s\n", m.Scenario, m.Peer, fault)
	}
	if p.bar != nil {
		_ = p.bar.Add(1) // a bar that cannot be drawn stops nothing
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // as above
	}
}
