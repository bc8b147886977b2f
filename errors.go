package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// The errors that callers act on. That of a lost hold matches ErrLockLost and exactly one
// cause: ErrSessionEnded, ErrOutOfTouch, ErrNodeDeleted, ErrHoldExpired, or, after a
// close by this process, zk.ErrConnectionClosed.
var (
	// ErrNotOwner: Release by an owner that does not hold the lock. The text says whether
	// another one holds it through this value.
	ErrNotOwner = errors.New("not the owner of the lock")
	// ErrLockLost: a hold ended under its owner. Work that the lock protected may have
	// overlapped with another holder's.
	ErrLockLost = errors.New("the lock was lost")
	// ErrSessionEnded: the hold's session has ended; the connection has another or none.
	ErrSessionEnded error
	// ErrOutOfTouch: the servers did not confirm in time that the session lives, or its
	// timeout turned out to be too short for their tick. Whether it has ended is unknown.
	ErrOutOfTouch error
	// ErrNodeDeleted: the hold's znode was deleted: by somebody, or by the servers at the
	// session's end, if this process saw that first.
	ErrNodeDeleted error
	// ErrHoldExpired: the hold reached the limit set by WithMaxHold.
	ErrHoldExpired error
	// ErrBusy: the time of WaitAtMost ran out while others were ahead. The text says how
	// many, and behind which znode the caller stood.
	ErrBusy = errors.New("lock is busy: others are ahead")
	// ErrUpgrade: a reader asked for the write lock; it would wait for itself forever.
	ErrUpgrade = errors.New("a read lock cannot be upgraded; release it first")
	// ErrUnavailable: a wait ended or a single attempt failed, and ZooKeeper could not be
	// reached, so that the state of the lock is unknown. The text says since when.
	ErrUnavailable error
)

// init and not an initializer, which go doc would show: where an error comes from is no
// part of the API.
func init() {
	ErrSessionEnded, ErrOutOfTouch = outcome.ErrSessionEnded, outcome.ErrSuspended
	ErrNodeDeleted, ErrHoldExpired = znode.ErrGone, znode.ErrExpired
	ErrUnavailable = zkconn.ErrNoAnswer
}

// errNotHeld is the ErrNotOwner of a lock that has no owner, as far as one value knows.
var errNotHeld = fmt.Errorf("%w: nobody holds it through this value", ErrNotOwner)

// wrap adds operation and path to err, which it keeps.
func wrap(operation, path string, err error) error {
	return fmt.Errorf("recipes: %s %s: %w", operation, path, outcome.WithCause(err))
}

// refuse is wrap for arguments. The error of a path that is none quotes it already.
func refuse(operation, path string, err error) error {
	if errors.Is(err, zk.ErrInvalidPath) {
		return fmt.Errorf("recipes: %s: %w", operation, err)
	}
	return wrap(operation, path, err)
}

// lost is what a hold of path tells that ended by cause.
func lost(path string, cause error) error {
	return fmt.Errorf("%w: %s: %w", ErrLockLost, path, cause)
}

var (
	errNilCtx = errors.New("ctx is nil; context.Background() never ends")
	// errZero is why the zero value of a type cannot be used.
	errZero = errors.New("this is a zero value; use what a constructor returns")
)

// errZeroHold is why the zero Hold holds nothing.
var errZeroHold = fmt.Errorf("%w: %w", ErrNotOwner, errZero)

// notNil returns why a function cannot be called with ctx.
func notNil(ctx context.Context) error {
	if ctx == nil {
		return errNilCtx
	}
	return nil
}

// usable returns why a method cannot do its operation: its value was not made by a
// constructor, as path, which is "" then, tells, or ctx is nil.
func usable(operation, path string, ctx context.Context) error { //nolint:revive // order
	switch {
	case path == "":
		return fmt.Errorf("recipes: %s: %w", operation, errZero)
	case ctx == nil:
		return wrap(operation, path, errNilCtx)
	}
	return nil
}
