package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/zkrecipes/recipes"
)

// ErrNotLeader is why a host that does not lead skips a tick.
var ErrNotLeader = errors.New("gocronlock: another host leads, or none")

// NewElector returns an elector for gocron.WithDistributedElector: of all hosts whose
// latches have the same path, the one that leads runs the jobs. It joins the election at
// once, and rejoins after a loss, until the latch is closed. Shut down the scheduler
// before you close the latch: closing it lets another host lead, and ends no job's ctx.
func NewElector(latch *recipes.LeaderLatch) gocron.Elector {
	e := &elector{latch: latch}
	e.campaign()
	return e
}

type elector struct {
	latch *recipes.LeaderLatch

	mu          sync.Mutex // guards what is below
	campaigning bool       // a goroutine waits to lead
	term        *recipes.Hold
	err         error // why the last wait ended without a term
}

// IsLeader sends no requests.
func (e *elector) IsLeader(context.Context) error {
	if e.leads() != nil {
		return nil
	}
	e.campaign() // if an error has ended the last one
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return fmt.Errorf("%w: %w", ErrNotLeader, e.err)
	}
	return ErrNotLeader
}

// leads returns the current term, nil if this host does not lead.
func (e *elector) leads() *recipes.Hold {
	e.mu.Lock()
	defer e.mu.Unlock()
	// The latch can lead again before this term, which was lost, is replaced.
	if e.term == nil || e.term.Err() != nil || !e.latch.HasLeadership() {
		return nil
	}
	return e.term
}

// campaign begins to wait for the leadership, unless that is under way.
func (e *elector) campaign() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.campaigning {
		return
	}
	e.campaigning = true
	go e.await()
}

// await ends with a term, whose loss begins the next campaign, or with an error that the
// next tick reports.
func (e *elector) await() {
	term, err := e.latch.Await(context.Background())
	e.mu.Lock()
	e.campaigning, e.term, e.err = false, term, err
	e.mu.Unlock()
	if err == nil {
		lasts := term.Context(context.Background())
		context.AfterFunc(lasts, func() { // takes no goroutine until then
			if term.Err() != nil { // else the latch was closed
				e.campaign()
			}
		})
	}
}
