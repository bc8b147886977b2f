package locktest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
)

// A LeaseLock makes a lock of n leases of a semaphore, for one owner at a time.
type LeaseLock struct {
	sem *recipes.InterProcessSemaphoreV2
	n   int

	mu     sync.Mutex // guards leases
	leases []*recipes.Lease
}

var _ recipes.InterProcessLock = (*LeaseLock)(nil)

// NewLeaseLock returns a lock of n leases.
func NewLeaseLock(sem *recipes.InterProcessSemaphoreV2, n int) *LeaseLock {
	return &LeaseLock{sem: sem, n: n}
}

// Leases returns what is held, nil where nothing is.
func (l *LeaseLock) Leases() []*recipes.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases
}

// swap puts other leases in place of those that are held, and returns these.
func (l *LeaseLock) swap(leases []*recipes.Lease) (held []*recipes.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, l.leases = l.leases, leases
	return held
}

// Acquire implements [recipes.InterProcessLock].
func (l *LeaseLock) Acquire(ctx context.Context) error {
	leases, err := l.sem.AcquireN(ctx, l.n)
	if err == nil {
		l.swap(leases)
	}
	return err
}

// AcquireTimeout implements [recipes.InterProcessLock].
func (l *LeaseLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	leases, err := l.sem.AcquireTimeout(ctx, l.n, timeout)
	if leases != nil {
		l.swap(leases)
	}
	return leases != nil, err
}

// Release implements [recipes.InterProcessLock].
func (l *LeaseLock) Release(ctx context.Context) error {
	leases := l.swap(nil)
	if leases == nil {
		return recipes.ErrNotOwner
	}
	return l.sem.ReturnAll(ctx, leases)
}

// IsAcquiredInThisProcess implements [recipes.InterProcessLock].
func (l *LeaseLock) IsAcquiredInThisProcess() bool {
	leases := l.Leases()
	isLost := func(l *recipes.Lease) bool { return l.Err() != nil }
	return leases != nil && !slices.ContainsFunc(leases, isLost)
}
