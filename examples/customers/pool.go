package main

import (
	"context"
	"log"
	"net/url"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
)

// A job is something to do for a customer. It sends the token with each write.
type job func(ctx context.Context, token int64) error

// A pool does the jobs of one process. While one job of a customer is done, no other one
// of that customer is, in any process.
type pool struct {
	client *recipes.Client
	slots  chan struct{} // has room for as many jobs as are done at one time
	ended  sync.WaitGroup

	mu   sync.Mutex
	jobs map[string][]job // by customer; has an entry while the customer has a worker
}

func newPool(client *recipes.Client, atOneTime int) *pool {
	return &pool{
		client: client, slots: make(chan struct{}, atOneTime), jobs: map[string][]job{},
	}
}

// submit has a job done, after those of the same customer that are here.
func (p *pool) submit(ctx context.Context, customer string, j job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	jobs, hasWorker := p.jobs[customer]
	p.jobs[customer] = append(jobs, j)
	if !hasWorker {
		p.ended.Go(func() { p.work(ctx, customer) })
	}
}

// turn waits in the queue, which sends next to no requests, and does some jobs.
func (p *pool) turn(ctx context.Context, customer string) error {
	path := "/customers/" + url.PathEscape(customer)
	lock, err := recipes.NewInterProcessMutex(p.client, path)
	if err != nil {
		return err
	}
	return recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
		for range 10 { // then other processes have their turn
			j, ok := p.take(customer)
			if !ok {
				return nil
			}
			if err := p.do(ctx, j, hold.FencingToken()); err != nil {
				p.submit(ctx, customer, j) // behind the others
				return err
			}
		}
		return nil
	}, recipes.WaitAtMost(10*time.Second))
}

// work is the worker of a customer. It ends when no job is left, or when ctx is done.
func (p *pool) work(ctx context.Context, customer string) {
	for p.more(customer) && ctx.Err() == nil {
		if err := p.turn(ctx, customer); err != nil && ctx.Err() == nil {
			log.Printf("customer %s: %v", customer, err)
			pause(ctx, time.Second) // the jobs are still there
		}
	}
}

// do does a job once there is a slot. A worker that waits for a lock has none.
func (p *pool) do(ctx context.Context, j job, token int64) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
		return j(ctx, token)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pool) take(customer string) (j job, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	jobs := p.jobs[customer]
	if len(jobs) == 0 {
		return nil, false
	}
	p.jobs[customer] = jobs[1:]
	return jobs[0], true
}

// more tells whether a customer has jobs. If not, its worker ends: the next job starts
// another one.
func (p *pool) more(customer string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.jobs[customer]) == 0 {
		delete(p.jobs, customer)
		return false
	}
	return true
}
