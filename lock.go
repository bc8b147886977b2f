package recipes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// InterProcessLock is a lock across processes (Curator's interface of that name). Use it
// through [Do], or through [Acquire] if one function is not enough. Only this package
// implements it; a mock needs an interface of your own, with the methods that you use.
type InterProcessLock interface {
	// Acquire blocks until the lock is held. ctx bounds the wait, not the hold. Outages
	// and expired sessions do not end the wait: Acquire rejoins the queue. A request that
	// ZooKeeper rejects ends it. If ctx ends it, the error matches ctx's cause, and also
	// ErrBusy, with a *BusyError that says where the wait stood, or ErrUnavailable.
	Acquire(ctx context.Context) error
	// AcquireTimeout waits at most timeout. It returns (false, nil) if the time ran out
	// while others were ahead: a response showed them, and ZooKeeper has been reachable
	// since. Otherwise the state of the lock is unknown: the error matches
	// ErrUnavailable. If ctx ends it, the error is as Acquire's. (ZooKeeper is
	// unreachable while the connection has no session, and once a request is unanswered
	// for a second. One is sent every tenth of the session timeout or, if two or more
	// have to go first, shortly before the time runs out.) A positive timeout below a
	// round trip gives ErrUnavailable, unless no request is needed.
	//
	// A timeout of 0 or less is a single attempt. It is busy only if somebody holds the
	// lock, or waits for it, just then. It waits at most a second: for no other holder,
	// only for ZooKeeper, for a cached entry (WithCaching) that nobody uses to be
	// released, and for other single attempts twice as long as it took to join the queue:
	// one of them has the lock, or all leave. If n levels of the path are missing, and
	// 2n+1 round trips take over 0.75 s, the error matches ErrUnavailable, and the levels
	// stay for the next attempt.
	AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error)
	// Release ends the youngest acquisition of ctx's owner. ctx bounds only the wait for
	// ZooKeeper's answer: if it ends first (or was done before: then after at most a
	// second), the error says so and matches ctx's cause, and the znode is deleted in the
	// background while the session lasts. ErrLockLost means that the hold had ended
	// before (no znode at the first delete, or another session), even if Lost was still
	// open, or that it was lost during the wait.
	Release(ctx context.Context) error
	// IsAcquiredInThisProcess reports whether any owner holds it through this value.
	IsAcquiredInThisProcess() bool
	// Hold returns what ctx's owner has acquired last and not released, lost or not, or
	// nil if there is nothing.
	Hold(ctx context.Context) *Hold

	// acquire is Acquire for Do, Acquire, and multi locks.
	acquire(a acquisition) (*Hold, error)
	// identity is the same for all values that are one lock.
	identity() any
}

// isNil tells of nil, and of a nil pointer in an interface.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// An acquisition is one call that acquires: of Do, of Acquire, or of a lock's own method.
type acquisition struct {
	caller                 // who acquires: lock finds the owner
	bound                  // for how long, and whether it waits at all (within, once)
	ctx    context.Context // of the call
	given  *[]leaving      // what multi locks could not keep; nil: none is acquired
}

// newAcquisition returns that of a lock's own method.
func newAcquisition(ctx context.Context, l bound) acquisition {
	return acquisition{caller: callerOf(ctx), bound: l, ctx: ctx}
}

// giveBackWithin is what a caller who did not get all members can spare for giving back
// those that it got.
const giveBackWithin = 80 * time.Millisecond

var errGivingBack = errors.New(
	"not all members were acquired, and there is no time to wait for the release of " +
		"those that were",
)

// giveBack begins to release what a multi lock has acquired and cannot keep.
func (a acquisition) giveBack(members []*Hold) {
	*a.given = append(*a.given, endAll(members))
}

// awaitGiven waits a short time for what was given back, also in an outage. What is not
// confirmed by then goes on in the background, and is no error. Nor is that a member was
// lost before.
func (a acquisition) awaitGiven() error {
	if len(*a.given) == 0 {
		return nil
	}
	all := leaving{parts: *a.given}
	*a.given = nil
	ctx, cancel := context.WithTimeoutCause(
		context.WithoutCancel(a.ctx), giveBackWithin, errGivingBack,
	)
	defer cancel()
	noMatter := []error{errGivingBack, context.DeadlineExceeded, ErrLockLost}
	errs := slices.DeleteFunc(all.waitEach(ctx), func(err error) bool {
		return slices.ContainsFunc(noMatter, func(e error) bool {
			return errors.Is(err, e)
		})
	})
	return errors.Join(errs...)
}

// afterGivingBack is the error of an acquisition that has failed.
func (a acquisition) afterGivingBack(err error) error {
	switch back := a.awaitGiven(); {
	case back == nil:
		return err
	case endedByLimit(err): // it would hide the other
		return back
	default:
		return errors.Join(err, back)
	}
}

// A leaving is a release that has begun: its requests are under way, and finish waits for
// the answers.
type leaving struct {
	path  string // of the lock, for the error; "": it has that already
	err   error  // of what was not held any more
	grant *grant // what is released; nil: nothing, or parts
	// waits for the answer to the delete; set with grant
	left  func(ctx context.Context) error
	parts []leaving // in the order in which they were acquired
}

// endAll ends records, the last one first. Where that panics, or ends the goroutine, as a
// log handler can, the others are ended all the same.
func endAll(holds []*Hold) leaving {
	parts := make([]leaving, len(holds))
	fromLast(len(holds), func(i int) { parts[i] = holds[i].keeper.end(holds[i]) })
	return leaving{parts: parts}
}

// fromLast calls do for each of n, the last first. Where one of these calls panics, or
// ends the goroutine, the others are made all the same.
func fromLast(n int, do func(i int)) {
	if n > 0 {
		defer fromLast(n-1, do)
		do(n - 1)
	}
}

// finish waits for the answers, on behalf of a call with ctx: as long as a release may
// take, even if ctx was done before.
func (l leaving) finish(ctx context.Context) error {
	if l.left == nil && l.parts == nil { // no answer is due
		return l.wait(ctx)
	}
	within, cancel := forRelease(ctx)
	defer cancel()
	return l.wait(within)
}

// wait waits for the answers, at most until ctx is done, and tells the observer.
func (l leaving) wait(ctx context.Context) (err error) {
	switch {
	case l.parts != nil:
		return errors.Join(l.waitEach(ctx)...)
	case l.left != nil:
		err = l.grant.tellLeft(ctx, l.left(ctx))
	default:
		err = l.err
	}
	if err != nil && l.path != "" {
		err = wrap("release", l.path, err)
	}
	return err
}

// waitEach returns the errors of all parts.
func (l leaving) waitEach(ctx context.Context) []error {
	errs := make([]error, 0, len(l.parts))
	fromLast(len(l.parts), func(i int) {
		if part := l.parts[i]; part.parts != nil {
			errs = append(errs, part.waitEach(ctx)...)
		} else if err := part.wait(ctx); err != nil {
			errs = append(errs, err)
		}
	})
	return errs
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

// errReleasedAtOnce is what Do and Acquire say of what they do not have any more.
var errReleasedAtOnce = fmt.Errorf(
	"%w: another caller released it at once", ErrNotOwner,
)
