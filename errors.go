package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// The errors that callers act on. That of a lost hold matches ErrLockLost and a cause:
// ErrSessionEnded, ErrOutOfTouch, ErrNodeDeleted, ErrHoldExpired, or, after a close by
// this process, zk.ErrConnectionClosed; later versions may add some.
var (
	// ErrNotOwner: Release by an owner that does not hold the lock.
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
	// ErrBusy: a wait ended while others were ahead: by WaitAtMost, or by ctx, whose
	// cause the error matches, too. errors.As finds a *BusyError in it.
	ErrBusy error
	// ErrUpgrade: a reader asked for the write lock; it would wait for itself forever.
	ErrUpgrade = errors.New("a read lock cannot be upgraded; release it first")
	// ErrUnavailable: a wait ended or a single attempt failed, and ZooKeeper could not be
	// reached, or could not tell, so that the state of the lock is unknown. The error of
	// each wait for a lock that ctx or a limit ended matches this or ErrBusy.
	ErrUnavailable error
)

// init and not an initializer, which go doc would show: where an error comes from is no
// part of the API.
func init() {
	ErrSessionEnded, ErrOutOfTouch = outcome.ErrSessionEnded, outcome.ErrOutOfTouch
	ErrNodeDeleted, ErrHoldExpired = znode.ErrGone, znode.ErrExpired
	ErrBusy, ErrUnavailable = wait.ErrBusy, zkconn.ErrNoAnswer
}

// A BusyError is where a wait stood that ended while others were ahead, by a limit or by
// ctx: [errors.As] finds it in the error. It matches ErrBusy.
type BusyError struct {
	Path   string // the lock's
	Behind string // the znode that the caller waited for, "" if no single one is known
	Ahead  int    // how many were ahead, as far as is known
}

// Error says how many were ahead, and behind which znode the caller stood.
func (e *BusyError) Error() string {
	if e.Behind == "" {
		return fmt.Sprintf("%s is busy: %d ahead", e.Path, e.Ahead)
	}
	return fmt.Sprintf("%s is busy: %d ahead, behind %s", e.Path, e.Ahead, e.Behind)
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// A busyWait is the end of a wait, which says itself where that stood.
type busyWait struct {
	error
	busy *BusyError
}

func (w busyWait) Unwrap() []error { return []error{w.error, w.busy} }

// explained returns what ended a wait for the lock at path, or a request for it, as
// callers receive it: it matches the cause of a ctx that has ended it, and has a
// BusyError if others were ahead.
func explained(path string, err error) error {
	var at *wait.Busy
	if errors.As(err, &at) && !errors.As(err, new(*BusyError)) {
		err = busyWait{err, &BusyError{Path: path, Behind: at.Behind, Ahead: at.Ahead}}
	}
	return outcome.WithCause(err)
}

// errNotHeld is the ErrNotOwner of a lock that has no owner, as far as one value knows.
var errNotHeld = fmt.Errorf("%w: nobody holds it through this value", ErrNotOwner)

// errAnothers is that of a lock that another owner has acquired, and not released.
var errAnothers = fmt.Errorf("%w: another owner acquired it through this value, see "+
	"WithOwner", ErrNotOwner)

// wrap adds operation and path to err, which it keeps; nil if that is nil.
func wrap(operation, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("recipes: %s %s: %w", operation, path, explained(path, err))
}

// wrapAsked is wrap for questions: one that ctx ended has no answer, so it matches
// ErrUnavailable, too. It is not for a release: ErrUnavailable of Do says that fn has not
// run.
func wrapAsked(operation, path string, err error) error {
	if outcome.Cancellation(err) != nil {
		err = fmt.Errorf("%w: %w", err, ErrUnavailable)
	}
	return wrap(operation, path, err)
}

// refuse is wrap for arguments. The error of a path that is none quotes it already.
func refuse(operation, path string, err error) error {
	if errors.Is(err, zk.ErrInvalidPath) {
		return fmt.Errorf("recipes: %s: %w", operation, err)
	}
	return wrap(operation, path, err)
}

// A loss is the error of a hold of one znode that was lost, by cause.
type loss struct {
	path  string
	cause error
}

func (l *loss) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrLockLost, l.path, l.cause)
}

func (l *loss) Unwrap() []error { return []error{ErrLockLost, l.cause} }

// isKnown tells whether err is about a loss that the error known reports already.
func isKnown(err, known error) bool {
	var l *loss
	return outcome.Cancellation(err) == nil && errors.As(err, &l) && errors.Is(known, l)
}

var (
	errNilCtx = errors.New("ctx is nil; context.Background() never ends")
	// errZero is why a nil pointer to a type, and its zero value, cannot be used.
	errZero = errors.New(
		"this is a zero value, or nil; use what a constructor returns")
)

var (
	// errZeroHold is why a nil or zero Hold holds nothing.
	errZeroHold = fmt.Errorf("%w: %w", ErrNotOwner, errZero)
	// errNoHold is what such a Hold says of its Lost, which is closed.
	errNoHold = fmt.Errorf("%w: %w", ErrLockLost, errZeroHold)
)

// notNil returns why a function cannot be called with ctx.
func notNil(ctx context.Context) error {
	if ctx == nil {
		return errNilCtx
	}
	return nil
}

// usable returns why a method cannot do its operation: path is "", since its value was
// not made by a constructor, or ctx is nil.
func usable(operation, path string, ctx context.Context) error { //nolint:revive // order
	switch {
	case path == "":
		return fmt.Errorf("recipes: %s: %w", operation, errZero)
	case ctx == nil:
		return wrap(operation, path, errNilCtx)
	}
	return nil
}
