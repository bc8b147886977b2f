package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
)

// runCommand measures.
type runCommand struct {
	Peers     []string        `help:"Only these, such as raw,zk.Lock,curator."`
	Scenarios []string        `help:"Only these, such as S1,S5-1000."`
	Servers   []int           `default:"1,3" help:"Numbers of servers."`
	Delays    []time.Duration `default:"0s,1ms,10ms" help:"Added to each round trip."`
	Rounds    int             `default:"15" help:"How often everything is measured."`
	Time      time.Duration   `default:"400ms" help:"Of one measurement."`
	Limit     time.Duration   `default:"2m" help:"After which one is given up."`
	WarmUp    time.Duration   `default:"15s" help:"Of each Java process."`
	Short     bool            `help:"One quick round, to see that everything works."`
	Out       string          `default:"." help:"Where RESULTS.md goes." type:"path"`
	Note      string          `help:"What the report is to say of the run."`
	Data      string          `default:"results/data.json" help:"What the report is of."`
}

// Run measures and reports. What was measured before an interrupt is reported too.
func (c *runCommand) Run(ctx context.Context) (err error) {
	if c.Short {
		c.shorten()
	}
	b := &bench{runCommand: c, data: report.Data{
		Made: time.Now(), Time: c.Time, Note: c.Note, Facts: machine(),
	}}
	if b.plan, err = c.newPlan(); err != nil {
		return err
	}
	if b.temp, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.temp)) }()
	if err := b.makeCrew(ctx); err != nil {
		return err
	}
	defer b.crew.Close()
	b.told = newProgress(b.plan.Count() * len(c.Servers) * len(c.Delays))
	b.plan.Next = b.told.next
	b.plan.Done = b.done
	err = b.measure(ctx)
	b.told.finish()
	b.data.Took = time.Since(b.data.Made)
	if err != nil {
		b.data.Missing = append(b.data.Missing, "the rest ("+err.Error()+")")
	}
	return errors.Join(err, b.report())
}

// shorten leaves of a run what shows that everything works: the peers of ZooKeeper that
// need no Java.
func (c *runCommand) shorten() {
	c.Peers = []string{peer.Raw, peer.ZKLock, peer.Recipes, peer.Cached}
	c.Scenarios = nil
	for _, s := range plan.Scenarios {
		if s.Short {
			c.Scenarios = append(c.Scenarios, s.ID)
		}
	}
	c.Servers, c.Delays = []int{1}, []time.Duration{0, time.Millisecond}
	c.Rounds, c.Time, c.Limit = 1, 100*time.Millisecond, time.Minute
}

func (c *runCommand) newPlan() (p plan.Plan, err error) {
	p = plan.Plan{Rounds: c.Rounds, Time: c.Time}
	if len(c.Peers) == 0 {
		p.Peers = plan.Peers
	}
	for _, name := range c.Peers { // Choose would take curator-each for curator's too
		i := slices.IndexFunc(plan.Peers, func(p plan.Peer) bool {
			return p.Name == name
		})
		if i < 0 {
			return p, errUnknownPeer(name)
		}
		p.Peers = append(p.Peers, plan.Peers[i])
	}
	p.Scenarios, err = plan.Choose(
		plan.Scenarios, func(s plan.Scenario) string { return s.ID }, c.Scenarios,
	)
	if err != nil {
		return p, fmt.Errorf("scenarios: %w", err)
	}
	for _, d := range c.Delays {
		if d < 0 || d%time.Millisecond != 0 {
			return p, fmt.Errorf("delays: %v is no multiple of a millisecond", d)
		}
	}
	return p, nil
}
