package recipes

import (
	"context"
	"time"
)

// A releaser is a lock whose release can begin before anybody waits for it.
type releaser interface {
	// beginRelease is Release but for the wait. finish, to be called once, waits until
	// its ctx is done, and tells the observer.
	beginRelease(ctx context.Context) (finish func(ctx context.Context) error)
}

// releaserOf returns lock if it is a releaser by itself, and not by embedding one whose
// Release may be another.
func releaserOf(lock InterProcessLock) (releaser, bool) {
	switch lock := lock.(type) {
	case *InterProcessMutex:
		return lock, true
	case *ReadLock:
		return lock, true
	case *WriteLock:
		return lock, true
	case *InterProcessSemaphoreMutex:
		return lock, true
	case *InterProcessMultiLock:
		return lock, true
	}
	return nil, false
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

// releaseOne is Release.
func releaseOne(ctx context.Context, lock releaser) error {
	finish := lock.beginRelease(ctx)
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

// beginAll begins to release locks, the last first, whatever becomes of each: one that
// panics, or ends the goroutine, keeps none of the others. One of the caller's own kind
// is released in its turn, and waited for: no longer than share, if that is not 0.
func beginAll(
	ctx context.Context, locks []InterProcessLock, share time.Duration,
) (finish func(context.Context) []error) {
	begun := make([]func(context.Context) error, len(locks))
	tellOr(func() {
		within, cancel := forRelease(ctx)
		defer cancel()
		_ = finishAll(within, begun)
	}, func() {
		for i, lock := range locks {
			defer func() { begun[i] = beginOne(ctx, lock, share) }()
		}
	})
	return func(ctx context.Context) []error { return finishAll(ctx, begun) }
}

// beginOne begins to release a lock of any kind.
func beginOne(
	ctx context.Context, lock InterProcessLock, share time.Duration,
) (finish func(context.Context) error) {
	if r, ok := releaserOf(lock); ok {
		return r.beginRelease(ctx)
	}
	if share > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, share, errGivingBack)
		defer cancel()
	}
	err := lock.Release(ownOnlyFor(ctx, lock))
	return func(context.Context) error { return err }
}

// finishAll finishes what beginAll has begun, in the same order and as stubbornly.
func finishAll(ctx context.Context, begun []func(context.Context) error) (errs []error) {
	for _, finish := range begun {
		if finish != nil {
			defer func() { errs = append(errs, finish(ctx)) }()
		}
	}
	return make([]error, 0, len(begun))
}
