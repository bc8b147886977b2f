package recipes

import (
	"context"
	"time"
)

// InterProcessSemaphoreMutex is Curator's mutex across processes that is not reentrant: a
// semaphore with one lease. A second Acquire by the holder waits. Use it if a caller
// other than the one that acquired it may release it: any caller may, through the value
// that acquired it (see Release).
type InterProcessSemaphoreMutex struct {
	lock *leaseLock
}

var _ InterProcessLock = (*InterProcessSemaphoreMutex)(nil)

// NewInterProcessSemaphoreMutex returns the mutex at path.
func NewInterProcessSemaphoreMutex(
	conn Conn, path string, opts ...Option,
) (*InterProcessSemaphoreMutex, error) {
	s, err := newSemaphore(conn, path, opts)
	if err != nil {
		return nil, refuse("NewInterProcessSemaphoreMutex", path, err)
	}
	s.fixedMax, s.reporter.recipe = 1, "semaphore mutex"
	return &InterProcessSemaphoreMutex{newLeaseLock(s, 1)}, nil
}

// inner is nil of a nil InterProcessSemaphoreMutex, and of a zero one.
func (l *InterProcessSemaphoreMutex) inner() *leaseLock {
	if l == nil {
		return nil
	}
	return l.lock
}

// Acquire implements InterProcessLock. It waits even if its owner holds the mutex.
func (l *InterProcessSemaphoreMutex) Acquire(ctx context.Context) error {
	_, err := l.inner().acquire(newAcquisition(ctx, bound{}))
	return err
}

// AcquireTimeout implements InterProcessLock.
func (l *InterProcessSemaphoreMutex) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return acquireTimeout(ctx, l.inner(), timeout)
}

// Release implements InterProcessLock, for any caller. A caller that acquired the mutex
// and has not released it yet releases its own hold, even if that was lost and another
// owner holds the mutex now. Any other caller releases what the value holds at that
// moment, as in Curator: after a loss that can be the next holder's. If nothing is held,
// it gets ErrNotOwner.
func (l *InterProcessSemaphoreMutex) Release(ctx context.Context) error {
	return release(ctx, l.inner())
}

// IsAcquiredInThisProcess implements InterProcessLock; false after a loss.
func (l *InterProcessSemaphoreMutex) IsAcquiredInThisProcess() bool {
	return isAcquired(l.inner())
}

// Hold returns the hold that Release would release, lost or not, or nil if there is none:
// that of ctx's owner, or else the value's.
func (l *InterProcessSemaphoreMutex) Hold(ctx context.Context) *Hold {
	return holdOf(ctx, l.inner())
}

func (l *InterProcessSemaphoreMutex) core() core { return l.inner() }
