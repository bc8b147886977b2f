package recipes

import (
	"cmp"
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

// acquireFor is what Do and Acquire share. If ctx carries no owner for the lock, self is
// the owner; if that is zero, the calling goroutine.
func acquireFor(
	ctx context.Context, op string, lock InterProcessLock, opts []DoOption, self owner,
) (*Hold, error) {
	var b bound
	err := cmp.Or(notNil(ctx), checkLock("lock", lock))
	if err == nil && len(opts) > 0 {
		b, err = boundOf(opts)
	}
	if err != nil {
		return nil, fmt.Errorf("recipes: %s: %w", op, err)
	}
	a := newAcquisition(ctx, b)
	a.self = self
	hold, err := lock.core().acquire(a)
	if err == nil && hold.isPartReleased() {
		err = fmt.Errorf(
			"recipes: %s: %w: another caller released it at once", op, ErrNotOwner)
		return nil, errors.Join(err, hold.Release(ctx))
	}
	return hold, err
}

// boundOf is a function of its own, so that only a call with options has a bound on the
// heap.
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
	if fn == nil {
		return errors.New("recipes: Do: fn is nil")
	}
	hold, err := acquireFor(ctx, "Do", lock, opts, owner{})
	if err != nil {
		return err
	}
	defer func() {
		l, _ := hold.end()
		if released := l.finish(ctx, err); released != nil {
			err = errors.Join(err, released)
		}
	}()
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
	return acquireFor(ctx, "Acquire", lock, opts, aNewOwner())
}
