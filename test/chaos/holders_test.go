//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// longHolders are workers each of whose owners holds a lock for longer than a session
// unless it is lost, while others wait for it, and stays with one server. So whatever
// becomes of a server, somebody is likely to hold a lock through it who can be told too
// late that it is lost; of those who are in a hurry few hold one for that long.
type longHolders struct {
	rec      *simulator.Recorder
	session  time.Duration
	all      sync.WaitGroup
	stopping context.Context // done when they are to give back what they hold, and to end
	stop     context.CancelFunc

	mu      sync.Mutex  // guards what follows
	holding map[int]int // how many locks each worker holds
	failed  []error
}

// heldPaths are the locks that each long holder wants, below the root of all locks.
var heldPaths = []string{"/long-1", "/long-2", "/long-3", "/long-4"}

// startLongHolders starts workers with the given numbers.
func startLongHolders(
	dial dialer, clock func() time.Duration, session time.Duration, root string,
	seed uint64, numbers ...int,
) *longHolders {
	h := &longHolders{
		rec: simulator.NewRecorder(clock), session: session, holding: map[int]int{},
	}
	h.stopping, h.stop = context.WithCancel(context.Background())
	for _, n := range numbers {
		h.all.Go(func() {
			if err := h.run(dial(h.rec), root, seed, n); err != nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.failed = append(h.failed, fmt.Errorf("long holder %d: %w", n, err))
			}
		})
	}
	return h
}

// run is the life of one worker, who has an owner for each lock.
func (h *longHolders) run(dial dialFunc, root string, seed uint64, n int) error {
	client, err := dial(h.stopping, n)
	switch {
	case err != nil && h.stopping.Err() != nil:
		return nil // the run is over before a server answered, as after a kill of all
	case err != nil:
		return err
	}
	defer client.Close()
	var owners sync.WaitGroup
	errs := make([]error, len(heldPaths))
	for i, name := range heldPaths {
		lock, err := recipes.NewInterProcessMutex(shown(client), root+name)
		if err != nil {
			return err
		}
		d := faults.NewDice(seed, uint64(n)<<32|uint64(i))
		owners.Go(func() {
			for step := 0; h.stopping.Err() == nil && errs[i] == nil; step++ {
				id := simulator.ID{Worker: n, Owner: i, Step: step}
				errs[i] = h.hold(
					lock, id, root+name, client.SessionID,
					d.Between(2*h.session, 4*h.session),
				)
			}
		})
	}
	owners.Wait()
	return errors.Join(errs...)
}

// hold acquires a lock, holds it until it is lost, or for some time, and releases it. It
// returns what neither call may fail with.
func (h *longHolders) hold(
	lock *recipes.InterProcessMutex, id simulator.ID, path string, sessionID func() int64,
	hold time.Duration,
) error {
	e := simulator.Event{
		ID: id, Path: path, Kind: simulator.Called, Mode: simulator.Exclusive,
	}
	h.rec.Record(e)
	ctx := recipes.WithOwner(context.Background())
	waiting, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(h.stopping, cancel)()
	defer cancel()
	if err := lock.Acquire(waiting); err != nil {
		e.Kind, e.Outcome, e.Text = simulator.Failed, simulator.Cancelled, err.Error()
		h.rec.Record(e)
		if h.stopping.Err() == nil {
			return err
		}
		return nil
	}
	held := lock.Hold(ctx)
	e.Token, e.Node, e.Session = held.FencingToken(), held.Path(), sessionID()
	h.rec.Grant(e, held)
	h.count(id.Worker, 1)
	defer h.count(id.Worker, -1)
	select {
	case <-held.Lost():
	case <-time.After(hold):
	case <-h.stopping.Done():
	}
	h.rec.Record(simulator.Event{ID: id, Path: path, Kind: simulator.Releasing})
	err := lock.Release(ctx)
	released := simulator.Event{
		ID: id, Path: path, Kind: simulator.Released, Outcome: simulator.OK,
	}
	if err != nil {
		released.Outcome, released.Text = simulator.LockLost, err.Error()
	}
	h.rec.Record(released)
	if err != nil && !errors.Is(err, recipes.ErrLockLost) {
		return err
	}
	return nil
}

func (h *longHolders) count(worker, more int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding[worker] += more
}

// holdings is how many locks a worker holds.
func (h *longHolders) holdings(worker int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holding[worker]
}

// finish ends all workers and returns what they have recorded.
func (h *longHolders) finish() (simulator.History, error) {
	h.stop()
	h.all.Wait()
	h.rec.Close()
	return h.rec.History(), errors.Join(h.failed...)
}
