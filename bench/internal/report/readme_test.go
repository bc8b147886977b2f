package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
)

func TestTheReadmeHidesNothingThatIsSlower(t *testing.T) {
	d := &report.Data{Facts: []report.Fact{
		{Name: "Curator", Text: "5.7.1"}, {Name: "processor", Text: "an abacus"},
	}}
	near := plan.Setting{Servers: 1}
	far := plan.Setting{Servers: 3, Delay: time.Millisecond}
	add := func(s plan.Setting, scenario, peer string, speeds ...int64) {
		for round, ops := range speeds {
			d.Measurements = append(d.Measurements, &plan.Measurement{
				Setting: s, Scenario: scenario, Peer: peer, Round: round,
				Results: []load.Result{{Ops: ops, Took: time.Second}},
			})
		}
	}
	for _, s := range []plan.Setting{near, far} {
		add(s, "S1", peer.ZKLock, 100, 100)
		add(s, "S1", peer.Recipes, 200, 300) // a headline only where it is near
		add(s, "S1", peer.Cached, 300, 400)
		add(s, "S1", peer.Etcd, 400, 500)
		add(s, "S1", peer.Redsync, 400, 600)
		add(s, "S1", plan.Curator, 150, 350) // once faster, once slower
		add(s, "S4", peer.ZKLock, 100, 100)
		add(s, "S4", peer.Recipes, 90, 110)
		add(s, "S4", peer.Cached, 50, 60)
		add(s, "S4", peer.Redsync, 500, 500)
	}
	add(near, "S7-5", plan.Curator, 100, 100)
	add(near, "S7-5", peer.Recipes, 50, 60)
	require.Equal(t, "| workload, one server unless noted | "+
		"times the speed of `zk.Lock` | verdict |\n| --- | ---: | ---: |\n"+
		"| an uncontended lock | 2.50 (2.00–3.00) | faster |\n"+
		"| *etcd: an uncontended lock* | 4.50 (4.00–5.00) | faster than here |\n"+
		"| *redsync: an uncontended lock* | 5.00 (4.00–6.00) | faster than here |\n"+
		"| 64 independent locks on one connection | 1.00 (0.90–1.10) | undecided |\n"+
		"| 64 independent locks on one connection, `WithCaching` | "+
		"0.55 (0.50–0.60) | slower |\n"+
		"| a semaphore of 5, compared with Curator | 0.55 (0.50–0.60) | slower |\n"+
		"| *etcd: an uncontended lock, 3 servers, 1 ms more per round trip* | "+
		"4.50 (4.00–5.00) | faster than here |\n"+
		"| 64 independent locks on one connection, 3 servers, "+
		"1 ms more per round trip | 1.00 (0.90–1.10) | undecided |\n"+
		"| 64 independent locks on one connection, 3 servers, "+
		"1 ms more per round trip, `WithCaching` | 0.55 (0.50–0.60) | slower |\n\n"+
		"What a waiting process costs a second\n\n"+
		"|  | requests | bytes | client CPU | server CPU |\n"+
		"| --- | ---: | ---: | ---: | ---: |\n\nCurator 5.7.1\n", report.Readme(d))
}
