package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/crew"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
	"github.com/zkrecipes/recipes/bench/internal/service"
)

// compareCommand compares two versions of this library; compare.sh builds their workers.
type compareCommand struct {
	Peer      string        `default:"recipes" help:"Or recipes-cached."`
	Scenarios []string      `default:"S1,S2,S3-16,S4,S5-100,S6-900,S7-mutex,S7-5"`
	Rounds    int           `default:"20" help:"How often everything is measured."`
	Time      time.Duration `default:"200ms" help:"Of one measurement."`
	Least     int64         `default:"200" help:"Operations of one, however long."`
	Limit     time.Duration `default:"2m" help:"After which one is given up."`
	Tolerance float64       `default:"0.03" help:"A smaller difference is none."`
	Out       string        `default:"." help:"Where old.txt and new.txt go." type:"path"`
	Old       string        `arg:"" type:"existingfile" help:"A worker program."`
	New       string        `arg:"" type:"existingfile" help:"The other one."`
}

var errSlower = errors.New("the new version costs more")

// Run measures, and fails if something costs more.
func (c *compareCommand) Run(ctx context.Context) (err error) {
	comparison := &report.Comparison{Tolerance: c.Tolerance}
	if comparison.Scenarios, err = plan.Choose(
		plan.Scenarios, func(s plan.Scenario) string { return s.ID }, c.Scenarios,
	); err != nil {
		return fmt.Errorf("scenarios: %w", err)
	}
	if fewest := comparison.FewestRounds(); c.Rounds < fewest {
		return fmt.Errorf("rounds: %d are too few for a verdict on %d scenarios, "+
			"which takes %d", c.Rounds, len(comparison.Scenarios), fewest)
	}
	servers, err := service.Start(ctx, service.ZooKeeper, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	workers := crew.New(map[string][]string{
		report.Old: {c.Old, c.Peer}, report.New: {c.New, c.Peer},
	}, c.Limit)
	defer workers.Close()
	err = c.measure(ctx, workers, servers, comparison)
	if err != nil {
		return err
	}
	return c.report(comparison)
}

func (c *compareCommand) measure(
	ctx context.Context, d plan.Doer, s *service.Service, into *report.Comparison,
) error {
	p := plan.Plan{
		Scenarios: into.Scenarios, Rounds: c.Rounds, Time: c.Time, Least: c.Least,
		Next: func(string) {},
		Done: func(m *plan.Measurement) { into.Measured = append(into.Measured, m) },
	}
	at := plan.Servers{Addrs: s.Addrs, PIDs: s.PIDs}
	for _, name := range []string{report.Old, report.New} {
		version := plan.Peer{Name: name, Service: service.ZooKeeper}
		p.Peers = append(p.Peers, version)
		p.WarmUp(ctx, d, version, at, 10*c.Time) // the server, too
	}
	fmt.Fprintf(os.Stderr, "%d measurements\n", p.Count())
	return p.Run(ctx, d, plan.Setting{Servers: 1},
		map[service.Kind]plan.Servers{service.ZooKeeper: at})
}

// report writes the files for benchstat, and then the verdicts.
func (c *compareCommand) report(comparison *report.Comparison) error {
	for _, name := range []string{report.Old, report.New} {
		file := filepath.Join(c.Out, name+".txt")
		text := []byte(comparison.Benchmarks(name))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	table, slower, err := comparison.Verdicts()
	if err != nil {
		return err
	}
	fmt.Print(table)
	if slower {
		return errSlower
	}
	return nil
}
