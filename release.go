package recipes

import (
	"context"
	"errors"
	"time"
)

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
		for i, begin := range all {
			defer func() { begun[i] = begin(ctx) }()
		}
	})
	return func(ctx context.Context) []error { return finishAll(ctx, begun) }
}

// beginJoined is beginAll with one error for all.
func beginJoined(
	ctx context.Context, all []beginner,
) (finish func(context.Context) error) {
	finishEach := beginAll(ctx, all)
	return func(ctx context.Context) error { return errors.Join(finishEach(ctx)...) }
}

// beginCustom is the beginner of a lock of the caller's own kind. It waits for its
// Release: no longer than share, if that is not 0.
func beginCustom(lock InterProcessLock, share time.Duration) beginner {
	return func(ctx context.Context) (finish func(context.Context) error) {
		if share > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, share, errGivingBack)
			defer cancel()
		}
		err := lock.Release(ctx)
		return func(context.Context) error { return err }
	}
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
