package crew

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// A Crew does loads by the workers of all peers.
type Crew struct {
	commands map[string][]string // that start a worker, by peer
	limit    time.Duration       // for one load
	idle     map[string][]*process
}

// New makes a crew that starts workers by these commands, one for each peer, and gives a
// load so much time.
func New(commands map[string][]string, limit time.Duration) *Crew {
	return &Crew{commands: commands, limit: limit, idle: map[string][]*process{}}
}

// Do has n workers of a peer do a load at the same time. What goes wrong is in the
// results.
func (c *Crew) Do(ctx context.Context, peer string, n int, l load.Load) []load.Result {
	tooLong := fmt.Errorf("stuck: not done after %v", c.limit)
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, tooLong)
	defer cancel()
	results, workers := make([]load.Result, n), make([]*process, n)
	var wg sync.WaitGroup
	for i := range n {
		var err error
		if workers[i], err = c.take(peer); err != nil {
			results[i].Fault = err.Error()
			continue
		}
		wg.Go(func() {
			var err error
			if results[i], err = workers[i].do(ctx, l); err != nil {
				results[i].Fault = err.Error()
			}
		})
	}
	wg.Wait()
	for i, w := range workers {
		switch {
		case w == nil:
		case results[i].Fault != "":
			w.kill() // who knows what it has left behind
		default:
			c.idle[peer] = append(c.idle[peer], w)
		}
	}
	return results
}

// take returns a worker that is idle, or a new one.
func (c *Crew) take(peer string) (*process, error) {
	if idle := c.idle[peer]; len(idle) > 0 {
		c.idle[peer] = idle[:len(idle)-1]
		return idle[len(idle)-1], nil
	}
	command, known := c.commands[peer]
	if !known {
		return nil, errors.New("there is no worker for " + peer)
	}
	return start(command)
}

// Close ends all workers.
func (c *Crew) Close() {
	var wg sync.WaitGroup
	for _, idle := range c.idle {
		for _, w := range idle {
			wg.Go(w.close)
		}
	}
	wg.Wait()
	clear(c.idle)
}
