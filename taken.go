package recipes

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A taken is what one acquisition has got: its hold and its release are of that alone,
// also where any caller may release the lock, or its owner acquires it a second time.
type taken struct {
	// hold returns what was acquired, nil where that was released since; it is nil itself
	// for a lock that does not tell its holds.
	hold    func(ctx context.Context) *Hold
	begin   beginner         // of its release; nil for a lock of the caller's own kind
	foreign InterProcessLock // such a lock
}

// holder is a lock that tells its holds, as all locks here do.
type holder interface {
	Hold(ctx context.Context) *Hold
}

// tellsHolds is false of a lock that does not tell its holds, as a multi lock does not
// whose members do not.
func tellsHolds(lock InterProcessLock) bool {
	if m, isMulti := lock.(*InterProcessMultiLock); isMulti {
		return slices.ContainsFunc(m.locks, tellsHolds)
	}
	_, tells := lock.(holder)
	return tells
}

// release is Release.
func (t taken) release(ctx context.Context) error {
	if t.begin != nil {
		return releaseOne(ctx, t.begin)
	}
	return t.foreign.Release(ctx)
}

// A nativeLock is one of this package.
type nativeLock interface {
	holder
	acquireWithin(ctx context.Context, l limit) error
	beginRelease(ctx context.Context) (finish func(context.Context) error)
}

// native returns lock if it is a nativeLock by itself, and not by embedding one: a type
// of the caller's own has its own methods.
func native(lock InterProcessLock) (nativeLock, bool) {
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

// ofOwner returns lock as the owner has it who asks for it, or releases it.
func ofOwner(lock InterProcessLock) (t taken) {
	if own, ok := native(lock); ok {
		t.begin = own.beginRelease
	} else {
		t.foreign = lock
	}
	if tellsHolds(lock) {
		t.hold = lock.(holder).Hold
	}
	return t
}

// take acquires a lock of any kind. Where the limit ends that, its error matches ErrBusy
// or ErrUnavailable, and says where the caller stood if the lock is one of this package.
func take(ctx context.Context, lock InterProcessLock, l limit) (taken, error) {
	switch lock := lock.(type) {
	case *InterProcessSemaphoreMutex:
		return lock.take(ctx, l)
	case *InterProcessMultiLock:
		return lock.take(ctx, l)
	}
	if own, ok := native(lock); ok {
		err := own.acquireWithin(ctx, l)
		return ofOwner(lock), err
	}
	err := acquireForeign(ctx, lock, l)
	return ofOwner(lock), err
}

func acquireForeign(ctx context.Context, lock InterProcessLock, l limit) error {
	if l == (limit{}) {
		return lock.Acquire(ctx)
	}
	var left time.Duration
	if !l.once {
		if left = time.Until(l.until); left <= 0 { // a timeout of 0 would be a try
			return fmt.Errorf("%w: %w before it was asked for", ErrBusy, errTimeUp)
		}
	}
	held, err := lock.AcquireTimeout(ctx, left)
	if err == nil && !held {
		err = fmt.Errorf("recipes: acquire a %T: %w", lock, ErrBusy)
	}
	return err
}
