package recipes

import (
	"context"
	"errors"
	"fmt"
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
	// lock, or waits for it, just then. It waits for no holder, and at most a second: for
	// ZooKeeper, for a cached entry (WithCaching) that nobody uses to be released, and
	// for other single attempts. For those it waits twice as long as it took to join the
	// queue: one of them has the lock, or all leave. If n levels of the path are missing,
	// and 2n+1 round trips take over 0.75 s, the error matches ErrUnavailable, and the
	// levels stay for the next attempt.
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

	// core is the lock itself, which all values that are one lock have in common.
	core() core
}

// A core is what a lock is inside. That of a nil or zero lock is a nil pointer, of which
// only the first two methods can be called.
type core interface {
	// where is what an error calls it: its path, if it has one; "" of a zero value.
	where() string
	acquire(a acquisition) (*Hold, error)
	// youngest returns the hold that the caller can release: what it has acquired last,
	// lost or not; nil: there is none.
	youngest(c caller) *Hold
	// some tells whether is returns true for a hold of any owner.
	some(is func(h *Hold) bool) bool
}

// An acquisition is one call that acquires: of Do, of Acquire, or of a lock's own method.
type acquisition struct {
	caller                 // who acquires: book.lockFor finds the owner
	bound                  // for how long, and whether it waits at all (within, single)
	ctx    context.Context // of the call
	// What multi locks got and could not keep; nil: there is no multi lock.
	givenBack *[]leaving
}

// newAcquisition returns that of a lock's own method.
func newAcquisition(ctx context.Context, b bound) acquisition {
	return acquisition{caller: callerOf(ctx), bound: b, ctx: ctx}
}

// A leaving is a release that has begun: its requests are under way, and finish waits for
// the answers.
type leaving struct {
	path  string // of the lock, with which the error is wrapped; "": it is not
	err   error  // of what was not held any more
	grant *grant // what is released; nil: nothing, or parts
	// waits for the answer; set with grant
	awaitDelete func(ctx context.Context) error
	parts       []leaving // in the order in which they were acquired
}

// These are the exported methods of the same names, of all locks.

func acquireTimeout(
	ctx context.Context, lock core, timeout time.Duration,
) (bool, error) {
	_, err := lock.acquire(newAcquisition(ctx, newBound(timeout)))
	return heldOrBusy(err)
}

func release(ctx context.Context, lock core) error {
	if err := usable("release", lock.where(), ctx); err != nil {
		return err
	}
	return releaseYoungest(lock, callerOf(ctx)).finish(ctx, nil)
}

// releaseYoungest begins to release what the caller has acquired last.
func releaseYoungest(lock core, c caller) leaving {
	for {
		h := lock.youngest(c)
		if h == nil {
			err := errNotHeld
			if lock.some(func(h *Hold) bool { return !h.isReleased() }) {
				err = errAnothers
			}
			return leaving{path: lock.where(), err: err}
		}
		if l, ok := h.end(); ok { // else another caller has: there may be one before it
			return l
		}
	}
}

func holdOf(ctx context.Context, lock core) *Hold {
	if lock.where() == "" {
		return nil
	}
	return lock.youngest(callerOf(ctx))
}

func isAcquired(lock core) bool {
	return lock.where() != "" && lock.some(func(h *Hold) bool {
		return !h.isPartReleased() && h.err() == nil
	})
}

// checkLock refuses a lock that is nil, or that embeds a nil one and so has no methods.
// The error calls it what.
func checkLock(what string, lock InterProcessLock) (err error) {
	if isNil(lock) {
		return errors.New(what + " is nil")
	}
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%s: the one in a %T is nil", what, lock)
		}
	}()
	lock.core() // which is promoted, and does nothing that can panic
	return nil
}

// endAll ends holds, the last one first. Where that panics, or ends the goroutine, as a
// log handler can, the others are ended all the same.
func endAll(holds []*Hold) leaving {
	parts := make([]leaving, len(holds))
	fromLast(len(holds), func(i int) { parts[i], _ = holds[i].end() })
	return leaving{parts: parts}
}

// fromLast calls do for each of n, the last first. Where one of these calls panics, or
// ends the goroutine, the others are made all the same.
func fromLast(n int, do func(i int)) {
	defer func() {
		if n > 0 {
			fromLast(n, do)
		}
	}()
	for n > 0 {
		n--
		do(n)
	}
}

// finish waits for the answers, on behalf of a call with ctx: as long as a release may
// take, even if ctx was done before. known is an error that the caller returns, too: a
// loss that it reports is left out.
func (l leaving) finish(ctx context.Context, known error) error {
	within, cancel := forRelease(ctx)
	defer cancel()
	errs := slices.DeleteFunc(l.wait(within), func(err error) bool {
		return isKnown(err, known)
	})
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// wait waits for the answers, at most until ctx is done, tells the observer, and returns
// the errors of all parts.
func (l leaving) wait(ctx context.Context) []error {
	if l.parts != nil {
		return l.waitEach(ctx)
	}
	err := l.err
	if l.awaitDelete != nil {
		err = l.grant.tellOutcome(ctx, l.awaitDelete(ctx))
	}
	switch {
	case err == nil:
		return nil
	case l.path != "":
		err = wrap("release", l.path, err)
	}
	return []error{err}
}

func (l leaving) waitEach(ctx context.Context) (errs []error) {
	fromLast(len(l.parts), func(i int) {
		errs = append(errs, l.parts[i].wait(ctx)...)
	})
	return errs
}

// releaseWithin is how long a release waits if its ctx was done before it began: most
// likely it is answered all the same.
const releaseWithin = time.Second

// forRelease returns the ctx with which a release waits: the caller's, or if that is done
// one that lasts for releaseWithin.
func forRelease(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errReleased) { // a ctx of what is released here, most likely
		cause = context.Canceled
	}
	return context.WithTimeoutCause(context.WithoutCancel(ctx), releaseWithin, cause)
}
