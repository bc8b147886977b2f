package recipes

import (
	"context"
	"slices"
	"sync"
	"time"
)

// InterProcessSemaphoreMutex is Curator's mutex across processes that is not reentrant: a semaphore with one lease. An Acquire by
// who holds it already waits. Any caller may release it.
//
// It is safe for concurrent use, needs no closing and may be made anew for each use.
type InterProcessSemaphoreMutex struct {
	semaphore *InterProcessSemaphoreV2

	mu    sync.Mutex // guards what follows; not held across a call to ZooKeeper
	stays []stay
}

// A stay is a lease that was acquired and not yet released. All but the last are lost.
type stay struct {
	who   owner
	lease *Lease
}

var _ InterProcessLock = (*InterProcessSemaphoreMutex)(nil)

// NewInterProcessSemaphoreMutex returns the mutex at path, which is created at the first Acquire. It asks nothing of ZooKeeper, and
// refuses what NewInterProcessMutex refuses.
func NewInterProcessSemaphoreMutex(conn Conn, path string, opts ...Option) (*InterProcessSemaphoreMutex, error) {
	s, err := newSemaphore(conn, path, opts)
	if err != nil {
		return nil, wrap("NewInterProcessSemaphoreMutex", path, err)
	}
	s.most, s.limit = 1, fixedLimit(1)
	return &InterProcessSemaphoreMutex{semaphore: s}, nil
}

// Acquire implements InterProcessLock.
func (m *InterProcessSemaphoreMutex) Acquire(ctx context.Context) error {
	lease, err := m.semaphore.Acquire(ctx)
	m.enter(ctx, lease)
	return err
}

// AcquireTimeout implements InterProcessLock.
func (m *InterProcessSemaphoreMutex) AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error) {
	leases, err := m.semaphore.AcquireTimeout(ctx, 1, timeout)
	if len(leases) == 0 {
		return false, err
	}
	m.enter(ctx, leases[0])
	return true, nil
}

func (m *InterProcessSemaphoreMutex) enter(ctx context.Context, lease *Lease) {
	if lease == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := len(m.stays)
	if at > 0 && lease.Err() != nil { // lost before it came here: somebody else may have entered with the next one
		at--
	}
	m.stays = slices.Insert(m.stays, at, stay{ownerOf(ctx), lease})
}

// Release implements InterProcessLock, for any caller; ErrNotOwner says that the mutex is not held. Who acquired a hold that was lost
// meanwhile, and has passed to somebody else through the same value, releases the one that was lost.
func (m *InterProcessSemaphoreMutex) Release(ctx context.Context) error {
	lease := m.leave(ownerOf(ctx))
	if lease == nil {
		return wrap("release", m.semaphore.path, ErrNotOwner)
	}
	return lease.Release(ctx)
}

// leave takes the caller's stay off, or else the last.
func (m *InterProcessSemaphoreMutex) leave(who owner) *Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.stays) == 0 {
		return nil
	}
	at := slices.IndexFunc(m.stays, func(s stay) bool { return s.who == who })
	if at < 0 {
		at = len(m.stays) - 1
	}
	lease := m.stays[at].lease
	m.stays = slices.Delete(m.stays, at, at+1)
	return lease
}

// Hold returns the hold of the value, whoever asks; nil where it is not held.
func (m *InterProcessSemaphoreMutex) Hold(context.Context) *Hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.stays) == 0 {
		return nil
	}
	if hold := m.stays[len(m.stays)-1].lease.hold; hold.Err() == nil {
		return hold
	}
	return nil
}

// IsAcquiredInThisProcess reports whether the mutex is held through this value. One that is lost is not held.
func (m *InterProcessSemaphoreMutex) IsAcquiredInThisProcess() bool {
	return m.Hold(context.Background()) != nil
}
