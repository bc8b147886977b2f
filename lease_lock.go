package recipes

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A leaseLock is n leases of a semaphore as a lock, which is what the semaphore mutex is
// with the only lease.
type leaseLock struct {
	semaphore *InterProcessSemaphoreV2
	n         int
	alone     bool // there is no room for two grants at a time

	mu     sync.Mutex // guards what follows; not held across a call to ZooKeeper
	grants []*grant   // in the order in which they were granted
}

// A grant is what one Acquire has got, until it is released. It is the releaser of its
// hold.
type grant struct {
	lock *leaseLock
	who  owner

	// set before anybody has the hold
	leases []*Lease
	hold   *Hold

	// passed on: another was granted later through the same value. Guarded by lock.mu.
	passedOn bool
}

var _ InterProcessLock = (*leaseLock)(nil)

// AsLock returns n leases of the semaphore as a lock, for Do, Acquire and multi locks.
// Use it if up to maximum / n owners may work at a time; for one at a time an
// InterProcessMutex costs less. It acquires all n leases or nothing, and behaves as
// [InterProcessSemaphoreMutex]: it is not reentrant, and any caller may release it. It
// has a method Hold(context.Context) *Hold, for all n leases: that is lost when one of
// them is. If n is below 1 or above a fixed maximum, or the semaphore is nil, each
// Acquire returns an error; with a shared maximum below n it waits. See
// docs/semaphore.md.
func (s *InterProcessSemaphoreV2) AsLock(n int) InterProcessLock {
	return newLeaseLock(s, n)
}

// self implements nativeLock.
func (m *leaseLock) self() nativeLock { return m }

func newLeaseLock(s *InterProcessSemaphoreV2, n int) *leaseLock {
	alone := s != nil && s.most > 0 && n > s.most-n
	return &leaseLock{semaphore: s, n: n, alone: alone}
}

// where is the semaphore's path, "" of a zero value.
func (m *leaseLock) where() string {
	if m == nil {
		return ""
	}
	return m.semaphore.where()
}

// Acquire implements InterProcessLock.
func (m *leaseLock) Acquire(ctx context.Context) error {
	_, err := m.take(ctx, bound{})
	return err
}

// AcquireTimeout implements InterProcessLock.
func (m *leaseLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	_, err := m.take(ctx, newBound(timeout))
	return heldOrBusy(err)
}

// take implements nativeLock. What it has taken is one grant, whoever the owner is.
func (m *leaseLock) take(ctx context.Context, l bound) (taken, error) {
	if err := usable("acquire", m.where(), ctx); err != nil {
		return taken{}, err
	}
	s := &grant{lock: m, who: ownerOf(ctx, m)}
	_, err := m.semaphore.acquireWithin(ctx, m.n, l, func(leases []*Lease) func() {
		m.enter(s, leases)
		return func() { m.leave(s.itself) }
	})
	if err != nil {
		return taken{}, err
	}
	return taken{hold: s.hold}, nil
}

// enter takes note of a grant, and of what it has got.
func (m *leaseLock) enter(s *grant, leases []*Lease) {
	s.leases, s.hold = leases, leases[0].hold
	if len(leases) > 1 {
		holds := make([]*Hold, len(leases))
		for i, l := range leases {
			holds[i] = l.hold
		}
		s.hold, _ = newHoldOf(holds)
	}
	s.hold.releaser = s
	m.mu.Lock()
	defer m.mu.Unlock()
	// One that was lost before it came here may have been passed on already.
	at, _ := slices.BinarySearchFunc(m.grants, s, func(a, b *grant) int {
		return cmp.Compare(a.hold.token, b.hold.token)
	})
	m.grants = slices.Insert(m.grants, at, s)
	for _, earlier := range m.grants[:len(m.grants)-1] {
		earlier.passedOn = true
	}
}

// A choice is one of the grants, nil where it is not there. It is called with mu held.
type choice func() *grant

// ofOwner chooses the grant of ctx's owner that was granted first, or else the value's.
func (m *leaseLock) ofOwner(ctx context.Context) choice {
	who := ownerOf(ctx, m)
	return func() *grant {
		if s := m.ownLocked(who); s != nil {
			return s
		}
		return m.latestLocked()
	}
}

// ownLocked returns the earliest grant of an owner, nil if there is none. It is called
// with mu held.
func (m *leaseLock) ownLocked(who owner) *grant {
	at := slices.IndexFunc(m.grants, func(s *grant) bool { return s.who == who })
	if at < 0 {
		return nil
	}
	return m.grants[at]
}

// latestLocked returns the value's grant: the one that was granted last of those that are
// held, or the very last if none is. Once passed on, a lost one is its owner's alone, and
// where there is no room for two all that were passed on are lost.
func (m *leaseLock) latestLocked() *grant {
	for _, s := range slices.Backward(m.grants) {
		if s.hold.Err() == nil && (!m.alone || !s.passedOn) {
			return s
		}
	}
	if last := len(m.grants) - 1; last >= 0 && !m.grants[last].passedOn {
		return m.grants[last]
	}
	return nil
}

// leave takes the chosen grant off, and returns it.
func (m *leaseLock) leave(chosen choice) *grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := chosen()
	m.grants = slices.DeleteFunc(m.grants, func(other *grant) bool { return other == s })
	return s
}

// Release implements InterProcessLock, for any caller. A caller that acquired the lock
// and has not released it yet releases its own hold, the earliest first, even if that was
// lost and another owner holds the lock now. Any other caller releases what the value
// holds at that moment, as in Curator: after a loss that can be the next holder's. If
// nothing is held, it gets ErrNotOwner.
func (m *leaseLock) Release(ctx context.Context) error {
	return releaseOne(ctx, m.beginRelease)
}

// beginRelease implements nativeLock.
func (m *leaseLock) beginRelease(
	ctx context.Context,
) (finish func(context.Context) error) {
	if err := usable("release", m.where(), ctx); err != nil {
		return failed(err)
	}
	return m.release(ctx, m.ofOwner(ctx), errNotHeld)
}

// release begins to release the chosen grant. none says that it is not there.
func (m *leaseLock) release(
	ctx context.Context, chosen choice, none error,
) (finish func(context.Context) error) {
	if s := m.leave(chosen); s != nil {
		return m.semaphore.beginReturning(ctx, s.leases)
	}
	return func(context.Context) error {
		return wrap("release", m.semaphore.path, none)
	}
}

// Hold returns the hold that Release would release, lost or not, or nil if there is none:
// that of ctx's owner, or else the value's.
func (m *leaseLock) Hold(ctx context.Context) *Hold {
	return m.hold(m.ofOwner(ctx))
}

// hold returns the hold of the chosen grant.
func (m *leaseLock) hold(chosen choice) *Hold {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := chosen(); s != nil {
		return s.hold
	}
	return nil
}

// holdOf implements ownedLock.
func (m *leaseLock) holdOf(who owner) *Hold {
	return m.hold(func() *grant { return m.ownLocked(who) })
}

// ownerKey implements ownedLock.
func (m *leaseLock) ownerKey() any { return m }

// IsAcquiredInThisProcess implements InterProcessLock; false after a loss.
func (m *leaseLock) IsAcquiredInThisProcess() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.grants, func(s *grant) bool {
		return s.hold.Err() == nil
	})
}

// itself is a choice.
func (s *grant) itself() *grant {
	if slices.Contains(s.lock.grants, s) {
		return s
	}
	return nil
}

// beginRelease implements releaser.
func (s *grant) beginRelease(ctx context.Context) (finish func(context.Context) error) {
	return s.lock.release(ctx, s.itself, errReleased)
}

// release implements releaser.
func (s *grant) release(ctx context.Context) error {
	return releaseOne(ctx, s.beginRelease)
}

// left implements releaser.
func (s *grant) left() bool { return s.lock.hold(s.itself) != nil }

// shares implements releaser.
func (s *grant) shares() []perLock { return []perLock{{s.lock, s.who}} }
