//go:build unix

package chaos_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// chaosWorkers are all workers of one run: those of a world in this process, the long
// holders, and one that is a process of its own.
type chaosWorkers struct {
	world   *simulator.World
	holders *longHolders
	process *workerProcess
}

func startWorkers(
	t *testing.T, e *ensemble, c chaosRun, session time.Duration, root string,
) *chaosWorkers {
	t.Helper()
	register := simulator.NewRegister()
	store, err := serveStore(t, register)
	require.NoError(t, err)
	w, epoch := &chaosWorkers{}, monotonic()
	dial := dialerTo(e.connect, session, c.plain)
	w.world, err = newWorld(simulator.Config{
		Seed: c.seed, Session: session / pace, Root: root, Locks: c.locksBelow(root),
		Workers: busyWorkers, Owners: owners,
		Clock: clockSince(epoch), Register: register, Trespass: true,
		Stuck: func() string { return e.views(root) + "\n" + goroutines(ofTheLibrary) },
	}, dial)
	require.NoError(t, err)
	w.process, err = startProcess(processConfig{
		Seed: c.seed, Timeout: session, Root: root, Locks: c.locksBelow(root),
		Plain: c.plain, Owners: owners, Worker: processNumber,
		Servers: e.connect(processNumber),
		Epoch:   epoch, Register: store, Finish: endWithin,
	}, w.world.Recorder)
	require.NoError(t, err)
	var numbers []int
	for i := range holdingWorkers {
		numbers = append(numbers, busyWorkers+i)
	}
	w.holders = startLongHolders(
		dial, clockSince(epoch), session, root, c.seed, numbers...,
	)
	w.world.Start()
	return w
}

// A dialFunc opens a worker's session, and a dialer returns one that puts into a history
// when sessions expire.
type (
	dialFunc func(ctx context.Context, worker int) (simulator.Client, error)
	dialer   func(rec *simulator.Recorder) dialFunc
)

// locksBelow are the locks of a run, at their full paths.
func (c chaosRun) locksBelow(root string) (all []simulator.Lock) {
	for _, lock := range c.locks {
		paths := slices.Clone(lock.Paths)
		for i := range paths {
			paths[i] = root + paths[i]
		}
		lock.Paths = paths
		all = append(all, lock)
	}
	return all
}

func dialerTo(
	servers func(worker int) string, session time.Duration, plain bool,
) dialer {
	return func(rec *simulator.Recorder) dialFunc {
		return func(ctx context.Context, worker int) (simulator.Client, error) {
			if plain {
				return dialPlain(ctx, servers(worker), session, func() {
					rec.Notef("worker %d: %s", worker, sessionExpired)
				})
			}
			log := slog.New(expiryHandler{
				func() { rec.Notef("worker %d: %s", worker, sessionExpired) },
			})
			return recipes.Connect(
				ctx, servers(worker), session, recipes.WithClientLogger(log),
			)
		}
	}
}

// A plainClient is go-zookeeper's client with a session, and nothing of the library's.
type plainClient struct{ *zk.Conn }

var _ simulator.Bare = plainClient{}

// Bare implements simulator.Bare.
func (c plainClient) Bare() *zk.Conn { return c.Conn }

// shown is what the library gets of a client: of a plain one go-zookeeper's own, since a
// wrapper would have to tell of its close.
func shown(c simulator.Client) recipes.Conn {
	if bare, ok := c.(simulator.Bare); ok {
		return bare.Bare()
	}
	return c
}

// dialPlain returns one that has a session; expired is called at each end of one.
func dialPlain(
	ctx context.Context, servers string, session time.Duration, expired func(),
) (simulator.Client, error) {
	conn, events, err := zk.Connect(
		strings.Split(servers, ","), session, zk.WithLogger(silent{}),
	)
	if err != nil {
		return nil, err
	}
	established := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(established) })
		for e := range events { // until the client closes them
			switch e.State {
			case zk.StateHasSession:
				once()
			case zk.StateExpired:
				expired()
			}
		}
	}()
	select {
	case <-established:
		return plainClient{conn}, nil
	case <-ctx.Done():
		conn.Close()
		return nil, context.Cause(ctx)
	}
}

func newWorld(c simulator.Config, dial dialer) (world *simulator.World, err error) {
	c.Looks = 10_000 // lets each goroutine run, however busy the machine is
	c.Dial = func(ctx context.Context, worker int) (simulator.Client, error) {
		return dial(world.Recorder)(ctx, worker)
	}
	world, err = simulator.New(c)
	return world, err
}

const sessionExpired = "the session expired"

// An expiryHandler is a log handler that waits for the message that a session expired.
type expiryHandler struct{ expired func() }

func (h expiryHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h expiryHandler) WithGroup(string) slog.Handler      { return h }

func (h expiryHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h expiryHandler) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "session expired") {
		h.expired()
	}
	return nil
}

func (w *chaosWorkers) note(format string, args ...any) {
	w.world.Recorder.Notef(format, args...)
}

// recordOf puts an event of a worker into the history.
func (w *chaosWorkers) recordOf(kind simulator.Kind) func(worker int) {
	return func(worker int) {
		w.world.Recorder.Record(simulator.Event{
			Kind: kind, ID: simulator.ID{Worker: worker},
		})
	}
}

// holds is how many locks the long holder at a server holds.
func (w *chaosWorkers) holds(server int) int {
	return w.holders.holdings(busyWorkers + server)
}

// pausable are the workers of this process whose owners can be held up, and the process,
// which is stopped as a whole.
func (w *chaosWorkers) pausable() (all []pausable) {
	for n := range busyWorkers {
		all = append(all, pausable{
			name:   fmt.Sprintf("worker %d", n),
			pause:  func() error { w.world.Pause(n); return nil },
			resume: func() error { w.world.Resume(n); return nil },
		})
	}
	own := pausable{
		name: fmt.Sprintf("worker %d, a process", processNumber), pause: w.process.pause,
		resume: w.process.resume,
	}
	// As often as all others.
	return append(all, slices.Repeat([]pausable{own}, busyWorkers)...)
}

// finish ends the run, once the faults have ended, and returns what all have recorded.
func (w *chaosWorkers) finish(ctx context.Context) (simulator.History, error) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	var sat, own simulator.History
	err := faults.InParallel([]func() error{
		func() error { return w.world.Finish(ctx) },
		func() (err error) { sat, err = w.holders.finish(); return err },
		func() (err error) { own, err = w.process.finish(); return err },
	})
	return simulator.Merge(w.world.History(), sat, own), err
}

// leases are the most that may be out.
func (w *chaosWorkers) leases() map[string]int { return w.world.Limits().Leases }

// ofTheLibrary finds the packages that start goroutines.
var ofTheLibrary = regexp.MustCompile(
	`recipes/internal/(calls|leases|lockcache|observe|seqnode|wait|watches|` +
		`zkconn|znode)\.`,
)

var ofTheClient = regexp.MustCompile(`go-zookeeper/zk\.`)

// noneLeft waits until all goroutines of the library have ended, or tells of one that has
// not.
func noneLeft() error {
	const patience = time.Minute
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		switch left := goroutines(ofTheLibrary); {
		case left == "":
			return nil
		case time.Since(began) > patience:
			return fmt.Errorf(
				"goroutines of the library are left:\n%s\nand beside them:\n%s", left,
				goroutines(ofTheClient),
			)
		}
	}
}

// goroutines shows those that run code of some packages.
func goroutines(of *regexp.Regexp) string {
	text := make([]byte, 16<<20)
	text = text[:runtime.Stack(text, true)]
	all := strings.Split(string(text), "\n\n")
	return strings.Join(slices.DeleteFunc(all, func(stack string) bool {
		return !of.MatchString(stack)
	}), "\n\n")
}

// A count is what has happened in a run.
type count struct{ faults, acquired, lost, expired, refused int }

func countOf(h simulator.History) (c count) {
	for _, e := range h {
		switch {
		case e.Kind == simulator.Granted:
			c.acquired++
		case e.Kind == simulator.Lost:
			c.lost++
		case e.Kind == simulator.Refused:
			c.refused++
		case e.Kind == simulator.Note && strings.Contains(e.Text, sessionExpired):
			c.expired++
		}
	}
	return c
}

func (c *count) add(other count) {
	c.faults += other.faults
	c.acquired += other.acquired
	c.lost += other.lost
	c.expired += other.expired
	c.refused += other.refused
}

func (c count) String() string {
	return fmt.Sprintf("%d acquisitions, %d losses, %d sessions expired, "+
		"%d writes refused, %d faults",
		c.acquired, c.lost, c.expired, c.refused, c.faults)
}

// enough refuses a run that has shown nothing: what it demands is a fraction of what
// happens on a busy machine.
func (c count) enough(length time.Duration) error {
	minutes := length.Minutes()
	if c.faults < int(10*minutes) || c.acquired < int(150*minutes) ||
		c.lost < int(6*minutes) || c.expired < int(2*minutes) {
		return fmt.Errorf("in %v there were only %v: that shows nothing", length, c)
	}
	return nil
}
