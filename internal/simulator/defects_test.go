package simulator_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/plant"
)

// defects has one of each idea that the simulator shows soon. What is wrong inside a
// package is left to the mutants of that package (scripts/mutants.sh), and what is wrong
// inside package order to its own model (TestModelRefutesFaults), which has the same
// histories again each time.
var defects = []plant.Defect{
	plant.New("the loss is timed from the disconnect",
		plant.In("internal/zkconn", "Conn.lookLocked").First(`
			// A plain one uses SawDown.
			if c.client.State() == zk.StateHasSession && !c.cfg.Plain {
				c.ledger.SawDown(c.ledger.Now())
			}`),
		plant.In("internal/reliance", "Ledger.lossCause").After("l.goodUntil", `
			last := l.resumption.down
			if t := l.Timeout(); t > 0 && !last.IsZero() && l.lastHandshake != nil {
				until, ok = last.Add(t-t/20), true
			}`)),
	plant.New("its own znode is not looked after when the one ahead goes",
		plant.In("internal/seqnode", "cohort.confirmLocked").First(`
			c.order.LearnToken(m.self, m.node.Token())
			c.order.Confirmed(m.self, c.epoch())
			return`),
		plant.In("internal/seqnode", "waiter.watchSelf").Drop("w.node.WatchSelfLater")),
	plant.New("what a follower answers by itself keeps the clock",
		plant.In("internal/zkconn", "heartbeat.probe").Replace(`c.Sync("/")`, `c.make(
			&syncOp, "/", 0, nil, func() error {
				_, _, err := c.client.Get("/")
				return err
			},
		)`)),
	plant.New("who has lost the lock hands it over",
		plant.In("internal/seqnode", "Member.endLocked").
			Replace("m.cohort.order.Lost(m.self)", "m.cohort.order.Left(m.self, false)")),
	plant.New("a loss is not told to the holder",
		plant.In("internal/znode", "Node.endOnce").
			Replace("l.state == stateHeld", "false")),
	plant.New("a read lock under a write lock has its own token",
		plant.In("internal/seqnode", "Queue.EnterUnder").Drop("n.SetToken")),
	plant.New("a create that nobody waits for any more leaves its znode",
		plant.In("internal/znode", "creation.try").Drop("n.Withdraw")),
	plant.New("a delete that is refused is not tried again",
		plant.In("internal/outcome", "Refused").First("return false")),
	plant.New("a writer does not look again before its turn",
		plant.In(".", "NewInterProcessReadWriteLock").Drop("queue.Nested")),
	plant.New("one lease too many",
		plant.In("internal/leases", "snapshot.full").
			Replace("len(v.queue) <= v.most", "len(v.queue) <= v.most+1")),
	plant.New("the znode of a hold that has ended goes before its margin is over",
		plant.In("internal/znode", "Node.endOnce").
			Replace("n.conn.Pause(context.Background(), after)", "after")),
	plant.New("passes without bound while another process waits",
		plant.In("internal/lockcache", "generation.roomLocked").
			Replace("g.policy.MaxHandovers", "math.MaxInt")),
	plant.New("a candidate queues anew while its term lasts",
		plant.In(".", "LeaderSelector.serve").Before("s.stepDown", `
			if failed == nil && term.Err() == nil && ctx.Err() == nil {
				return
			}`)),
}

const (
	// defectSeeds is how many seeds each defect may take to show. Those here take 1 to
	// 250 of them.
	defectSeeds = 2000
	// replayedSeeds is of how many that show a defect one must show it again.
	replayedSeeds = 3
)

var failedSeed = regexp.MustCompile(
	`seed (\d+), which SIM_SEED=\d+ shows in full: [^\n]*`,
)

// TestDefects gives the simulator a library with a defect, one after the other, and
// demands that it finds out, and finds out again when the seed is replayed, but nothing
// in that seed without the defect: a simulator that finds nothing proves nothing. A seed
// does not decide everything, so that one may not come back; then the hunt goes on.
func TestDefects(t *testing.T) {
	skipDefects(t)
	simulator := filepath.Join(t.TempDir(), "simulator.test")
	mustRun(t, planted(t, "test", "-c", "-vet=off", "-o", simulator, "."))
	for _, d := range defects {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			from := 1
			for range replayedSeeds {
				seed := hunt(t, simulator, d.Name, from)
				if isShown(t, simulator, d.Name, strconv.Itoa(seed)) {
					return
				}
				t.Logf("seed %d does not show it again", seed)
				from = seed + 1
			}
			t.Fatalf("none of %d seeds shows it again", replayedSeeds)
		})
	}
}

// skipDefects skips a test that builds a simulator with all defects, and tells of the
// simulator, not of the library.
func skipDefects(t *testing.T) {
	t.Helper()
	if os.Getenv("SIM_DEFECTS") == "" {
		t.Skip("it is the simulator's own test: SIM_DEFECTS=1 runs it, as " +
			"scripts/test.sh does")
	}
}

// isShown replays a seed that has shown a defect.
func isShown(t *testing.T, simulator, defect, seed string) bool {
	t.Helper()
	out, failed := runMutant(t, simulator, "TestSimulator", "", "SIM_FROM="+seed,
		"SIM_SEEDS=1")
	require.False(t, failed, "it fails without the defect: %s", out)
	_, failed = runMutant(t, simulator, "TestSimulator", defect, "SIM_SEED="+seed)
	return failed
}

// hunt returns the first seed from the given one on that shows the defect.
func hunt(t *testing.T, simulator, defect string, from int) (seed int) {
	t.Helper()
	out, failed := runMutant(t, simulator, "TestSimulator", defect,
		"SIM_FROM="+strconv.Itoa(from), "SIM_SEEDS="+strconv.Itoa(defectSeeds-from+1))
	require.True(t, failed, "%d seeds show nothing", defectSeeds)
	found := failedSeed.FindStringSubmatch(out)
	require.NotNil(t, found, "no seed is told: %s", out)
	t.Log(found[0])
	seed, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return seed
}

var rejectedSeed = regexp.MustCompile(`seed (\d+) is rejected: [^\n]*`)

// runMutant runs a test of the simulator with a defect, "" for none, and returns what it
// says and whether it failed.
func runMutant(
	t *testing.T, simulator, test, defect string, env ...string,
) (out string, failed bool) {
	t.Helper()
	run := exec.CommandContext(t.Context(), simulator, "-test.run=^"+test+"$")
	run.Env = append(append(os.Environ(), plant.Variable+"="+defect), env...)
	said, err := run.CombinedOutput()
	return string(said), err != nil
}
