package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/wait"
)

// A bound bounds a wait, as the timeout of AcquireTimeout does. The zero bound is none.
type bound struct {
	until time.Time
	once  bool // wait for no other holder
}

// tryWithin is what a single attempt has for ZooKeeper: a second, less what giving up may
// take: the place in a queue, and the other members of a multi lock.
const tryWithin = 750 * time.Millisecond

func newBound(timeout time.Duration) bound {
	if timeout <= 0 {
		return bound{until: time.Now().Add(tryWithin), once: true}
	}
	return bound{until: time.Now().Add(timeout)}
}

// errTimeUp is the cause of a ctx whose time ran out by a bound.
var errTimeUp = errors.New("timed out")

// keep calls acquire with a ctx that ends with the bound. When it does, the error matches
// ErrBusy where others were ahead, and ErrUnavailable where nobody knows.
func (l bound) keep(
	ctx context.Context, acquire func(ctx context.Context, once bool) error,
) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l == (bound{}) {
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

// isBusy tells whether a wait was given up for a bound, and not for want of an answer.
func isBusy(err error) bool {
	if cause := outcome.Cancellation(err); cause != nil {
		// Its own: another lock's can be why a ctx was cancelled.
		if cause != errTimeUp { //nolint:errorlint // this very value
			return false
		}
	} else if !errors.Is(err, wait.ErrBusy) {
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
	cancelled := ctx != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
	if errors.Is(err, ErrBusy) && !cancelled {
		return false, nil
	}
	return err == nil, err
}
