package page

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
	jobs      = 1000
	customers = 100
	processes = 4
	workers   = 8 // of each process
	jobTime   = 10 * time.Millisecond
)

type job func(ctx context.Context, token int64) error

// A site has the jobs that are left, and counts what is done.
type site struct {
	t *testing.T

	mu      sync.Mutex // guards what follows
	left    []string   // the customers of the jobs
	done    int
	busy    int // attempts that failed
	atWork  map[string]bool
	longest int
}

func newSite(t *testing.T) *site {
	s := &site{t: t, atWork: map[string]bool{}}
	random := rand.New(rand.NewPCG(1, 1))
	for range jobs { // half of the jobs are those of five customers
		n := random.IntN(customers)
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

func (s *site) failed(err error, customer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	if !errors.Is(err, recipes.ErrBusy) {
		s.t.Error(err)
	}
	if customer != "" {
		s.left = append(s.left, customer)
	}
}

func (s *site) do(customer string) job {
	set := func(now bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.atWork[customer] == now {
			s.t.Error("two jobs of one customer at once")
		}
		s.atWork[customer] = now
	}
	return func(context.Context, int64) error {
		set(true)
		time.Sleep(jobTime)
		set(false)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done++
		return nil
	}
}

// single is what a worker does that makes single attempts.
func (s *site) single(ctx context.Context, client *recipes.Client) {
	for {
		customer, ok := s.take()
		if !ok {
			return
		}
		path := "/customers/" + url.PathEscape(customer)
		lock, err := recipes.NewInterProcessMutex(client, path)
		if err == nil {
			one := func(ctx context.Context, hold *recipes.Hold) error {
				return s.do(customer)(ctx, hold.FencingToken())
			}
			err = recipes.Do(ctx, lock, one, recipes.WaitAtMost(0))
		}
		if err != nil {
			s.failed(err, customer)
			time.Sleep(jobTime)
		}
	}
}

// A process has the jobs that it has taken, by their customers.
type process struct {
	*site
	client *recipes.Client
	local  map[string]int
	served map[string]bool
}

// one is what a worker does that is the only one for a customer in its process.
func (p *process) one(ctx context.Context) {
	next := func(customer string) (job, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.local[customer] == 0 {
			return nil, false
		}
		p.local[customer]--
		return p.do(customer), true
	}
	for {
		customer, ok := p.choose()
		if !ok {
			return
		}
		if customer == "" {
			time.Sleep(jobTime) // all that is here has a worker
			continue
		}
		if err := serve(ctx, p.client, customer, next); err != nil {
			p.failed(err, "")
		}
		p.mu.Lock()
		p.served[customer] = false
		p.mu.Unlock()
	}
}

// choose takes some jobs, and returns a customer of those that has no worker.
func (p *process) choose() (customer string, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range min(workers, len(p.left)) {
		p.local[p.left[0]]++
		p.left = p.left[1:]
	}
	for customer, n := range p.local {
		more = more || n > 0
		if n > 0 && !p.served[customer] {
			p.served[customer] = true
			return customer, true
		}
	}
	return "", more || len(p.left) > 0
}

func play(
	t *testing.T, work func(s *site, client *recipes.Client) func(context.Context),
) int {
	s := newSite(t)
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		var running sync.WaitGroup
		for i := range processes {
			do := work(s, locktest.ConnectThrough(t, cluster, fmt.Sprint(i)))
			for range workers {
				running.Go(func() { do(t.Context()) })
			}
		}
		running.Wait()
	})
	require.Equal(t, jobs, s.done)
	return s.busy
}

func Run(t *testing.T) {
	single := play(t, func(s *site, client *recipes.Client) func(context.Context) {
		return func(ctx context.Context) { s.single(ctx, client) }
	})
	one := play(t, func(s *site, client *recipes.Client) func(context.Context) {
		p := &process{s, client, map[string]int{}, map[string]bool{}}
		return p.one
	})
	t.Logf("attempts that failed: %d single ones, %d in the queue", single, one)
	require.Greater(t, single, 2*jobs)
	require.Zero(t, one)
}

func serve(
	ctx context.Context, client *recipes.Client, customer string,
	next func(customer string) (job, bool),
) error {
	//pages:block
}
