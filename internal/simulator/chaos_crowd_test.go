//go:build unix

package simulator_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A crowd is all workers of one run: those of a world in this process, the sitters, and one that is a process of its own.
type crowd struct {
	world   *simulator.World
	sitters *sitters
	own     *child
}

func startCrowd(t *testing.T, e *ensemble, session time.Duration, seed uint64) *crowd {
	t.Helper()
	root, register := zkserver.Path(t), simulator.NewRegister()
	store, err := serveStore(t, register)
	require.NoError(t, err)
	c, epoch := &crowd{}, monotonic()
	dial := dialerTo(e.connect, session)
	c.world, err = newWorld(simulator.Config{
		Seed: seed, Session: session / pace, Root: root, Workers: hurried, Owners: owners,
		Clock: clockSince(epoch), Register: register, Trespass: true,
	}, dial)
	require.NoError(t, err)
	c.own, err = startChild(childConfig{
		Seed: seed, Timeout: session, Root: root, Owners: owners, Worker: ownWorker, Servers: e.connect(ownWorker),
		Epoch: epoch, Register: store, Finish: endWithin,
	}, c.world.Recorder)
	require.NoError(t, err)
	var numbers []int
	for i := range sitting {
		numbers = append(numbers, hurried+i)
	}
	c.sitters = startSitters(dial, clockSince(epoch), session, root, seed, numbers...)
	c.world.Start()
	return c
}

// A dialFunc opens a worker's session, and a dialer returns one that puts into a history when sessions expire.
type (
	dialFunc func(ctx context.Context, worker int) (simulator.Client, error)
	dialer   func(rec *simulator.Recorder) dialFunc
)

func dialerTo(servers func(worker int) string, session time.Duration) dialer {
	return func(rec *simulator.Recorder) dialFunc {
		return func(ctx context.Context, worker int) (simulator.Client, error) {
			log := slog.New(expiryHandler{func() { rec.Notef("worker %d: %s", worker, sessionExpired) }})
			return recipes.Connect(ctx, servers(worker), session, recipes.WithClientLogger(log))
		}
	}
}

func newWorld(c simulator.Config, dial dialer) (world *simulator.World, err error) {
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

func (c *crowd) note(format string, args ...any) { c.world.Recorder.Notef(format, args...) }

// holds is how many locks the sitter at a server holds.
func (c *crowd) holds(server int) int { return c.sitters.holdings(hurried + server) }

// pausable are the workers of this process whose owners can be held up, and the process, which is stopped as a whole.
func (c *crowd) pausable() (all []pausable) {
	for n := range hurried {
		all = append(all, pausable{
			name:   fmt.Sprintf("worker %d", n),
			pause:  func() error { c.world.Pause(n); return nil },
			resume: func() error { c.world.Resume(n); return nil },
		})
	}
	own := pausable{name: fmt.Sprintf("worker %d, a process", ownWorker), pause: c.own.pause, resume: c.own.resume}
	return append(all, slices.Repeat([]pausable{own}, hurried)...) // as often as all others
}

// finish ends the run, once the faults have ended, and returns what all have recorded.
func (c *crowd) finish(ctx context.Context) (simulator.History, error) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	var sat, own simulator.History
	err := inParallel([]func() error{
		func() error { return c.world.Finish(ctx) },
		func() (err error) { sat, err = c.sitters.finish(); return err },
		func() (err error) { own, err = c.own.finish(); return err },
	})
	return simulator.Merge(c.world.History(), sat, own), err
}

// leases are the most that may be out.
func (c *crowd) leases() map[string]int { return c.world.Limits().Leases }

// noneLeft waits until all goroutines of the library have ended, or tells of one that has not.
func noneLeft() error {
	const patience = 10 * time.Second
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		text := make([]byte, 16<<20)
		text = text[:runtime.Stack(text, true)]
		left := slices.DeleteFunc(strings.Split(string(text), "\n\n"), func(stack string) bool {
			return !strings.Contains(stack, "recipes/internal/session.") && !strings.Contains(stack, "recipes/internal/seqnode.")
		})
		switch {
		case len(left) == 0:
			return nil
		case time.Since(began) > patience:
			return fmt.Errorf("%d goroutines of the library are left, among them %s", len(left), left[0])
		}
	}
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
	return fmt.Sprintf("%d acquisitions, %d losses, %d sessions expired, %d writes refused, %d faults",
		c.acquired, c.lost, c.expired, c.refused, c.faults)
}

// enough refuses a run that has shown nothing: what it demands is a fraction of what happens on a busy machine.
func (c count) enough(length time.Duration) error {
	minutes := length.Minutes()
	if c.faults < int(10*minutes) || c.acquired < int(150*minutes) || c.lost < int(6*minutes) || c.expired < int(2*minutes) {
		return fmt.Errorf("in %v there were only %v: that shows nothing", length, c)
	}
	return nil
}
