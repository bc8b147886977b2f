package simulator_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/plant"
)

// A narrowDefect is one that a test of the room shows each time.
type narrowDefect struct {
	plant.Defect
	room, test string
}

// narrowDefects say how seldom the simulator shows them.
var narrowDefects = []narrowDefect{
	{ // 2,000 seeds show it once at most.
		plant.New("a znode of another session is taken over",
			plant.In("internal/znode", "creation.livesIn").
				Replace("stat.EphemeralOwner == session", "true")),
		"hazards", "TestHazardA1_2_ZnodeOfADyingSession",
	},
	{ // 2,000 seeds show nothing since a znode that outlives its session is deleted.
		plant.New("an answer to a create is trusted in any session",
			plant.In("internal/znode", "creation.create").
				Replace("c.s.SessionID() == session", "true")),
		"hazards", "TestHazardE4_CreateRunsInTheNextSession",
	},
	{ // 2,000 seeds show nothing.
		plant.New("the leader is taken to ping every half tick exactly",
			plant.In("internal/lossclock", "Terms.reportedWithin").
				Replace("max(tick/lateShare, leastLate)", "0")),
		"behaviour/hold", "TestLostBehindAFollowerThatDiesBeforeALatePing",
	},
	{ // Three times one of 127 to 243 seeds shows it, and then none of 700.
		plant.New("every connection is taken to keep the order of events",
			plant.In(".", "settings.sessionConfig").
				After("s.advice(conn)", "c.InOrder = true")),
		"behaviour/client", "TestTheOwnZnodeWhereEventsComeLate",
	},
	{ // No seed can show it: small reads are for queues of 128 and more.
		plant.New("who is asked for, and is there, is taken for gone",
			plant.In("internal/seqnode", "cohort.read").Replace("c.there", "c.gone")),
		"seqnode", "TestFewOfALongQueueAreRead",
	},
	{ // One seed of some thousand shows it, once in 200 runs.
		plant.New("a refused hold is granted by what was known",
			plant.In("internal/seqnode", "waiter.Commit").Drop("w.cohort.refused")),
		"seqnode", "TestARefusedHoldIsGrantedAnew",
	},
	{ // Three times 400 seeds show nothing: it takes a place that is idle, an outage of
		// just that length, and an owner who comes then.
		plant.New("a kept place is used after its loss clock ran out",
			plant.In("internal/znode", "Node.SessionEnded").First(`
				if n.life.tenants != nil && len(n.Tenants()) == 0 &&
					errors.Is(cause, outcome.ErrSuspended) {
					return
				}`),
			plant.In("internal/lockcache", "Share.attach").
				Replace("sh.Check() != nil", "false")),
		"behaviour/lock", "TestALostPlaceIsNotUsed",
	},
}

// TestDefectsArePlanted compiles all defects, so that a change of what they break is
// noticed at once.
func TestDefectsArePlanted(t *testing.T) {
	mustRun(t, planted(t, "build", "."))
}

// TestNarrowTestsShowDefects demands that each narrow test passes, and fails with its
// defect.
func TestNarrowTestsShowDefects(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tests of several rooms")
	}
	for _, d := range narrowDefects {
		t.Run(d.Name, func(t *testing.T) {
			run := func(defect string) *exec.Cmd {
				cmd := planted(t, "test", "-vet=off", "-count=1", "-run", "^"+d.test+"$",
					"../"+d.room)
				cmd.Env = append(
					os.Environ(), plant.Variable+"="+defect, "ZOOKEEPER_RUN=embedded",
				)
				return cmd
			}
			require.NotContains(t, mustRun(t, run("")), "no tests to run")
			out, err := run(d.Name).CombinedOutput()
			require.Error(t, err, "%s", out)
		})
	}
}

// planted is a run of the go command on the library with all defects planted. What one
// has compiled the next finds in the build cache.
func planted(t *testing.T, command string, args ...string) *exec.Cmd {
	t.Helper()
	all := slices.Clone(defects)
	for _, d := range narrowDefects {
		all = append(all, d.Defect)
	}
	overlay, err := plant.Overlay("../..", t.TempDir(), all)
	require.NoError(t, err)
	args = append([]string{command, "-overlay", overlay}, args...)
	return exec.CommandContext(t.Context(), "go", args...)
}

func mustRun(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
