package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
)

// A limit bounds a wait, as the timeout of AcquireTimeout does. The zero limit is none.
type limit struct {
	until time.Time
	once  bool // wait for no other holder
}

// tryWithin is what a single try has for ZooKeeper: a second, less what giving up may
// take, the place in a queue, a directory made in vain, and the other members of a multi
// lock.
const tryWithin = 750 * time.Millisecond

func newLimit(timeout time.Duration) limit {
	if timeout <= 0 {
		return limit{until: time.Now().Add(tryWithin), once: true}
	}
	return limit{until: time.Now().Add(timeout)}
}

// errTimeUp is the cause of a ctx whose time ran out by a limit's doing.
var errTimeUp = errors.New("time is up")

// keep calls acquire with a ctx that ends with the limit. When it does, the error matches
// ErrBusy where others were ahead, and ErrUnavailable where nobody knows.
func (l limit) keep(
	ctx context.Context, acquire func(ctx context.Context, once bool) error,
) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l == (limit{}) {
		return acquire(ctx, false)
	}
	ctx, cancel := context.WithDeadlineCause(ctx, l.until, errTimeUp)
	defer cancel()
	err := acquire(ctx, l.once)
	if isBusy(err) {
		err = busyError{err}
	}
	return err
}

// isBusy tells whether a wait was given up for a limit, and not for want of an answer.
func isBusy(err error) bool {
	if cause := session.Cancellation(err); cause != nil {
		// Its own: another lock's can be why a ctx was cancelled.
		if cause != errTimeUp { //nolint:errorlint // this very value
			return false
		}
	} else if !errors.Is(err, seqnode.ErrBusy) {
		return false
	}
	return !errors.Is(err, ErrUnavailable)
}

// A busyError is an ErrBusy that says where its caller stood.
type busyError struct{ error }

func (e busyError) Unwrap() []error { return []error{ErrBusy, e.error} }

// heldOrBusy makes of an error what AcquireTimeout returns, which does not tell why
// others were ahead. That another lock was busy can be why ctx was cancelled, as by an
// errgroup; of this lock it says nothing.
func heldOrBusy(ctx context.Context, err error) (held bool, _ error) {
	cancelled := ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
	if errors.Is(err, ErrBusy) && !cancelled {
		return false, nil
	}
	return err == nil, err
}

// acquireWithin acquires a lock of any kind. Where the limit ends that, its error matches
// ErrBusy or ErrUnavailable, and says where the caller stood if the lock is one of this
// package.
func acquireWithin(ctx context.Context, lock InterProcessLock, l limit) error {
	// Not by an interface: a type of the caller's own that embeds one of these has its
	// own methods.
	switch lock := lock.(type) {
	case *InterProcessMutex:
		return lock.acquireWithin(ctx, l)
	case *ReadLock:
		return lock.acquireWithin(ctx, l)
	case *WriteLock:
		return lock.acquireWithin(ctx, l)
	case *InterProcessSemaphoreMutex:
		return lock.acquireWithin(ctx, l)
	case *InterProcessMultiLock:
		return lock.acquireWithin(ctx, l)
	}
	if l == (limit{}) {
		return lock.Acquire(ctx)
	}
	var left time.Duration
	if !l.once {
		if left = time.Until(l.until); left <= 0 { // a timeout of 0 would be a try
			return fmt.Errorf("%w: %w before it was asked for", ErrBusy, errTimeUp)
		}
	}
	held, err := lock.AcquireTimeout(ctx, left)
	if err == nil && !held {
		err = fmt.Errorf("recipes: acquire a %T: %w", lock, ErrBusy)
	}
	return err
}
