package prove_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/prove"
	"github.com/zkrecipes/recipes/internal/plant"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A planted defect is one that the library could have, and which checks of a run find it,
// one of them at least.
type planted struct {
	plant.Defect
	checks []string
	calm   bool // it shows without faults
}

var defects = []planted{
	{plant.New("the first of each process holds the lock",
		plant.In("internal/order", "Queue.Decide").First(`
			if m.under == nil && m.lives() && m.state != stateHeld && q.members[0] == m {
				return Decision{Granted: true, First: true}
			}`)), []string{"exclusion", "tokens", "fence", "releases"}, true},
	{
		plant.New("one lease too many",
			plant.In("internal/leases", "snapshot.full").
				Replace("len(v.queue) <= v.most", "len(v.queue) <= v.most+1")),
		[]string{"exclusion", "linearizability"},
		true,
	},
	{
		plant.New("tokens do not grow",
			plant.In(".", "Hold.FencingToken").Replace("h.token", "1<<40-h.token")),
		[]string{"tokens"},
		true,
	},
	{
		plant.New("a transaction does not check the hold",
			plant.In(".", "Hold.multi").Replace("held.path()", `"/"`),
			plant.In(".", "Hold.CheckOp").
				First(`return &zk.CheckVersionRequest{Path: "/", Version: -1}`)),
		[]string{"fence"},
		false,
	},
	{
		plant.New("the clock of the client is slow by a fifth",
			plant.In("internal/lossclock", "Terms.good").First(`
			return (t.Timeout - t.Timeout/slackShare) * 5 / 4`)),
		[]string{"losses"},
		false,
	},
	{
		plant.New("the clock of a loss runs at a tenth of its speed",
			plant.In("internal/lossclock", "Terms.good").First(`
			return (t.Timeout - t.Timeout/slackShare) * 10`)),
		[]string{"losses", "exclusion"},
		false,
	},
	{
		plant.New("a delete is not sent",
			plant.In("internal/znode", "deleteTry").
				First("send = func() error { return nil }")),
		[]string{"end of the round"},
		true,
	},
}

// TestDefects gives a run a library with a defect, one after the other, and demands that
// it finds out within a minute of work: a run that finds nothing proves nothing.
func TestDefects(t *testing.T) {
	if os.Getenv("PROVE_DEFECTS") == "" {
		t.Skip("it is the run's own test, and takes minutes: PROVE_DEFECTS=1 runs it, " +
			"as scripts/soak.sh does")
	}
	program := build(t)
	for _, d := range defects {
		t.Run(d.Name, func(t *testing.T) {
			found := runDefect(t, program, d)
			var names []string
			for _, f := range found.Findings {
				if f.Verdict == prove.Violated {
					t.Logf("round %d: %s", f.Round, f.Text)
					for _, line := range f.Excerpt {
						t.Log(line)
					}
					names = append(names, f.What)
				}
			}
			require.NotEmpty(t, names)
			require.Subset(t, d.checks, names[:1])
		})
	}
}

// A change of what the defects break is noticed at once.
func TestDefectsArePlanted(t *testing.T) { overlay(t) }

func overlay(t *testing.T) (file string) {
	t.Helper()
	var all []plant.Defect
	for _, d := range defects {
		all = append(all, d.Defect)
	}
	file, err := plant.Overlay("../../../..", t.TempDir(), all)
	require.NoError(t, err)
	return file
}

// build builds zklock with all defects.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "zklock")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay(t), "-o",
		program, "../..")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// runDefect runs zklock prove with a defect, which must exit with 1, and returns the
// report that its file has.
func runDefect(t *testing.T, program string, d planted) *prove.Report {
	t.Helper()
	server := zkserver.Start(t, zkserver.Tick(time.Second/2)).Servers[0]
	file := filepath.Join(t.TempDir(), "history")
	args := []string{
		"prove", "--for", "1m", "--rate", "400", "--json", file,
	}
	if slices.Contains(d.checks, "losses") {
		// Of a session that is longer a busy machine is late by a smaller part.
		args = append(args, "--for", "5m", "--session-timeout", "10s")
	}
	if d.calm {
		args = append(args, "--calm")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+server.Addr,
		plant.Variable+"="+d.Name)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	var ended *exec.ExitError
	require.True(t, errors.As(err, &ended), "nothing is found: %v", err)
	require.Equal(t, 1, ended.ExitCode())
	history, err := os.Open(file)
	require.NoError(t, err)
	defer history.Close()
	again, err := prove.Check(history)
	require.NoError(t, err)
	require.Equal(t, prove.Violated, again.Verdict, "the file does not show it")
	return again
}
