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

// Acquire acquires lock and returns the hold, which Hold.Release releases, on any
// goroutine. Use it if the work does not fit into one function; otherwise use Do, which
// cannot forget the release.
//
// ctx bounds the wait, not the hold. It ends as InterProcessLock.Acquire does; with
// WaitAtMost the error matches ErrBusy if the time ran out while others were ahead, and
// ErrUnavailable if ZooKeeper could not be reached. With an error the hold is nil, and
// nothing is held. The work is to stop when the ctx of Hold.Context is done: the lock is
// lost then.
//
// Each call is an owner of its own, whatever goroutine makes it. So two calls exclude
// each other: a second one waits for the first, on the same goroutine as well, and also
// waits for what the goroutine has acquired by other means. If ctx carries an owner for
// the lock, from WithOwner, from Do or from Hold.Context, then the call is that owner's:
// it re-enters a reentrant lock, and returns the same hold. The lock's methods that find
// their owner in a ctx, such as Hold, IsOwned and Release, find the hold with the ctx of
// Hold.Context, and not with a ctx without an owner that Acquire was given.
//
// Any caller may release a semaphore mutex, and a lock of AsLock. Then Hold.Release
// returns ErrNotOwner, and leaves the next owner's alone. If that happens before Acquire
// returns, Acquire returns ErrNotOwner, and releases what is left of a multi lock.
//
// The hold of a custom InterProcessLock stands for that one acquisition: Release calls
// the lock's own Release, with a ctx that carries the owner for all locks of this package
// that are behind it. If the lock has a method Hold(context.Context) *Hold, the hold is
// lost with that one, and has its token and path; a nil Hold of a lock that was just
// acquired means that another caller has released it. Without that method nothing is
// known of the lock: the hold's FencingToken is 0, Path is "", Lost never closes, and
// Multi returns an error. In its own Acquire a custom lock calls the methods of the locks
// behind it with the ctx that it is given. Do and Acquire with that ctx, there and in an
// observer, act for another owner, and can wait for the call that they are in.
//
// A nil ctx, lock or option is an error, before anything is acquired. If an observer
// panics, or ends the goroutine, nothing is held.
func Acquire(
	ctx context.Context, lock InterProcessLock, opts ...DoOption,
) (*Hold, error) {
	settings, err := newDoSettings(ctx, "Acquire", lock, opts)
	if err != nil {
		return nil, err
	}
	got, acquired, err := takeShared(ctx, lock, settings.limit(), aNewOwner)
	if err != nil {
		return nil, err
	}
	if got.released() {
		err := errors.Join(errReleasedAtOnce, got.release(withShares(ctx, acquired)))
		return nil, fmt.Errorf("recipes: Acquire: %w", err)
	}
	if got.custom != nil {
		got = standForOnce(got)
	}
	got.learn(acquired)
	if outer := ownersOf(ctx).pending; outer != nil {
		outer.include(acquired)
	}
	return got.hold, nil
}
