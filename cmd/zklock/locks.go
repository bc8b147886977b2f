package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes"
)

// A kind is what "zklock run" acquires.
type kind int

const (
	// The mutex and the write lock of a path together: nobody else is in then, neither
	// an exclusive nor a shared run, nor a program that uses either of Curator's locks.
	// A mutex alone does not know of readers.
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
}

// A holding is what was acquired.
type holding struct {
	whole   *recipes.Hold // what tells of a loss
	hold    *recipes.Hold // what CMD is told of: of exclusive the mutex's
	release func(ctx context.Context) error
}

// noLimit is a wait that has no end.
const noLimit time.Duration = -1

// acquire waits for at most a time; 0 tries once. It returns nil where others have had
// the lock for that time.
func (w *wanted) acquire(
	ctx context.Context, client *recipes.Client, wait time.Duration,
) (*holding, error) {
	ctx = recipes.WithOwner(ctx)
	if w.kind == leased {
		return w.acquireLease(ctx, client, wait)
	}
	lock, err := w.lock(client)
	if err != nil {
		return nil, err
	}
	got := true
	if wait == noLimit {
		err = lock.Acquire(ctx)
	} else {
		got, err = lock.AcquireTimeout(ctx, wait)
	}
	if err != nil || !got {
		return nil, err
	}
	held := &holding{whole: lock.Hold(ctx), hold: lock.Hold(ctx)}
	if both, ok := lock.(*recipes.InterProcessMultiLock); ok {
		held.hold = both.Holds(ctx)[0]
	}
	owner := context.WithoutCancel(ctx)
	held.release = func(within context.Context) error {
		ctx, cancel := context.WithCancel(owner)
		defer cancel()
		defer context.AfterFunc(within, cancel)()
		return lock.Release(ctx)
	}
	return held, nil
}

// A holdable is a lock that tells its hold.
type holdable interface {
	recipes.InterProcessLock
	Hold(ctx context.Context) *recipes.Hold
}

func (w *wanted) lock(client *recipes.Client) (holdable, error) {
	mutex, err := recipes.NewInterProcessMutex(client, w.path, w.options...)
	if err != nil || w.kind == simple {
		return mutex, err
	}
	both, err := recipes.NewInterProcessReadWriteLock(client, w.path, w.options...)
	if err != nil {
		return nil, err
	}
	if w.kind == shared {
		return both.ReadLock(), nil
	}
	return recipes.NewInterProcessMultiLockOf(mutex, both.WriteLock()), nil
}

func (w *wanted) acquireLease(
	ctx context.Context, client *recipes.Client, wait time.Duration,
) (*holding, error) {
	s, err := recipes.NewInterProcessSemaphoreV2(client, w.path, w.leases, w.options...)
	if err != nil {
		return nil, err
	}
	var lease *recipes.Lease
	if wait == noLimit {
		lease, err = s.Acquire(ctx)
	} else {
		var all []*recipes.Lease
		all, err = s.AcquireTimeout(ctx, 1, wait)
		if len(all) == 1 {
			lease = all[0]
		}
	}
	if err != nil || lease == nil {
		return nil, err
	}
	hold := lease.Hold()
	return &holding{whole: hold, hold: hold, release: lease.Release}, nil
}

// leave gives the lock back. It returns an error only where the lock turns out to have
// been lost: any other leaves the znode to the end of the session, which comes next.
func (h *holding) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := h.release(ctx); errors.Is(err, recipes.ErrLockLost) {
		return err
	}
	return nil
}

// environment tells a command what it runs under.
func environment(path string, hold *recipes.Hold) []string {
	return []string{
		"ZKLOCK_PATH=" + path,
		"ZKLOCK_NODE=" + hold.Path(),
		fmt.Sprintf("ZKLOCK_TOKEN=%d", hold.FencingToken()),
	}
}
