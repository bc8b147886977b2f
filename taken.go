package recipes

import (
	"context"
	"fmt"
	"slices"
	"time"
)

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
	return releaseOne(ctx, t.hold.releaser.beginRelease)
}

// beginner begins that release. One of the caller's own kind has share to return, if that
// is not 0; if its hold is known to have been released, there is nothing to do.
func (t taken) beginner(share time.Duration) beginner {
	if t.custom == nil {
		return t.hold.releaser.beginRelease
	}
	return func(ctx context.Context) (finish func(context.Context) error) {
		if t.hold != nil && !t.hold.left() {
			return func(context.Context) error {
				return fmt.Errorf("recipes: release a %T: %w", t.custom, errReleased)
			}
		}
		return beginCustom(t.custom, share)(ctx)
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
func (t taken) learn(acquired []share) {
	if s, ok := t.stand(); ok {
		s.acquired.Store(&acquired)
	}
}

// A nativeLock is one of this package.
type nativeLock interface {
	holder
	take(ctx context.Context, l limit) (taken, error)
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
	case *leaseLock:
		return lock, true
	case *InterProcessMultiLock:
		return lock, true
	}
	return nil, false
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
func take(ctx context.Context, lock InterProcessLock, l limit) (taken, error) {
	if own, ok := native(lock); ok {
		return own.take(ctx, l)
	}
	if err := acquireCustom(ctx, lock, l); err != nil {
		return taken{}, err
	}
	t, _ := ofOwner(ctx, lock)
	return t, nil
}

func acquireCustom(ctx context.Context, lock InterProcessLock, l limit) error {
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
