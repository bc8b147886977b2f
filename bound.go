package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
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

// atMost returns d, or less where the bound comes before.
func (l bound) atMost(d time.Duration) time.Duration {
	if l == (bound{}) {
		return d
	}
	return min(d, time.Until(l.until))
}

// errTimeUp is the cause of a ctx whose time ran out by a bound.
var errTimeUp = errors.New("timed out")

// keep calls acquire with a ctx that ends with the bound.
func (l bound) keep(
	ctx context.Context, acquire func(ctx context.Context, once bool) error,
) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", outcome.Cancelled(ctx), errNotAsked)
	}
	if l == (bound{}) {
		return acquire(ctx, false)
	}
	ctx, cancel := context.WithDeadlineCause(ctx, l.until, errTimeUp)
	defer cancel()
	return acquire(ctx, l.once)
}

// errNotAsked is the ErrUnavailable of a wait whose ctx was done before it began.
var errNotAsked = fmt.Errorf("%w: nothing was asked", zkconn.ErrNoAnswer)

// endedByLimit tells whether a wait was given up for its bound while others were ahead.
func endedByLimit(err error) bool {
	cause := outcome.Cancellation(err)
	//nolint:errorlint // this very value: what matches it can be another lock's
	return errors.Is(err, ErrBusy) && (cause == nil || cause == errTimeUp)
}

// heldOrBusy makes of an error what AcquireTimeout returns, which does not say why others
// were ahead.
func heldOrBusy(err error) (held bool, _ error) {
	if endedByLimit(err) {
		return false, nil
	}
	return err == nil, err
}
