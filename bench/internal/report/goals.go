package report

import (
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// A goal is what was asked of this library: how many times as fast as another peer it is
// in a scenario.
type goal struct {
	scenario string
	delay    time.Duration // 0: on loopback
	peer     string
	than     string
	atLeast  float64
}

var goals = []goal{
	{"S1", 0, peer.Recipes, peer.ZKLock, 1},
	{"S1", time.Millisecond, peer.Recipes, peer.ZKLock, 1.4},
	{"S3-16", 0, peer.Recipes, peer.ZKLock, 4},
	{"S3-256", 0, peer.Recipes, peer.ZKLock, 4},
	{"S5-1000", 0, peer.Recipes, peer.ZKLock, 1.6},
	{"S6-900", 0, peer.Recipes, plan.Curator, 1.5},
	{"S6-999", 0, peer.Recipes, plan.Curator, 1.5},
	{"S7-mutex", 0, peer.Recipes, plan.Curator, 1.5},
	{"S7-5", 0, peer.Recipes, plan.Curator, 1.5},
	{"S1", 0, peer.Cached, peer.Raw, 1000},
	{"S3-16", 0, peer.Cached, peer.ZKLock, 100},
	{"S3-256", 0, peer.Cached, peer.ZKLock, 100},
	{"S6-999", 0, peer.Cached, plan.Curator, 100},
	{"S11", 0, peer.Cached, peer.ZKLock, 10},
}

// Those that are not about the speed of two peers.
const (
	// A queue of 5,000 drains about as fast as one of 100: within 30 % of the time.
	longestQueue, shortQueue, longQueue = "S5-5000", "S5-100", 0.77
	// Each of two processes gets the lock in so many cases.
	shared, leastShare = "S11", 0.4
)

// An outcome is what came of a goal in a setting.
type outcome struct{ asked, measured, reached string }

// reached says whether what was measured is least or more: for certain only where the
// whole range says the same.
func reached(got stats.Summary, least float64) string {
	switch {
	case got.Lo >= least:
		return "yes"
	case got.Hi < least:
		return "**no**"
	case got.Median >= least:
		return "perhaps"
	default:
		return "perhaps not"
	}
}

// outcomes are those of all goals that were measured in a setting.
func (d *Data) outcomes(s plan.Setting) (all []outcome) {
	for _, g := range goals {
		if g.delay != s.Delay {
			continue
		}
		in := scenario(g.scenario)
		ratios := stats.Ratios(d.speeds(s, in, g.peer), d.speeds(s, in, g.than))
		if len(ratios) == 0 {
			continue
		}
		got := stats.Summarize(ratios)
		all = append(all, outcome{
			fmt.Sprintf("%s: %s ≥ %v × %s",
				g.scenario, title(g.peer), g.atLeast, title(g.than)),
			rangeText(got, count), reached(got, g.atLeast),
		})
	}
	if s.Delay == 0 {
		all = append(all, d.queueOutcome(s)...)
		all = append(all, d.shareOutcome(s)...)
	}
	return all
}

func (d *Data) queueOutcome(s plan.Setting) []outcome {
	short, long := scenario(shortQueue), scenario(longestQueue)
	ratios := stats.Ratios(
		d.speeds(s, long, peer.Recipes), d.speeds(s, short, peer.Recipes),
	)
	if len(ratios) == 0 {
		return nil
	}
	got := stats.Summarize(ratios)
	return []outcome{{
		fmt.Sprintf("%s: recipes hands over ≥ %v × as fast as in %s", longestQueue,
			longQueue, shortQueue),
		rangeText(got, count), reached(got, longQueue),
	}}
}

func (d *Data) shareOutcome(s plan.Setting) []outcome {
	shares := d.shares(s, shared, peer.Cached)
	if len(shares) == 0 {
		return nil
	}
	got := stats.Summarize(shares)
	return []outcome{{
		fmt.Sprintf("%s: %s gives each process %v to %v %%", shared, title(peer.Cached),
			100*leastShare, 100*(1-leastShare)),
		shareText(got), reached(got, leastShare),
	}}
}

// shares are the least ones of each round.
func (d *Data) shares(s plan.Setting, scenario, peer string) (found []float64) {
	for _, m := range d.of(s, scenario, peer) {
		if share, ok := m.LeastShare(); ok {
			found = append(found, share)
		}
	}
	return found
}
