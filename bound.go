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
	until  time.Time
	single bool // a single attempt: wait for no other holder
}

// tryWithin is what a single attempt has for ZooKeeper: a second, less what it may take
// to leave the queue, and to release the other members of a multi lock.
const tryWithin = 750 * time.Millisecond

func newBound(timeout time.Duration) bound {
	if timeout <= 0 {
		return bound{until: time.Now().Add(tryWithin), single: true}
	}
	return bound{until: time.Now().Add(timeout)}
}

// atMost returns d, or less where the bound comes before.
func (b bound) atMost(d time.Duration) time.Duration {
	if b == (bound{}) {
		return d
	}
	return min(d, time.Until(b.until))
}

// errTimeUp is the cause of a ctx whose time ran out by a bound.
var errTimeUp = errors.New("timed out")

// within returns the ctx of a call as it is for the wait: it ends with the bound, too. It
// is an error if there is nothing left to wait with.
func (b bound) within(
	ctx context.Context,
) (_ context.Context, cancel context.CancelFunc, _ error) {
	switch {
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("%w: %w", outcome.Cancelled(ctx), errNotAsked)
	case b == (bound{}):
		return ctx, func() {}, nil
	}
	ctx, cancel = context.WithDeadlineCause(ctx, b.until, errTimeUp)
	return ctx, cancel, nil
}

// errNotAsked is the ErrUnavailable of a wait whose ctx was done before it began.
var errNotAsked = fmt.Errorf("%w: nothing was asked", zkconn.ErrNoAnswer)

// endedByBound tells whether a wait was ended by its bound while others were ahead, and
// nothing else went wrong.
func endedByBound(err error) bool {
	cause := outcome.Cancellation(err)
	//nolint:errorlint // this very value: what matches it can be another lock's
	return errors.Is(err, ErrBusy) && (cause == nil || cause == errTimeUp) &&
		!errors.As(err, new(notGivenBack))
}

// heldOrBusy makes of an error what AcquireTimeout returns, which does not say why others
// were ahead.
func heldOrBusy(err error) (held bool, _ error) {
	if endedByBound(err) {
		return false, nil
	}
	return err == nil, err
}
