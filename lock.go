package recipes

import (
	"context"
	"time"
)

// InterProcessLock is Curator's interface of the same name. All its implementations here
// are safe for concurrent use.
type InterProcessLock interface {
	// Acquire blocks until the lock is held, ctx is done (its cause is returned) or
	// ZooKeeper refuses. An outage or an expired session does not end the wait (it joins
	// the queue anew); ctx does not bound the hold. An error that a ctx has caused says
	// where the wait stood: behind which znode and how many ahead, or since when
	// ZooKeeper had not answered; then it matches ErrUnavailable as well.
	Acquire(ctx context.Context) error

	// AcquireTimeout waits at most timeout. (false, nil) means that the time ran out
	// while others were ahead: an answer has shown them, and ZooKeeper was not out of
	// touch since. Where it could not be asked, so that nobody knows, the error matches
	// ErrUnavailable and says since when. A timeout of 0 or less tries once and never
	// waits for another holder, nor longer than a second for ZooKeeper. A positive
	// timeout bounds the wait for ZooKeeper's first answer, too: below a round trip it
	// always gives ErrUnavailable.
	//
	// ZooKeeper is out of touch while the connection has no session, and once a request
	// has been without an answer for a second. One is made every tenth of the session
	// timeout.
	AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error)

	// Release undoes one Acquire. ctx names the owner and bounds the wait for ZooKeeper's
	// answer, not the work: where ctx ends first (or was done before: then after at most
	// a second) it returns an error that says so and matches ctx's cause, and the znode
	// is deleted in the background for as long as the session lasts. A hold that turns
	// out to have ended before (its znode gone at the first delete, another session)
	// gives ErrLockLost, although Lost had not told yet. So does one that is lost while
	// the answer is waited for; then the text says "while it was being released".
	Release(ctx context.Context) error

	// IsAcquiredInThisProcess reports whether any owner holds the lock through this
	// value.
	IsAcquiredInThisProcess() bool
}
