package recipes

import (
	"context"
	"errors"
	"fmt"
)

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
