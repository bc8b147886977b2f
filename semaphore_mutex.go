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
	_, err := m.take(ctx, l)
	return err
}

// take acquires the mutex. What it has taken is one stay, whoever the owner is.
func (m *InterProcessSemaphoreMutex) take(
	ctx context.Context, l limit,
) (taken, error) {
	s := &stay{who: ownerOf(ctx, m)}
	this := func() *stay {
		if slices.Contains(m.stays, s) {
			return s
		}
		return nil
	}
	_, err := m.semaphore.acquireWithin(ctx, 1, l, func(leases []*Lease) func() {
		s.lease = leases[0]
		m.enter(s)
		return func() { m.leave(this) }
	})
	return taken{
		hold: func(context.Context) *Hold { return m.hold(this) },
		begin: func(ctx context.Context) func(context.Context) error {
			return m.release(ctx, this)
		},
	}, err
}

// enter takes note of a stay.
func (m *InterProcessSemaphoreMutex) enter(s *stay) {
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
}

// A choice is one of the stays, nil where it is not there. It is called with mu held.
type choice func() *stay

// ofOwner chooses the stay of ctx's owner that was granted first, or else the value's.
func (m *InterProcessSemaphoreMutex) ofOwner(ctx context.Context) choice {
	who := ownerOf(ctx, m)
	return func() *stay {
		if s := m.ownLocked(who); s != nil {
			return s
		}
		if last := len(m.stays) - 1; last >= 0 && !m.stays[last].passedOn {
			return m.stays[last]
		}
		return nil
	}
}

// ownLocked returns the stay of an owner that was granted first, nil where there is none.
// It is called with mu held.
func (m *InterProcessSemaphoreMutex) ownLocked(who owner) *stay {
	at := slices.IndexFunc(m.stays, func(s *stay) bool { return s.who == who })
	if at < 0 {
		return nil
	}
	return m.stays[at]
}

// leave takes the chosen stay off, and returns it.
func (m *InterProcessSemaphoreMutex) leave(chosen choice) *stay {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := chosen()
	m.stays = slices.DeleteFunc(m.stays, func(other *stay) bool { return other == s })
	return s
}

// Release implements InterProcessLock, for any caller. A caller that has acquired the
// mutex and not released it yet releases its own hold, the earliest first, even where
// that was lost and another owner holds the mutex through the same value by now. Any
// other caller releases whatever the value holds at that moment, as in Curator: after a
// loss that can be the next holder's. ErrNotOwner says that there is nothing to release.
// Do releases what it has acquired, and nothing else.
func (m *InterProcessSemaphoreMutex) Release(ctx context.Context) error {
	return releaseOne(ctx, m.beginRelease)
}

// beginRelease implements nativeLock.
func (m *InterProcessSemaphoreMutex) beginRelease(
	ctx context.Context,
) (finish func(context.Context) error) {
	return m.release(ctx, m.ofOwner(ctx))
}

// release begins to release the chosen stay.
func (m *InterProcessSemaphoreMutex) release(
	ctx context.Context, chosen choice,
) (finish func(context.Context) error) {
	if s := m.leave(chosen); s != nil {
		return s.lease.beginRelease(ctx)
	}
	return func(context.Context) error {
		return wrap("release", m.semaphore.path, errNotHeld)
	}
}

// Hold returns the hold that Release would release: the one that ctx's owner has acquired
// and not released, lost or not, and for any other caller the value's. It is nil where
// there is none.
func (m *InterProcessSemaphoreMutex) Hold(ctx context.Context) *Hold {
	return m.hold(m.ofOwner(ctx))
}

// hold returns the hold of the chosen stay.
func (m *InterProcessSemaphoreMutex) hold(chosen choice) *Hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := chosen(); s != nil {
		return s.lease.hold
	}
	return nil
}

// holdOf implements ownedLock.
func (m *InterProcessSemaphoreMutex) holdOf(who owner) *Hold {
	return m.hold(func() *stay { return m.ownLocked(who) })
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
