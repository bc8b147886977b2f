package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
)

var update = flag.Bool("update", false, "write the golden file anew")

const golden = "testdata/RESULTS.golden.md"

// canned is made up: seven rounds of a few scenarios, with all that can go wrong.
func canned() *report.Data {
	d := &report.Data{
		Made: time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC), Took: time.Hour,
		Time: time.Second, Missing: []string{"redis (not installed)"},
		Facts: []report.Fact{{Name: "processor", Text: "2 × abacus"}},
	}
	figure := func(v float64) *float64 { return &v }
	one := plan.Setting{Servers: 1}
	add := func(scenario, peer string, round int, results ...load.Result) {
		d.Measurements = append(d.Measurements, &plan.Measurement{
			Setting: one, Scenario: scenario, Peer: peer, Round: round, Results: results,
		})
	}
	rate := func(perSecond int) load.Result {
		return load.Result{
			Ops: int64(perSecond), Took: time.Second, Requests: figure(3),
			Bytes: figure(520),
		}
	}
	// busy is a result of so much processor time for each operation, in microseconds.
	busy := func(r load.Result, client, server int64) load.Result {
		r.ClientCPU = pointer(time.Duration(r.Ops*client) * time.Microsecond)
		r.ServerCPU = pointer(time.Duration(r.Ops*server) * time.Microsecond)
		return r
	}
	for round := range 7 {
		machine := 1 + round%3 // as fast as it happens to be
		add("S1", peer.Raw, round, rate(1000*machine))
		add("S1", peer.ZKLock, round, busy(rate(600*machine), 100, 900))
		add("S1", peer.Recipes, round, busy(rate(700*machine+10*round), 98, 490))
		add("S1", peer.Cached, round, rate(2_500_000*machine))
		add("S5-100", peer.Recipes, round, rate(5000*machine))
		add("S5-5000", peer.Recipes, round, rate(4000*machine))
		add("S11", peer.ZKLock, round, rate(100*machine), rate(150*machine))
		add("S11", peer.Cached, round, rate(90_000*machine), rate(110_000*machine))
		add("S7-5", peer.ZKLock, round, load.Result{Unsupported: true})
		add("S7-5", plan.Curator, round, rate(50*machine))
		add("S9", peer.Recipes, round, load.Result{
			Ops: 1, Took: time.Second, Median: pointer(51 * time.Millisecond),
		})
	}
	add("S1", peer.Etcd, 0, load.Result{Fault: "stuck: not done after 2m0s\nand more"})
	add("S2", peer.Recipes, 0, load.Result{Took: time.Second})
	add("S10-waiter", peer.Recipes, 0, load.Result{
		Heap: figure(3600), Threads: figure(1), Watches: figure(1.02),
	})
	add("S12", peer.Recipes, 0, busy(load.Result{
		Ops: 1000, Took: time.Second, Requests: figure(0.43), Bytes: figure(18),
	}, 40, 50))
	add("S10-waiter", peer.Redsync, 0, load.Result{Heap: figure(68_000)})
	return d
}

func pointer[T any](v T) *T { return &v }

func TestThePage(t *testing.T) {
	var page bytes.Buffer
	pictures := map[plan.Setting][]report.Picture{
		{Servers: 1}: {{Name: "results/speed", Title: "Speed & <size>"}},
	}
	require.NoError(t, report.Markdown(&page, canned(), pictures))
	if *update {
		require.NoError(t, os.WriteFile(golden, page.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), page.String(), "go test ./internal/report -update")
}

func TestWhatIsSavedIsRead(t *testing.T) {
	d := canned()
	file := filepath.Join(t.TempDir(), "data.json")
	require.NoError(t, d.Save(file))
	read, err := report.Read(file)
	require.NoError(t, err)
	require.Equal(t, d, read)
}

func TestRunsAreAdded(t *testing.T) {
	d := canned()
	n := len(d.Measurements)
	d.Add(canned())
	require.Len(t, d.Measurements, 2*n)
	require.Equal(t, 2*time.Hour, d.Took)
}
