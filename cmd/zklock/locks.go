package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkrecipes/recipes"
)

// A kind is what "zklock run" acquires.
type kind int

const (
	// The write lock and the mutex of a path together: they exclude exclusive and shared
	// runs, and programs that use either of Curator's locks. A mutex alone does not
	// exclude readers.
	exclusive kind = iota
	shared         // the read lock
	leased         // a lease of a semaphore
	simple         // the mutex alone
)

// A wanted is a lock to be acquired.
type wanted struct {
	path    string
	kind    kind
	leases  int // of leased
	options []recipes.Option
	// limit is WithMaxHold, or none. It applies to the last of the locks that are
	// acquired, and so begins when all are held: a limit on the write lock would end it
	// while the run waits for the mutex, which would put the run at the tail again.
	limit []recipes.Option
}

// limited are the options of the lock that is acquired last.
func (w *wanted) limited() []recipes.Option { return slices.Concat(w.options, w.limit) }

// A holding is what was acquired.
type holding struct {
	whole *recipes.Hold // what tells of a loss, and is released
	hold  *recipes.Hold // what CMD is told of: of exclusive the write lock's
}

// noLimit is a wait that has no end.
const noLimit time.Duration = -1

// acquire waits for at most a time; 0 tries once. It returns nil where others have had
// the lock for that time.
func (w *wanted) acquire(
	ctx context.Context, client *recipes.Client, wait time.Duration,
) (*holding, error) {
	lock, err := w.lock(client)
	if err != nil {
		return nil, err
	}
	var atMost []recipes.DoOption
	if wait != noLimit {
		atMost = append(atMost, recipes.WaitAtMost(wait))
	}
	whole, err := recipes.Acquire(ctx, lock, atMost...)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, recipes.ErrBusy):
		return nil, nil
	case err != nil:
		return nil, err
	}
	held := &holding{whole: whole, hold: whole}
	if both, ok := lock.(*recipes.InterProcessMultiLock); ok {
		held.hold = both.Holds(whole.Context(ctx))[0]
	}
	return held, nil
}

// lock returns the lock of a kind.
//
// An exclusive run queues for the write lock first, and for the mutex only when it holds
// the write lock. What follows from this order:
//
//   - Its znode is in the queue of the shared runs from the beginning, so none that comes
//     later overtakes it. Shared and exclusive runs, and programs that use the read or
//     the write lock, acquire the lock in the order in which they came.
//   - Runs do not wait for each other in a circle: a run that waits for the mutex holds
//     the write lock, so the holder of the mutex is no run. A program that uses only one
//     of the locks waits for nothing else while it holds it. One that uses several, in a
//     multi lock for instance, must acquire the mutex last, as a run does. (To queue for
//     both at once would be worse. Two runs could then be first in one queue each. And a
//     program that acquires one after the other, in either order, could have a run
//     between its two znodes, which waits for the first and is ahead of the second.)
//   - A program that uses the mutex alone can overtake a run that waits for the write
//     lock. Each run waits only for those that are in the queue of the mutex by then.
//   - The write lock's fencing token is the one for CMD: every later holder of any of
//     the locks has a greater one. The mutex's is greater than that of a reader that has
//     queued in between, and would let a run that has lost the lock write after it.
func (w *wanted) lock(client *recipes.Client) (recipes.InterProcessLock, error) {
	if w.kind == leased {
		s, err := recipes.NewInterProcessSemaphoreV2(
			client, w.path, w.leases, w.limited()...)
		return s.AsLock(1), err
	}
	mutex, err := recipes.NewInterProcessMutex(client, w.path, w.limited()...)
	if err != nil || w.kind == simple {
		return mutex, err
	}
	options := w.options
	if w.kind == shared {
		options = w.limited()
	}
	both, err := recipes.NewInterProcessReadWriteLock(client, w.path, options...)
	if err != nil {
		return nil, err
	}
	if w.kind == shared {
		return both.ReadLock(), nil
	}
	return recipes.NewInterProcessMultiLockOf(both.WriteLock(), mutex), nil
}

// leave gives the lock back. It returns an error only where the lock turns out to have
// been lost: any other leaves the znode to the end of the session, which comes next.
func (h *holding) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := h.whole.Release(ctx); errors.Is(err, recipes.ErrLockLost) {
		return err
	}
	return nil
}
