package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// InterProcessLock is a lock across processes (Curator's interface of that name). Use it
// through [Do], or through [Acquire] if one function is not enough.
type InterProcessLock interface {
	// Acquire blocks until the lock is held. ctx bounds the wait, not the hold. Outages
	// and expired sessions do not end the wait: Acquire rejoins the queue. A request that
	// ZooKeeper rejects ends it. If ctx ends it, the error matches ctx's cause and says
	// where the wait stood: behind which znode and how many, or since when ZooKeeper had
	// not answered; then it also matches ErrUnavailable.
	Acquire(ctx context.Context) error
	// AcquireTimeout waits at most timeout. It returns (false, nil) if the time ran out
	// while others were ahead: a response showed them, and ZooKeeper has been reachable
	// since. Otherwise the state of the lock is unknown: the error matches ErrUnavailable
	// and says since when. (ZooKeeper is unreachable while the connection has no session,
	// and once a request is unanswered for a second; one is sent every tenth of the
	// session timeout.) A positive timeout below a round trip gives ErrUnavailable, unless
	// no request is needed.
	//
	// A timeout of 0 or less is a single attempt. It is busy only if somebody holds the
	// lock, or waits for it, just then. It waits at most a second: for no other holder,
	// only for ZooKeeper, and for a cached entry (WithCaching) that nobody uses to be
	// released. If n levels of the path are missing, and 2n+1 round trips take over 0.75 s,
	// the error matches ErrUnavailable, and the levels stay for the next attempt.
	AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error)
	// Release undoes one Acquire of ctx's owner. ctx bounds only the wait for ZooKeeper's
	// answer: if it ends first (or was done before: then after at most a second), the
	// error says so and matches ctx's cause, and the znode is deleted in the background
	// while the session lasts. ErrLockLost means that the hold had ended before (no znode
	// at the first delete, or another session), even if Lost was still open, or that it
	// was lost during the wait; then the text says "while it was being released".
	Release(ctx context.Context) error
	// IsAcquiredInThisProcess reports whether any owner holds it through this value.
	IsAcquiredInThisProcess() bool
}

// A taken is what one acquisition has got. Its release is of that alone, also where any
// caller may release the lock, or its owner acquires it a second time.
type taken struct {
	hold   *Hold            // nil of a lock that does not tell its holds
	custom InterProcessLock // what is released by its own Release; nil: by hold
}

// holder is a lock that tells its holds, as all locks here do.
type holder interface {
	Hold(ctx context.Context) *Hold
}

// tellsHolds is false of a lock that does not tell its holds, as a multi lock does not
// whose members do not.
func tellsHolds(lock InterProcessLock) bool {
	if m, isMulti := lock.(*InterProcessMultiLock); isMulti {
		return m != nil && slices.ContainsFunc(m.locks, tellsHolds)
	}
	_, tells := lock.(holder)
	return tells
}

// hasCustom tells whether lock, or a member of it, is of the caller's own kind.
func hasCustom(lock InterProcessLock) bool {
	if m, isMulti := lock.(*InterProcessMultiLock); isMulti {
		return m != nil && slices.ContainsFunc(m.locks, hasCustom)
	}
	_, own := native(lock)
	return !own
}

// release is Release.
func (t taken) release(ctx context.Context) error {
	if t.custom != nil {
		return t.custom.Release(ctx)
	}
	return t.hold.releaser.release(ctx)
}

// beginner begins that release. One of the caller's own kind has perLock to return, if
// that is not 0; if its hold is known to have been released, there is nothing to do.
func (t taken) beginner(perLock time.Duration) beginner {
	if t.custom == nil {
		return t.hold.releaser.beginRelease
	}
	return func(ctx context.Context) (finish func(context.Context) error) {
		if t.hold != nil && !t.hold.left() {
			return func(context.Context) error {
				return fmt.Errorf("recipes: release a %T: %w", t.custom, errReleased)
			}
		}
		return beginCustom(t.custom, perLock)(ctx)
	}
}

// released tells whether it, or a part of it, was released by somebody else since.
func (t taken) released() bool {
	if t.hold == nil {
		return tellsHolds(t.custom)
	}
	if s, ok := t.stand(); ok {
		return slices.ContainsFunc(s.parts, taken.released)
	}
	return !t.hold.left()
}

// stand returns what stands for all parts of it, if it has several.
func (t taken) stand() (*stand, bool) {
	if t.hold == nil {
		return nil, false
	}
	s, ok := t.hold.releaser.(*stand)
	return s, ok
}

// learn says who the owners are of all that was acquired with it.
func (t taken) learn(acquired []perLock) {
	if s, ok := t.stand(); ok {
		learned := acquired
		s.acquired.Store(&learned)
	}
}

// A nativeLock is one of this package.
type nativeLock interface {
	holder
	// self is the lock, also where it is a part of a type of the caller's own.
	self() nativeLock
	take(ctx context.Context, l bound) (taken, error)
	beginRelease(ctx context.Context) (finish func(context.Context) error)
}

// native returns lock if it is a nativeLock by itself, and not by embedding one: a type
// of the caller's own has its own methods.
func native(lock InterProcessLock) (nativeLock, bool) {
	own, ok := lock.(nativeLock)
	// A nil one of the caller's own kind has no part to ask.
	if !ok || isNil(lock) || any(own.self()) != any(lock) {
		return nil, false
	}
	return own, true
}

// ofOwner returns what ctx's owner has of a lock; false: nothing, although it would tell.
func ofOwner(ctx context.Context, lock InterProcessLock) (t taken, ok bool) {
	if _, own := native(lock); !own || !tellsHolds(lock) {
		t.custom = lock
	}
	if !tellsHolds(lock) {
		return t, true
	}
	t.hold = lock.(holder).Hold(ctx)
	return t, t.hold != nil
}

// take acquires a lock of any kind. Where the limit ends that, its error matches ErrBusy
// or ErrUnavailable, and says where the caller stood if the lock is one of this package.
func take(ctx context.Context, lock InterProcessLock, l bound) (taken, error) {
	if own, ok := native(lock); ok {
		return own.take(ctx, l)
	}
	if err := acquireCustom(ctx, lock, l); err != nil {
		return taken{}, err
	}
	t, _ := ofOwner(ctx, lock)
	return t, nil
}

func acquireCustom(ctx context.Context, lock InterProcessLock, l bound) error {
	if l == (bound{}) {
		return lock.Acquire(ctx)
	}
	var left time.Duration
	if !l.once {
		if left = time.Until(l.until); left <= 0 { // a timeout of 0 would be a try
			return fmt.Errorf("%w: %w before this lock was tried", ErrBusy, errTimeUp)
		}
	}
	held, err := lock.AcquireTimeout(ctx, left)
	if err == nil && !held {
		err = fmt.Errorf("recipes: acquire a %T: %w", lock, ErrBusy)
	}
	return err
}

// releaseWithin is what a release may take whose ctx was done before: most likely it will
// be answered all the same.
const releaseWithin = time.Second

// forRelease is ctx for as long as a release may wait that has begun.
func forRelease(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	cause := context.Cause(ctx)
	return context.WithTimeoutCause(context.WithoutCancel(ctx), releaseWithin, cause)
}

// A beginner of a release is Release but for the wait. What it returns is to be called
// once: it waits until its ctx is done, and tells the observer.
type beginner func(ctx context.Context) (finish func(context.Context) error)

// releaseOne is Release.
func releaseOne(ctx context.Context, begin beginner) error {
	finish := begin(ctx)
	if ctx == nil { // begin has refused it
		return finish(ctx)
	}
	within, cancel := forRelease(ctx)
	defer cancel()
	return finish(within)
}

// finishing is finish with what is lacking in its error.
func finishing(
	path string, finish func(context.Context) error,
) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := finish(ctx); err != nil {
			return wrap("release", path, err)
		}
		return nil
	}
}

// beginAll begins all releases, the last first, whatever becomes of each: one that
// panics, or ends the goroutine, keeps none of the others. One of the caller's own kind
// is released in its turn, and waited for.
func beginAll(
	ctx context.Context, all []beginner,
) (finish func(context.Context) []error) {
	begun := make([]func(context.Context) error, len(all))
	tellOr(func() {
		within, cancel := forRelease(ctx)
		defer cancel()
		_ = finishAll(within, begun)
	}, func() {
		fromLast(len(all), func(i int) { begun[i] = all[i](ctx) })
	})
	return func(ctx context.Context) []error { return finishAll(ctx, begun) }
}

// fromLast calls do for each of n, the last first. Where one of these calls panics, or
// ends the goroutine, the others are made all the same.
func fromLast(n int, do func(i int)) {
	if n > 0 {
		defer fromLast(n-1, do)
		do(n - 1)
	}
}

// beginJoined is beginAll with one error for all.
func beginJoined(
	ctx context.Context, all []beginner,
) (finish func(context.Context) error) {
	finishEach := beginAll(ctx, all)
	return func(ctx context.Context) error { return errors.Join(finishEach(ctx)...) }
}

// beginCustom is the beginner of a lock of the caller's own kind. It waits for its
// Release: no longer than perLock, if that is not 0.
func beginCustom(lock InterProcessLock, perLock time.Duration) beginner {
	return func(ctx context.Context) (finish func(context.Context) error) {
		if perLock > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, perLock, errGivingBack)
			defer cancel()
		}
		err := lock.Release(ctx)
		return func(context.Context) error { return err }
	}
}

// finishAll finishes what beginAll has begun, in the same order and as stubbornly.
func finishAll(ctx context.Context, begun []func(context.Context) error) []error {
	errs := make([]error, 0, len(begun))
	fromLast(len(begun), func(i int) {
		if finish := begun[i]; finish != nil { // else it never began
			errs = append(errs, finish(ctx))
		}
	})
	return errs
}

// failed is a release that has failed before it began.
func failed(err error) (finish func(context.Context) error) {
	return func(context.Context) error { return err }
}
