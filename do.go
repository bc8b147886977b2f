package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A DoOption changes how Do and Acquire acquire. Only this package has such options.
type DoOption interface{ set(b *bound) error }

// WaitAtMost limits the wait of Do and Acquire to d; 0 or less is a single attempt, as in
// AcquireTimeout. The last one given counts.
func WaitAtMost(d time.Duration) DoOption {
	return setter[bound](func(b *bound) error {
		*b = newBound(d)
		return nil
	})
}

// newDo checks what Do and Acquire are given, before anything is acquired.
func newDo(
	ctx context.Context, op string, lock InterProcessLock, opts []DoOption,
) (a acquisition, err error) {
	var within bound
	if err = notNil(ctx); err == nil {
		err = checkLock("lock", lock)
	}
	if err == nil && len(opts) > 0 {
		within, err = boundOf(opts)
	}
	if err != nil {
		return a, fmt.Errorf("recipes: %s: %w", op, err)
	}
	return newAcquisition(ctx, within), nil
}

func boundOf(opts []DoOption) (b bound, err error) {
	err = apply(&b, opts)
	return b, err
}

// Do acquires lock, calls fn and releases the lock, even if fn panics or calls
// runtime.Goexit (Curator's Locker). Use it if one function contains the protected work.
// ctx bounds the wait and is the parent of fn's ctx.
//
// fn's ctx is cancelled, with a cause that matches ErrLockLost, as soon as the lock can
// no longer be relied on. fn should then return context.Cause(ctx), which is that loss;
// ctx.Err() is only "context canceled". Goroutines that fn starts with its ctx act as the
// owner that called Do, for this lock, the other side of a read/write lock, and the
// members of a multi lock, for as long as that owner goes on to hold anything of it. For
// every other lock each goroutine is its own owner, unless ctx carried one before
// ([WithOwner]).
//
// Do returns fn's error joined with Release's, so no loss is hidden; it waits for the
// answer to the release while ctx lasts. If ctx or [WaitAtMost] ends the wait, fn has not
// run; the error matches ErrBusy if others were ahead, or ErrUnavailable if ZooKeeper
// could not be reached, and ctx's cause, if that ended it. ErrNotOwner means that another
// caller released this hold, as any caller may with a semaphore mutex.
func Do(
	ctx context.Context, lock InterProcessLock,
	fn func(ctx context.Context, hold *Hold) error, opts ...DoOption,
) (err error) {
	a, err := newDo(ctx, "Do", lock, opts)
	switch {
	case err != nil:
		return err
	case fn == nil:
		return errors.New("recipes: Do: fn is nil")
	}
	hold, err := lock.core().acquire(a)
	if err != nil {
		return err
	}
	defer func() {
		l, _ := hold.end()
		if released := l.finish(ctx, err); released != nil {
			err = errors.Join(err, released)
		}
	}()
	if hold.isReleased() {
		return fmt.Errorf("recipes: Do: %w", errReleasedAtOnce)
	}
	within, _ := hold.context(ctx)
	return fn(within, hold)
}

// Acquire acquires lock and returns the hold, which [Hold.Release] releases, on any
// goroutine. Use it if the work does not fit into one function; otherwise use [Do], which
// cannot forget the release. Stop the work when the ctx of [Hold.Context] is done: the
// lock is lost then, or released. Errors are as for Do; with one the hold is nil, and
// nothing is held. Each call is an owner of its own: a second call waits for the first,
// even on the same goroutine. If ctx carries an owner for the lock (from WithOwner, Do or
// Hold.Context), the call is that owner's, and re-enters a reentrant lock. Methods that
// find their owner in a ctx, such as IsOwned, need the ctx of Hold.Context. See
// docs/holds.md.
func Acquire(
	ctx context.Context, lock InterProcessLock, opts ...DoOption,
) (*Hold, error) {
	a, err := newDo(ctx, "Acquire", lock, opts)
	if err != nil {
		return nil, err
	}
	a.self = aNewOwner()
	hold, err := lock.core().acquire(a)
	if err != nil {
		return nil, err
	}
	if hold.isReleased() {
		return nil, fmt.Errorf(
			"recipes: Acquire: %w", errors.Join(errReleasedAtOnce, hold.Release(ctx)),
		)
	}
	return hold, nil
}

// errReleasedAtOnce is the error of Do and Acquire if another caller has released the
// hold before they could return it.
var errReleasedAtOnce = fmt.Errorf(
	"%w: another caller released it at once", ErrNotOwner,
)
