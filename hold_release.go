package recipes

import (
	"cmp"
	"context"
	"fmt"
)

// A releaser undoes the acquisitions that a hold stands for.
type releaser interface {
	// beginRelease is a beginner. It undoes one of them, and nothing that was acquired
	// since; with none left, the error matches ErrNotOwner.
	beginRelease(ctx context.Context) (finish func(context.Context) error)
	// left tells whether one is left to undo, lost or not.
	left() bool
	// shares is for whom a ctx stands that carries the hold's owner.
	shares() []share
}

// errReleased is the ErrNotOwner of a hold with nothing left to undo.
var errReleased = fmt.Errorf("%w: the hold was released before", ErrNotOwner)

// name is what an error calls the hold.
func (h *Hold) name() string { return cmp.Or(h.path, "a hold") }

// left tells whether there is anything left to undo. A Hold that is none has nothing.
func (h *Hold) left() bool { return h.releaser != nil && h.releaser.left() }

// Release undoes one acquisition of the hold's owner. Use it to release what Acquire has
// returned. It may be called on any goroutine and with any ctx: the owner is the hold's,
// whichever ctx carries. In all else it is the lock's own Release: ctx bounds the wait
// for ZooKeeper's answer, not the work, and goes to the observer.
//
// Acquisitions that share the hold, such as re-entries, are counted, not told apart: one
// release too many of an inner acquisition undoes an outer one. Each is undone once, by
// Release of the hold or of the lock. If there is none left to undo, also because another
// caller has released the lock, Release returns ErrNotOwner and leaves alone whatever was
// acquired since, by the same owner as well. After a loss it returns ErrLockLost once for
// each acquisition, and then ErrNotOwner.
//
//   - The hold of a multi lock undoes one acquisition of each member, and returns all
//     errors joined. So one of two releases at the same time can find some members left,
//     and the other one the rest. A custom member is released if any other is left to
//     undo, or if Acquire has returned the hold.
//   - The hold that Acquire returned for a custom InterProcessLock calls the lock's
//     Release, once.
//   - The hold of a lease returns that lease.
//   - Do releases one acquisition, as this method does. If fn has released it before, and
//     its owner had not acquired the lock elsewhere, Do's error matches ErrNotOwner.
//   - A term of an election is not for the caller to release: it returns ErrNotOwner.
//
// Release of a nil Hold, and of one that was not acquired, returns ErrNotOwner. With a
// nil ctx it returns an error and releases nothing. It is safe for concurrent use.
func (h *Hold) Release(ctx context.Context) error {
	switch {
	case h == nil || h.releaser == nil:
		return fmt.Errorf("recipes: release a hold: %w", errZeroHold)
	case ctx == nil:
		return fmt.Errorf("recipes: release a hold: %w", errNilCtx)
	}
	return releaseOne(ctx, h.releaser.beginRelease)
}
