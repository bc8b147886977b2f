package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// headlines are the scenarios that the README shows however they came out, on one server
// without a delay; those of sessions that contend also with one.
var headlines = map[string][]string{
	peer.Recipes: {"S1", contended, "S3-16", "S6-900"},
	peer.Cached:  {contended, "S3-16"},
}

const contended = "S2"

// others are the peers that are shown where they are faster than this library: redsync,
// which has no queue, only as a headline, without a delay.
var others = []string{plan.Curator, plan.CuratorEach, peer.Etcd, peer.Redsync}

func isShown(other string, s plan.Setting, in plan.Scenario) bool {
	return other != peer.Redsync ||
		s.Delay == 0 && (in.ID == "S1" || in.ID == contended)
}

// Readme returns what the README of the project shows of the data: the headlines,
// everything that is slower or undecided, with caching or without, and what a waiting
// process costs; below that, the versions.
func Readme(d *Data) string {
	t := newTable("workload, one server unless noted",
		"times the speed of `"+title(peer.ZKLock)+"`", "verdict")
	for _, s := range d.settings() {
		for _, in := range plan.Scenarios {
			for _, name := range []string{peer.Recipes, peer.Cached} {
				d.readmeRow(t, s, in, name)
			}
			for _, name := range others {
				if isShown(name, s, in) {
					d.fasterRow(t, s, in, name)
				}
			}
		}
	}
	idle, at := scenario("S12"), plan.Setting{Servers: 1}
	var names []string
	for _, p := range plan.Peers {
		if len(d.of(at, idle.ID, p.Name)) > 0 {
			names = append(names, p.Name)
		}
	}
	var versions []string
	for _, f := range d.Facts {
		if strings.Contains(f.Name, "server") || strings.Contains(f.Name, "/") ||
			f.Name == "Curator" {
			versions = append(versions, f.Name+" "+f.Text)
		}
	}
	return fmt.Sprintf("%s\n%s\n\n%s\n%s\n", t, idle.Title, d.upkeep(at, &idle, names),
		strings.Join(versions, ", "))
}

// readmeRow shows what this library does, compared with zk.Lock or, where that cannot,
// with Curator: if it is a headline, or not certainly faster.
func (d *Data) readmeRow(t *table, s plan.Setting, in plan.Scenario, name string) {
	yard, ok := d.yardstick(s, in)
	ratios := stats.Ratios(d.speeds(s, in, name), d.speeds(s, in, yard))
	if !ok || len(ratios) == 0 {
		return
	}
	got := stats.Summarize(ratios)
	verdict := "faster"
	switch {
	case got.Undecided():
		verdict = "undecided"
	case got.Hi < 1:
		verdict = "slower"
	}
	shown := slices.Contains(headlines[name], in.ID) && s.Servers == 1 &&
		(s.Delay == 0 || in.ID == contended)
	if verdict == "faster" && !shown {
		return
	}
	what := workload(s, in)
	if name == peer.Cached {
		what += ", `WithCaching`"
	}
	t.row(what+than(yard), rangeText(got, count), verdict)
}

// fasterRow shows a peer that is certainly faster than this library without caching.
func (d *Data) fasterRow(t *table, s plan.Setting, in plan.Scenario, name string) {
	yard, ok := d.yardstick(s, in)
	theirs := d.speeds(s, in, name)
	ahead := stats.Ratios(theirs, d.speeds(s, in, peer.Recipes))
	ratios := stats.Ratios(theirs, d.speeds(s, in, yard))
	if !ok || name == yard || len(ahead) == 0 || len(ratios) == 0 {
		return
	}
	if got := stats.Summarize(ahead); got.Undecided() || got.Hi < 1 {
		return
	}
	verdict := "faster than here"
	got := stats.Summarize(ratios)
	if got.Undecided() {
		verdict = "undecided"
	}
	t.row("*"+title(name)+": "+workload(s, in)+"*"+than(yard), rangeText(got, count),
		verdict)
}

// yardstick is zk.Lock, or Curator where that cannot do the scenario.
func (d *Data) yardstick(s plan.Setting, in plan.Scenario) (name string, ok bool) {
	for _, name := range []string{peer.ZKLock, plan.Curator} {
		if len(d.speeds(s, in, name)) > 0 {
			return name, true
		}
	}
	return "", false
}

// workload names a scenario in a setting, the usual one without saying so.
func workload(s plan.Setting, in plan.Scenario) string {
	what := strings.ToLower(in.Title[:1]) + in.Title[1:]
	where := strings.TrimSuffix(", "+s.String(), ", loopback")
	return what + strings.TrimPrefix(where, ", one server")
}

func than(yard string) string {
	if yard == peer.ZKLock {
		return ""
	}
	return ", compared with Curator"
}
