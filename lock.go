package recipes

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes/internal/session"
)

// InterProcessLock is Curator's interface of the same name. All its implementations here are safe for concurrent use.
type InterProcessLock interface {
	// Acquire blocks until the lock is held, ctx is done (its cause is returned) or ZooKeeper refuses. An outage or an
	// expired session does not end the wait (it joins the queue anew); ctx does not bound the hold.
	Acquire(ctx context.Context) error

	// AcquireTimeout waits at most timeout. (false, nil) means that the time ran out, also in an outage. A timeout of 0 or
	// less tries once and never waits for another holder (nor, in an outage, for longer than the session timeout).
	AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error)

	// Release undoes one Acquire. ctx names the owner and bounds the wait for ZooKeeper's answer, not the work: where ctx
	// ends first (or was done before: then after at most a second) it returns an error that says so, and the znode is
	// deleted in the background for as long as the session lasts. A hold that turns out to have ended before (its znode
	// gone at the first delete, another session) gives ErrLockLost, although Lost had not told yet.
	Release(ctx context.Context) error

	// IsAcquiredInThisProcess reports whether any owner holds the lock through this value.
	IsAcquiredInThisProcess() bool
}

// acquireWithin is AcquireTimeout by way of acquire, whose second argument tells it not to wait for others, and which says
// errTimeUp when it would have to.
func acquireWithin(ctx context.Context, timeout time.Duration, c session.Config, acquire func(ctx context.Context, try bool) error) (bool, error) {
	try := timeout <= 0
	if try { // then only an outage can take time
		timeout = cmp.Or(c.Timeout(), 10*time.Second)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeUp)
	defer cancel()
	err := acquire(ctx, try)
	if errors.Is(err, errTimeUp) {
		return false, nil
	}
	return err == nil, err
}

// errTimeUp is the cause of a ctx whose time ran out by AcquireTimeout's doing. Callers do not see it.
var errTimeUp = errors.New("time is up")
