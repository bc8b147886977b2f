package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A DoOption changes how Do and Acquire acquire.
type DoOption func(*doSettings)

type doSettings struct {
	bounded bool
	within  time.Duration
}

// WaitAtMost lets Do and Acquire give up when they have waited for d, as AcquireTimeout
// does: 0 or less tries once. The last one given counts.
func WaitAtMost(d time.Duration) DoOption {
	return func(s *doSettings) { s.bounded, s.within = true, d }
}

// newDoSettings checks what Do and Acquire are given, before anything is acquired.
func newDoSettings(
	ctx context.Context, op string, lock InterProcessLock, opts []DoOption,
) (s doSettings, err error) {
	switch {
	case ctx == nil:
		return s, fmt.Errorf("recipes: %s: %w", op, errNilCtx)
	case isNil(lock):
		return s, fmt.Errorf("recipes: %s: lock is nil", op)
	}
	for i, opt := range opts {
		if opt == nil {
			return s, fmt.Errorf("recipes: %s: option %d is nil", op, i+1)
		}
		opt(&s)
	}
	return s, nil
}

// Do acquires lock, runs fn and releases, whatever fn does, a panic or a runtime.Goexit
// among it (Curator's Locker). ctx bounds the wait and is fn's parent: a deadline of ctx
// ends fn as well. To bound the wait alone use WaitAtMost.
//
// fn's ctx is cancelled with a cause that matches ErrLockLost as soon as the lock can no
// longer be relied on. hold is what fn holds; it is nil only for a lock of the caller's
// own kind without a method Hold(context.Context) *Hold, and such a lock's loss is not
// told. What fn returns when its ctx is done should be context.Cause(ctx), which tells
// the loss; ctx.Err() says no more than "context canceled".
//
// Goroutines that fn starts with its ctx may re-enter this lock, as the owner that called
// Do, and the members of a multi lock as well. Of a read/write lock they have both sides:
// under the write lock they may read, and under the read lock they get ErrUpgrade. For
// every other lock each goroutine is an owner of its own: several workers with fn's ctx
// exclude each other. Only an owner that ctx carried before (WithOwner) is that of all
// locks. They end before fn does: what lives on with a ctx that outlasts fn's, by
// context.WithoutCancel, goes on to stand for the owner that called Do, which is let in
// beside it.
//
// With WaitAtMost the error of a wait that is over matches ErrBusy, or where ZooKeeper
// could not be asked ErrUnavailable; fn has not run then. Do returns fn's error joined
// with Release's, so that no loss goes unseen; a loss that is part of fn's error already
// is not joined again. Do waits for ZooKeeper's answer to the release for as long as ctx
// lasts. ErrNotOwner says that somebody else released what Do had acquired, as any caller
// may do with a semaphore mutex; Do leaves the next owner's alone.
func Do(
	ctx context.Context, lock InterProcessLock,
	fn func(ctx context.Context, hold *Hold) error, opts ...DoOption,
) (err error) {
	settings, err := newDoSettings(ctx, "Do", lock, opts)
	switch {
	case err != nil:
		return err
	case fn == nil:
		return errors.New("recipes: Do: fn is nil")
	}
	got, acquired, err := takeShared(ctx, lock, settings.limit(), theGoroutine)
	if err != nil {
		return err
	}
	got.learn(acquired)
	ctx = withShares(ctx, acquired)
	defer func() {
		if released := untold(got.release(ctx), err, got.hold); released != nil {
			err = errors.Join(err, released)
		}
	}()
	if got.released() {
		return fmt.Errorf("recipes: Do: %w", errReleasedAtOnce)
	}
	// another variable: Release needs ctx as it is
	within, cancel := holding(ctx, got.hold)
	defer cancel()
	return fn(within, got.hold)
}

// errReleasedAtOnce is what Do and Acquire say of what they do not have any more.
var errReleasedAtOnce = fmt.Errorf(
	"%w: another caller released it at once", ErrNotOwner,
)

func (s *doSettings) limit() limit {
	if !s.bounded {
		return limit{}
	}
	return newLimit(s.within)
}

// holding returns fn's ctx.
func holding(ctx context.Context, hold *Hold) (context.Context, context.CancelFunc) {
	if hold == nil {
		return context.WithCancel(ctx)
	}
	return hold.Context(ctx)
}

// untold returns err without the losses of hold that told tells already.
func untold(err, told error, hold *Hold) error {
	if hold == nil || err == nil || told == nil {
		return err
	}
	for _, h := range append([]*Hold{hold}, hold.members...) {
		if loss := h.Err(); loss != nil && errors.Is(told, loss) {
			err = without(err, loss)
		}
	}
	return err
}

// without returns err, nil where it tells nothing but loss, and less where it joins loss
// with others.
func without(err, loss error) error {
	if err == loss { //nolint:errorlint // this very value: the tree is taken apart
		return nil
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil && without(inner, loss) == nil {
			return nil
		}
	case interface{ Unwrap() []error }:
		if !errors.Is(err, loss) {
			return err
		}
		var others []error
		for _, inner := range e.Unwrap() {
			others = append(others, without(inner, loss))
		}
		return errors.Join(others...)
	}
	return err
}
