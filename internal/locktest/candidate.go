package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
)

// A Candidate makes a lock of an election, for one owner at a time: to acquire it is to
// lead, and to release it is to give the leadership up.
//
// Only its own methods can be called: it is no lock for Do, Acquire or a multi lock.
type Candidate struct {
	recipes.InterProcessLock // nil, for the interface's unexported methods

	stand func(ctx context.Context) (*term, error)

	mu   sync.Mutex // guards term
	term *term      // nil: it does not lead, and has not lost the leadership
}

var _ recipes.InterProcessLock = (*Candidate)(nil)

// A term is one that a [Candidate] leads, or has lost and not released.
type term struct {
	*recipes.Hold
	end func(ctx context.Context) error
}

// newLatchCandidate returns a candidate whose latches create makes, one for each term.
func newLatchCandidate(create func() (*recipes.LeaderLatch, error)) *Candidate {
	return &Candidate{stand: func(ctx context.Context) (*term, error) {
		latch, err := create()
		if err != nil {
			return nil, err
		}
		hold, err := latch.Await(ctx)
		return &term{hold, latch.Close}, err
	}}
}

var errTermOver = errors.New("the term is over")

// newSelectorCandidate returns a candidate that runs s anew for each term.
func newSelectorCandidate(s *recipes.LeaderSelector) *Candidate {
	return &Candidate{stand: func(ctx context.Context) (*term, error) {
		within, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		led, over := make(chan *recipes.Hold, 2), make(chan struct{})
		ran := Start(func() error {
			return s.Run(within, func(ctx context.Context, hold *recipes.Hold) error {
				led <- hold
				select {
				case <-over:
				case <-ctx.Done():
					stop(errTermOver) // it does not queue anew
				}
				return errTermOver
			})
		})
		select {
		case hold := <-led:
			return &term{hold, func(context.Context) error {
				close(over)
				err := <-ran
				switch {
				case hold.Err() != nil:
					return hold.Err()
				case errors.Is(err, errTermOver):
					return nil
				}
				return err
			}}, nil
		case <-ctx.Done():
			stop(context.Cause(ctx))
			return nil, <-ran
		case err := <-ran:
			return nil, err
		}
	}}
}

// swap puts another term in place of the one that is led, and returns that.
func (c *Candidate) swap(next *term) (former *term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	former, c.term = c.term, next
	return former
}

// Acquire implements [recipes.InterProcessLock].
func (c *Candidate) Acquire(ctx context.Context) error {
	now, err := c.stand(ctx)
	if err == nil {
		c.swap(now)
	}
	return err
}

// AcquireTimeout implements [recipes.InterProcessLock], but for the single try.
func (c *Candidate) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	errTimeUp := errors.New("the candidate's time is up")
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeUp)
	defer cancel()
	err := c.Acquire(ctx)
	if errors.Is(err, errTimeUp) && !errors.Is(err, recipes.ErrUnavailable) {
		return false, nil
	}
	return err == nil, err
}

// Release implements [recipes.InterProcessLock].
func (c *Candidate) Release(ctx context.Context) error {
	if now := c.swap(nil); now != nil {
		return now.end(ctx)
	}
	return recipes.ErrNotOwner
}

// Hold returns what the candidate leads by, nil where it does not.
func (c *Candidate) Hold(context.Context) *recipes.Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term == nil {
		return nil
	}
	return c.term.Hold
}

// IsAcquiredInThisProcess implements [recipes.InterProcessLock].
func (c *Candidate) IsAcquiredInThisProcess() bool {
	hold := c.Hold(context.Background())
	return hold != nil && hold.Err() == nil
}

// Do is recipes.Do, and the same of a candidate's term.
func Do(ctx context.Context, lock recipes.InterProcessLock, fn func() error) error {
	if c, ok := lock.(*Candidate); ok {
		if err := c.Acquire(ctx); err != nil {
			return err
		}
		return errors.Join(fn(), c.Release(ctx))
	}
	return recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error {
		return fn()
	})
}
