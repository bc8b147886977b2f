//go:build unix

package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// chaosFor is how long there are faults where CHAOS, a duration such as 10m, does not say
// otherwise.
const chaosFor = time.Minute

// A chaosTiming is what an ensemble makes of a session and of a lost line between its
// servers.
type chaosTiming struct {
	name      string
	tick      time.Duration
	syncLimit int           // in ticks: when a follower and its leader give each other up
	session   time.Duration // the session timeout
}

var chaosTimings = []chaosTiming{
	{"followers give up before sessions end", 200 * time.Millisecond, 5, 3 * time.Second},
	// Meanwhile such a follower goes on to answer the reads of clients whose sessions its
	// leader has ended.
	{
		"sessions end before followers give up", 200 * time.Millisecond, 20,
		2400 * time.Millisecond,
	},
}

// A chaosRun is what the environment asks of TestChaos, or of one run of it.
type chaosRun struct {
	length time.Duration    // how long there are faults
	seed   uint64           // where they come from
	runs   int              // on each ensemble, one after the other
	locks  []simulator.Lock // below the root of a run; nil: one of each kind
	plain  bool             // the connections are go-zookeeper's own
}

// multiLocks are three in which each member is one of two.
var multiLocks = []simulator.Lock{
	{Recipe: simulator.MultiLock, Paths: []string{"/a", "/b"}},
	{Recipe: simulator.MultiLock, Paths: []string{"/b", "/c"}},
	{Recipe: simulator.MultiLock, Paths: []string{"/a", "/c"}},
}

func chaosAsked(t *testing.T) (c chaosRun) {
	t.Helper()
	c = chaosRun{length: chaosFor, seed: rand.Uint64(), runs: 1}
	setFrom(t, "CHAOS", &c.length, time.ParseDuration)
	setFrom(t, "CHAOS_RUNS", &c.runs, strconv.Atoi)
	setFrom(t, "CHAOS_PLAIN", &c.plain, strconv.ParseBool)
	setFrom(t, "CHAOS_SEED", &c.seed, func(text string) (uint64, error) {
		return strconv.ParseUint(text, 10, 64)
	})
	var multi bool
	setFrom(t, "CHAOS_MULTI", &multi, strconv.ParseBool)
	if multi {
		c.locks = multiLocks
	}
	return c
}

// setFrom sets what a variable of the environment says, if it is set.
func setFrom[T any](
	t *testing.T, name string, to *T, parse func(text string) (T, error),
) {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		value, err := parse(text)
		require.NoError(t, err, name)
		*to = value
	}
}

// TestChaos lets workers contend for locks on a real ensemble while servers are killed
// and frozen, lines cut, stalled and slowed down, and workers stopped, and holds what
// they saw to the rules of the simulator. It takes a minute, or as long as CHAOS says.
// The faults come from a seed, which is printed and which CHAOS_SEED sets; what becomes
// of them is up to the machine. The servers are always its own: those of
// ZOOKEEPER_SERVERS are not to be killed.
func TestChaos(t *testing.T) {
	zkserver.Real(t, "processes that can be killed")
	asked := chaosAsked(t)
	t.Logf("CHAOS=%v CHAOS_SEED=%d", asked.length, asked.seed)
	each := asked
	each.length /= time.Duration(len(chaosTimings))
	var all count
	for _, timing := range chaosTimings {
		t.Run(timing.name, func(t *testing.T) {
			sum, err := each.on(t, timing)
			for n := 1; errors.Is(err, errBroken) && n <= 3; n++ {
				each.seed++
				t.Logf("does not count: %v; again, with CHAOS_SEED=%d", err, each.seed)
				sum, err = each.on(t, timing)
			}
			require.NoError(t, err)
			all.add(sum)
		})
	}
	if !t.Failed() && asked.locks == nil {
		require.NoError(t, all.enough(asked.length*time.Duration(asked.runs)))
	}
}

// on makes all runs on one ensemble, which is new.
func (c chaosRun) on(t *testing.T, timing chaosTiming) (all count, err error) {
	e := startEnsemble(t, allWorkers, timing.servers()...)
	if len(e.between) == 0 {
		t.Logf("the servers run in a %s: their lines to one another stay whole", e.Kind())
	}
	for n := range c.runs {
		one := c
		one.seed += uint64(n)
		sum, err := one.once(t, e, timing, fmt.Sprintf("%s/run-%d", zkserver.Path(t), n))
		all.add(sum)
		if err != nil {
			return all, errors.Join(err, e.Close())
		}
	}
	return all, e.Close()
}

const (
	// Workers who do all there is to be done with locks.
	busyWorkers = 3
	// Workers who do nothing but hold on to them, one at each server.
	holdingWorkers = 3
	// The number of a busy one that has a process of its own.
	processNumber = busyWorkers + holdingWorkers
	allWorkers    = processNumber + 1
	owners        = 3 // in each busy worker
	// pace is how many times shorter the waits and holds of busy workers are than they
	// were if measured by the session timeout, so that more of them go into a minute.
	pace = 2
	// endWithin bounds what comes after the faults. An ensemble may need an election or
	// two.
	endWithin = 40 * time.Second
)

func isLongHolder(worker int) bool {
	return worker >= busyWorkers && worker < processNumber
}

// errBroken says that the servers broke a promise of their own, so that no lock on top of
// them can be right.
var errBroken = errors.New("the servers are broken")

// once makes faults for some time, checks what the workers saw, and returns what has
// happened.
func (c chaosRun) once(
	t *testing.T, e *ensemble, timing chaosTiming, root string,
) (sum count, err error) {
	watch, seen := simulator.StartWatchdog(), startWitness(t, e.addrs())
	w := startWorkers(t, e, c, timing.session, root)
	n := &nemesis{
		e: e, session: timing.session, pausable: w.pausable(), holds: w.holds,
		cut: w.recordOf(simulator.Cut), mended: w.recordOf(simulator.Mended),
		Hands: faults.Hands{Note: w.note},
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.length)
	defer cancel()
	faulty := n.run(ctx, c.seed)
	w.note("the faults are over")
	history, ended := w.finish(t.Context())
	late := watch.Late()
	err = errors.Join(
		faulty, ended, noneLeft(), history.Check(timing.limits(w.leases(), late)),
	)
	sum = countOf(history)
	sum.faults = n.Made()
	t.Logf(
		"%v (%s); at worst this process ran %v late", sum, n.Summary(),
		late.Round(time.Millisecond),
	)
	switch broken := errors.Join(e.diverged(), seen.Finish()); {
	case broken != nil && err != nil:
		err = fmt.Errorf("%w: %w; and so: %w", errBroken, broken, err)
	case broken != nil:
		t.Logf("%v, and no worker met it: %v", errBroken, broken)
	}
	if err == nil {
		return sum, nil
	}
	return sum, fmt.Errorf(
		"CHAOS_SEED=%d: %w\nthe whole history: %s\n%v\n%v", c.seed, err,
		keep(t, history), e.views(root), e,
	)
}

// servers are the settings of each server.
func (timing chaosTiming) servers() []zkserver.Option {
	return []zkserver.Option{
		zkserver.Tick(timing.tick),
		zkserver.Config("initLimit=20", fmt.Sprintf("syncLimit=%d", timing.syncLimit)),
		zkserver.JVM(
			"-Dzookeeper.enableEagerACLCheck=true",
			// So that the locks' directories go while somebody is about to join.
			"-Dznode.container.checkIntervalMs=500",
			// A proxy accepts for a server that is not there. What a candidate sends it
			// is lost, and it would try again after up to a minute.
			"-Dzookeeper.fastleader.maxNotificationInterval=500"),
	}
}

// limits allow for a machine that runs this process, and maybe the other one, later than
// it should by so much.
func (timing chaosTiming) limits(
	leases map[string]int, late time.Duration,
) simulator.Limits {
	return simulator.Limits{
		Leases: leases, Slack: timing.session/40 + 2*late, Grace: timing.session/6 + late,
		Prompt: timing.session, Linearize: time.Minute, Session: timing.session,
	}
}

// keep writes a history to a file that outlasts the test, and returns its name.
func keep(t *testing.T, h simulator.History) string {
	t.Helper()
	const name = "chaos-*.jsonl"
	f, err := os.CreateTemp("", name) //nolint:usetesting // read after the test
	require.NoError(t, err)
	defer f.Close()
	out := json.NewEncoder(f)
	for _, e := range h {
		require.NoError(t, out.Encode(e))
	}
	return f.Name()
}
