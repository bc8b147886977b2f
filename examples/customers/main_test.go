package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	jobs    = 1000
	many    = 100 // customers
	members = 4   // processes
	workers = 8   // of each process
	jobTime = 10 * time.Millisecond
)

// A site has the jobs of a test, and counts what is done.
type site struct {
	t *testing.T

	mu     sync.Mutex // guards what follows
	left   []string   // the customers of the jobs
	done   int
	busy   int // single attempts that failed
	failed int
	atWork map[string]bool
	here   []int // jobs at one time, by process
	most   int   // of here
}

// newSite has half of the jobs for five of the customers.
func newSite(t *testing.T) *site {
	s := &site{t: t, atWork: map[string]bool{}, here: make([]int, members)}
	random := rand.New(rand.NewPCG(1, 1))
	for range jobs {
		n := random.IntN(many)
		if random.IntN(2) == 0 {
			n = random.IntN(5)
		}
		s.left = append(s.left, fmt.Sprint("customer/", n))
	}
	return s
}

func (s *site) take() (customer string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) == 0 {
		return "", false
	}
	customer, s.left = s.left[0], s.left[1:]
	return customer, true
}

// set notes that a job of a customer begins, or ends, in a process.
func (s *site) set(process int, customer string, begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atWork[customer] == begins {
		s.t.Error("two jobs of one customer at once")
	}
	s.atWork[customer] = begins
	if begins {
		s.here[process]++
		s.most = max(s.most, s.here[process])
	} else {
		s.here[process]--
		s.done++
	}
}

func (s *site) do(process int, customer string) job {
	return func(context.Context, int64) error {
		s.set(process, customer, true)
		time.Sleep(jobTime)
		s.set(process, customer, false)
		return nil
	}
}

// single is what a worker does that puts a job back whose customer's lock is busy.
func (s *site) single(ctx context.Context, client *recipes.Client, process int) {
	for {
		customer, ok := s.take()
		if !ok {
			return
		}
		path := "/customers/" + url.PathEscape(customer)
		lock, err := recipes.NewInterProcessMutex(client, path)
		if err == nil {
			err = recipes.Do(ctx, lock, func(ctx context.Context, h *recipes.Hold) error {
				return s.do(process, customer)(ctx, h.FencingToken())
			}, recipes.WaitAtMost(0))
		}
		if err != nil {
			s.mu.Lock()
			s.busy++
			s.left = append(s.left, customer)
			s.mu.Unlock()
			time.Sleep(jobTime)
		}
	}
}

// inProcesses runs what a process does in each of them.
func inProcesses(t *testing.T, do func(client *recipes.Client, process int)) {
	cluster := zktest.Start(t)
	var running sync.WaitGroup
	for i := range members {
		client := locktest.ConnectThrough(t, cluster, fmt.Sprint(i))
		running.Go(func() { do(client, i) })
	}
	running.Wait()
}

// Single attempts fail thousands of times.
func TestSingleAttemptsAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		inProcesses(t, func(client *recipes.Client, i int) {
			var running sync.WaitGroup
			for range workers {
				running.Go(func() { s.single(t.Context(), client, i) })
			}
			running.Wait()
		})
		require.Equal(t, jobs, s.done)
		t.Logf("%d attempts failed", s.busy)
		require.Greater(t, s.busy, 2*jobs)
	})
}

// A pool does all jobs, of each customer one at a time, and no more at a time than it has
// slots. A job that fails is done later.
func TestAPoolDoesAllJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		inProcesses(t, func(client *recipes.Client, i int) {
			p := newPool(client, workers)
			for {
				customer, ok := s.take()
				if !ok {
					break
				}
				does, tries := s.do(i, customer), 0
				p.submit(t.Context(), customer, func(ctx context.Context, n int64) error {
					if tries++; tries == 1 && rand.IntN(50) == 0 {
						s.mu.Lock()
						defer s.mu.Unlock()
						s.failed++
						return errors.New("it fails once")
					}
					return does(ctx, n)
				})
				time.Sleep(time.Millisecond)
			}
			p.ended.Wait()
			require.Empty(t, p.jobs)
		})
		require.Equal(t, jobs, s.done)
		require.Positive(t, s.failed)
		require.LessOrEqual(t, s.most, workers)
	})
}

// A job that waits for a slot does not begin once its lock is lost.
func TestALostLockWaitsForNoSlot(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(recipes.ErrLockLost)
	p := newPool(nil, 0)
	err := p.do(ctx, func(context.Context, int64) error { return nil }, 1)
	require.ErrorIs(t, err, recipes.ErrLockLost)
}
