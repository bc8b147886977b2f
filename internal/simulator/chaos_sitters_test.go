//go:build unix

package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
)

// sitters are workers who sit on their locks: each holds one for longer than a session unless it is lost, while others wait for it, and
// stays with one server. So whatever becomes of a server, somebody is likely to hold a lock through it who can be told too
// late that it is lost; of those who are in a hurry few hold one for that long.
type sitters struct {
	rec      *simulator.Recorder
	session  time.Duration
	all      sync.WaitGroup
	stopping context.Context // done when they are to give back what they hold, and to end
	stop     context.CancelFunc

	mu      sync.Mutex  // guards what follows
	holding map[int]int // how many locks each worker holds
	failed  []error
}

// satOn are the locks that each sitter wants, below the root of all locks.
var satOn = []string{"/sat-on-1", "/sat-on-2", "/sat-on-3", "/sat-on-4"}

// startSitters starts sitters with the given numbers.
func startSitters(dial dialer, clock func() time.Duration, session time.Duration, root string, seed uint64, numbers ...int) *sitters {
	s := &sitters{rec: simulator.NewRecorder(clock), session: session, holding: map[int]int{}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	for _, n := range numbers {
		s.all.Go(func() {
			if err := s.sit(dial(s.rec), root, seed, n); err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = append(s.failed, fmt.Errorf("sitter %d: %w", n, err))
			}
		})
	}
	return s
}

// sit is the life of one sitter, who has an owner for each lock.
func (s *sitters) sit(dial dialFunc, root string, seed uint64, n int) error {
	client, err := dial(s.stopping, n)
	if err != nil {
		return err
	}
	defer client.Close()
	var owners sync.WaitGroup
	errs := make([]error, len(satOn))
	for i, name := range satOn {
		lock, err := recipes.NewInterProcessMutex(client, root+name)
		if err != nil {
			return err
		}
		d := dice{rand.New(rand.NewPCG(seed, uint64(n)<<32|uint64(i)))}
		owners.Go(func() {
			for step := 0; s.stopping.Err() == nil && errs[i] == nil; step++ {
				id := simulator.ID{Worker: n, Owner: i, Step: step}
				errs[i] = s.sitOn(lock, id, root+name, client.SessionID, d.between(2*s.session, 4*s.session))
			}
		})
	}
	owners.Wait()
	return errors.Join(errs...)
}

// sitOn acquires a lock, holds it until it is lost, or for some time, and releases it. It returns what neither call may fail with.
func (s *sitters) sitOn(
	lock *recipes.InterProcessMutex, id simulator.ID, path string, sessionID func() int64, hold time.Duration,
) error {
	e := simulator.Event{ID: id, Path: path, Kind: simulator.Called, Mode: simulator.Exclusive}
	s.rec.Record(e)
	ctx := recipes.WithOwner(context.Background())
	waiting, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(s.stopping, cancel)()
	defer cancel()
	if err := lock.Acquire(waiting); err != nil {
		e.Kind, e.Outcome, e.Text = simulator.Failed, simulator.Cancelled, err.Error()
		s.rec.Record(e)
		if s.stopping.Err() == nil {
			return err
		}
		return nil
	}
	lost := closedChannel
	if h := lock.Hold(ctx); h != nil {
		e.Token, e.Node, e.Session, lost = h.FencingToken(), h.Path(), sessionID(), h.Lost()
	}
	s.rec.Grant(e, lost)
	s.count(id.Worker, 1)
	defer s.count(id.Worker, -1)
	select {
	case <-lost:
	case <-time.After(hold):
	case <-s.stopping.Done():
	}
	s.rec.Record(simulator.Event{ID: id, Path: path, Kind: simulator.Releasing})
	err := lock.Release(ctx)
	released := simulator.Event{ID: id, Path: path, Kind: simulator.Released, Outcome: simulator.OK}
	if err != nil {
		released.Outcome, released.Text = simulator.LockLost, err.Error()
	}
	s.rec.Record(released)
	if err != nil && !errors.Is(err, recipes.ErrLockLost) {
		return err
	}
	return nil
}

var closedChannel = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

func (s *sitters) count(worker, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding[worker] += more
}

// holdings is how many locks a worker holds.
func (s *sitters) holdings(worker int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding[worker]
}

// finish ends all sitters and returns what they have recorded.
func (s *sitters) finish() (simulator.History, error) {
	s.stop()
	s.all.Wait()
	s.rec.Close()
	return s.rec.History(), errors.Join(s.failed...)
}
