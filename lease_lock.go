package recipes

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A leaseLock is n leases of a semaphore as a lock, which is what the semaphore mutex is
// with the only lease.
type leaseLock struct {
	semaphore *InterProcessSemaphoreV2
	n         int
	alone     bool // there is no room for two grants at a time

	book    book
	records []*leaseRecord // in the order of their grants; guarded by book.mu
	waiting []*leaseRecord // of the calls under way; guarded by book.mu
}

// A leaseRecord is the record of one acquisition of leases.
type leaseRecord struct {
	Hold
	lock   *leaseLock
	of     stay
	leases []*Lease

	// passed on: another was granted later through the same value. Guarded by book.mu.
	passedOn bool
}

var _ InterProcessLock = (*leaseLock)(nil)

// AsLock returns n leases of the semaphore as a lock, for Do, Acquire and multi locks.
// Use it if up to maximum / n owners may work at a time; for one at a time an
// InterProcessMutex costs less. It acquires all n leases or nothing, and behaves as
// [InterProcessSemaphoreMutex]: it is not reentrant, and any caller may release it. Its
// hold is for all n leases: it is lost when one of them is. If n is below 1 or above a
// fixed maximum, or the semaphore is nil, each Acquire returns an error; with a shared
// maximum below n it waits. See docs/semaphore.md.
func (s *InterProcessSemaphoreV2) AsLock(n int) InterProcessLock {
	return newLeaseLock(s, n)
}

func newLeaseLock(s *InterProcessSemaphoreV2, n int) *leaseLock {
	m := &leaseLock{semaphore: s, n: n}
	m.alone = s != nil && s.most > 0 && n > s.most-n
	m.book.lock = m
	return m
}

// where is the semaphore's path, "" of a nil or zero value.
func (m *leaseLock) where() string {
	if m == nil {
		return ""
	}
	return m.semaphore.where()
}

// Acquire implements InterProcessLock.
func (m *leaseLock) Acquire(ctx context.Context) error {
	_, err := m.acquire(newAcquisition(ctx, bound{}))
	return err
}

// AcquireTimeout implements InterProcessLock.
func (m *leaseLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	_, err := m.acquire(newAcquisition(ctx, newBound(timeout)))
	return heldOrBusy(err)
}

// acquire implements InterProcessLock.
func (m *leaseLock) acquire(a acquisition) (*Hold, error) {
	if err := usable("acquire", m.where(), a.ctx); err != nil {
		return nil, err
	}
	r := m.begin(&a.caller)
	defer m.stopWaiting(r)
	_, err := m.semaphore.acquireWithin(a.ctx, m.n, a.bound, func(l []*Lease) func() {
		m.enter(r, l)
		return func() {
			if m.takeOff(r) { // as any caller could release it, so could they use it
				r.Hold.end()
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return &r.Hold, nil
}

// begin returns the record of a call that is not granted yet.
func (m *leaseLock) begin(c *caller) *leaseRecord {
	r := &leaseRecord{lock: m}
	r.keeper = r
	s := c.lock(&m.book)
	defer m.book.mu.Unlock()
	r.of = m.book.beginLocked(s)
	m.waiting = append(m.waiting, r)
	return r
}

func (m *leaseLock) stopWaiting(r *leaseRecord) {
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	at := slices.Index(m.waiting, r)
	m.waiting = slices.Delete(m.waiting, at, at+1)
}

// identity implements InterProcessLock.
func (m *leaseLock) identity() any { return m }

// enter records what was acquired.
func (m *leaseLock) enter(r *leaseRecord, leases []*Lease) {
	r.leases, r.grant = leases, leases[0].hold.grant
	if len(leases) > 1 {
		grants := make([]*grant, len(leases))
		for i, l := range leases {
			grants[i] = l.hold.grant
		}
		r.grant = joinGrants(grants)
	}
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	// One that was lost before it came here may have been passed on already.
	at, _ := slices.BinarySearchFunc(m.records, r, func(a, b *leaseRecord) int {
		return cmp.Compare(a.token, b.token)
	})
	m.records = slices.Insert(m.records, at, r)
	for _, earlier := range m.records[:len(m.records)-1] {
		earlier.passedOn = true
	}
}

// sinceLocked implements book's lock.
func (m *leaseLock) sinceLocked(who owner) int64 {
	for _, all := range [][]*leaseRecord{m.records, m.waiting} {
		for _, r := range all {
			if r.of.who == who {
				return r.of.since
			}
		}
	}
	return 0
}

// joinLocked implements book's lock.
func (m *leaseLock) joinLocked(s stay) {
	for _, all := range [][]*leaseRecord{m.records, m.waiting} {
		for _, r := range all {
			if r.of.who == s.who {
				r.of.since = s.since
			}
		}
	}
}

// ownLocked returns what an owner has acquired last; nil: nothing.
func (m *leaseLock) ownLocked(who owner) *leaseRecord {
	for _, r := range slices.Backward(m.records) {
		if r.of.who == who {
			return r
		}
	}
	return nil
}

// latestLocked returns what the value holds: what was granted last of what is held, or
// the very last if nothing is. Once passed on, a lost one is its owner's alone, and where
// there is no room for two all that were passed on are lost.
func (m *leaseLock) latestLocked() *leaseRecord {
	for _, r := range slices.Backward(m.records) {
		if r.err() == nil && (!m.alone || !r.passedOn) {
			return r
		}
	}
	if last := len(m.records) - 1; last >= 0 && !m.records[last].passedOn {
		return m.records[last]
	}
	return nil
}

// takeOff takes a record off; false: it was off before.
func (m *leaseLock) takeOff(r *leaseRecord) bool {
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	at := slices.Index(m.records, r)
	if at >= 0 {
		m.records = slices.Delete(m.records, at, at+1)
	}
	return at >= 0
}

// end implements keeper.
func (r *leaseRecord) end(*Hold) leaving {
	if !r.lock.takeOff(r) {
		return leaving{path: r.lock.semaphore.path, err: errReleased}
	}
	return r.leaveAll()
}

// leaveAll ends a record that was taken off, and begins to release its leases.
func (r *leaseRecord) leaveAll() leaving {
	r.Hold.end()
	return r.lock.semaphore.endLeases(r.leases)
}

// stay implements keeper.
func (r *leaseRecord) stay() (stay, *book) {
	return r.lock.book.stay(&r.of), &r.lock.book
}

// Release implements InterProcessLock, for any caller. A caller that acquired the lock
// and has not released it yet releases its own hold, even if that was lost and another
// owner holds the lock now. Any other caller releases what the value holds at that
// moment, as in Curator: after a loss that can be the next holder's. If nothing is held,
// it gets ErrNotOwner.
func (m *leaseLock) Release(ctx context.Context) error {
	if err := usable("release", m.where(), ctx); err != nil {
		return err
	}
	for {
		r := m.chosen(ctx)
		switch {
		case r == nil:
			return wrap("release", m.semaphore.path, errNotHeld)
		case m.takeOff(r): // else another caller has: there may be another one
			return r.leaveAll().finish(ctx)
		}
	}
}

// Hold returns the hold that Release would release, lost or not, or nil if there is none:
// that of ctx's owner, or else the value's.
func (m *leaseLock) Hold(ctx context.Context) *Hold {
	if m == nil {
		return nil
	}
	if r := m.chosen(ctx); r != nil {
		return &r.Hold
	}
	return nil
}

// chosen returns the record of ctx's owner, or else the value's; nil: there is none.
func (m *leaseLock) chosen(ctx context.Context) *leaseRecord {
	c := callerOf(ctx)
	s := c.lock(&m.book)
	defer m.book.mu.Unlock()
	if r := m.ownLocked(s.who); r != nil {
		return r
	}
	return m.latestLocked()
}

// IsAcquiredInThisProcess implements InterProcessLock; false after a loss.
func (m *leaseLock) IsAcquiredInThisProcess() bool {
	if m == nil {
		return false
	}
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	return slices.ContainsFunc(m.records, func(r *leaseRecord) bool {
		return r.err() == nil
	})
}
