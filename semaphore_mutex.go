package recipes

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// InterProcessSemaphoreMutex is Curator's mutex across processes that is not reentrant: a
// semaphore with one lease. A second Acquire by the holder waits. Any caller may release
// it: see Release.
//
// It is safe for concurrent use and needs no closing. A value may be made for each use,
// but only the one that acquired it can release it.
type InterProcessSemaphoreMutex struct {
	semaphore *InterProcessSemaphoreV2

	mu    sync.Mutex // guards what follows; not held across a call to ZooKeeper
	stays []*stay    // in the order in which they were granted: all but the last are lost
}

// A stay is a lease that was acquired and not yet released.
type stay struct {
	who   owner
	lease *Lease
	// passed on: another was granted later through the same value, which is the value's,
	// also after that one's release. Only who acquired this one can release it.
	passedOn bool
}

var _ InterProcessLock = (*InterProcessSemaphoreMutex)(nil)

// NewInterProcessSemaphoreMutex returns the mutex at path, which is created at the first
// Acquire. It asks nothing of ZooKeeper, and refuses what NewInterProcessMutex refuses.
func NewInterProcessSemaphoreMutex(
	conn Conn, path string, opts ...Option,
) (*InterProcessSemaphoreMutex, error) {
	s, err := newSemaphore(conn, path, opts)
	if err != nil {
		return nil, refuse("NewInterProcessSemaphoreMutex", path, err)
	}
	s.most, s.limit, s.steps.recipe = 1, fixedLimit(1), "semaphore mutex"
	return &InterProcessSemaphoreMutex{semaphore: s}, nil
}

// Acquire implements InterProcessLock.
func (m *InterProcessSemaphoreMutex) Acquire(ctx context.Context) error {
	return m.acquireWithin(ctx, limit{})
}

// AcquireTimeout implements InterProcessLock.
func (m *InterProcessSemaphoreMutex) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return heldOrBusy(ctx, m.acquireWithin(ctx, newLimit(timeout)))
}

func (m *InterProcessSemaphoreMutex) acquireWithin(ctx context.Context, l limit) error {
	_, err := m.semaphore.acquireWithin(ctx, 1, l, m.enter(ctx))
	return err
}

// enter returns what takes note of a lease of ctx's owner, and what takes it back.
func (m *InterProcessSemaphoreMutex) enter(ctx context.Context) keeper {
	return func(leases []*Lease) (forget func()) {
		s := &stay{who: ownerOf(ctx, m), lease: leases[0]}
		m.mu.Lock()
		defer m.mu.Unlock()
		// One that was lost before it came here may have been passed on already.
		at, _ := slices.BinarySearchFunc(m.stays, s, func(a, b *stay) int {
			return cmp.Compare(a.lease.FencingToken(), b.lease.FencingToken())
		})
		m.stays = slices.Insert(m.stays, at, s)
		for _, earlier := range m.stays[:len(m.stays)-1] {
			earlier.passedOn = true
		}
		return func() { m.forget(s) }
	}
}

// forget takes a stay off, if it is still there.
func (m *InterProcessSemaphoreMutex) forget(s *stay) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stays = slices.DeleteFunc(m.stays, func(other *stay) bool { return other == s })
}

// Release implements InterProcessLock, for any caller. A caller that has acquired the
// mutex and not released it yet releases its own hold, the earliest first, even where
// that was lost and another owner holds the mutex through the same value by now. Any
// other caller releases whatever the value holds at that moment, as in Curator: after a
// loss that can be the next holder's. ErrNotOwner says that there is nothing to release.
func (m *InterProcessSemaphoreMutex) Release(ctx context.Context) error {
	return releaseOne(ctx, m)
}

// beginRelease implements releaser.
func (m *InterProcessSemaphoreMutex) beginRelease(
	ctx context.Context,
) (finish func(context.Context) error) {
	who := ownerOf(ctx, m)
	m.mu.Lock()
	s := m.stayLocked(who, isOwnOnly(ctx))
	m.stays = slices.DeleteFunc(m.stays, func(other *stay) bool { return other == s })
	m.mu.Unlock()
	if s == nil {
		return func(context.Context) error {
			return wrap("release", m.semaphore.path, errNotHeld)
		}
	}
	return s.lease.beginRelease(ctx)
}

// stayLocked returns the owner's stay, or else, unless only that is meant, the value's;
// nil where there is none. It is called with mu held.
func (m *InterProcessSemaphoreMutex) stayLocked(who owner, ownOnly bool) *stay {
	at := slices.IndexFunc(m.stays, func(s *stay) bool { return s.who == who })
	if at >= 0 {
		return m.stays[at]
	}
	if last := len(m.stays) - 1; last >= 0 && !ownOnly && !m.stays[last].passedOn {
		return m.stays[last]
	}
	return nil
}

// Hold returns the hold that Release would release: the one that ctx's owner has acquired
// and not released, lost or not, and for any other caller the value's. It is nil where
// there is none.
func (m *InterProcessSemaphoreMutex) Hold(ctx context.Context) *Hold {
	who := ownerOf(ctx, m)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.stayLocked(who, isOwnOnly(ctx)); s != nil {
		return s.lease.hold
	}
	return nil
}

// holdOf implements ownedLock.
func (m *InterProcessSemaphoreMutex) holdOf(who owner) *Hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.stayLocked(who, true); s != nil {
		return s.lease.hold
	}
	return nil
}

// ownerKey implements ownedLock.
func (m *InterProcessSemaphoreMutex) ownerKey() any { return m }

// IsAcquiredInThisProcess reports whether the mutex is held through this value. One that
// is lost is not held.
func (m *InterProcessSemaphoreMutex) IsAcquiredInThisProcess() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.stays, func(s *stay) bool {
		return s.lease.Err() == nil
	})
}
