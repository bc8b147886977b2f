package recipes

import (
	"errors"
	"fmt"
)

var (
	// ErrNotOwner says that Release was called by an owner that does not hold the lock.
	ErrNotOwner = errors.New("not the owner of the lock")

	// ErrLockLost says that a hold ended under its owner: the session expired, the znode was deleted, the connection was closed,
	// or ZooKeeper was out of touch for too long. Work that the lock protected may have overlapped with another holder's.
	ErrLockLost = errors.New("the lock was lost")

	// ErrBusy says that Do gave up waiting, as WaitAtMost told it to: others were ahead.
	ErrBusy = errors.New("others were ahead")

	// ErrUpgrade says that a read lock's holder asked for the write lock: it would wait for itself for ever.
	ErrUpgrade = errors.New("a read lock cannot be upgraded to a write lock")
)

// wrap adds operation and path to err, which it keeps.
func wrap(operation, path string, err error) error {
	return fmt.Errorf("recipes: %s %s: %w", operation, path, err)
}

// lost is what a hold of path tells that ended by cause.
func lost(path string, cause error) error {
	return fmt.Errorf("%w: %s: %w", ErrLockLost, path, cause)
}
