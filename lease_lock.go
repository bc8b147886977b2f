package recipes

import (
	"cmp"
	"slices"
)

// A leaseLock is n leases of a semaphore as a lock, which is what the semaphore mutex is
// with the only lease.
type leaseLock struct {
	semaphore *InterProcessSemaphoreV2
	n         int
	exclusive bool // there is no room for two grants at a time

	book         // whose records are in the order of their grants
	newest int64 // the greatest token so far: what has a lower one was granted again
}

// AsLock returns n leases of the semaphore as a lock, for Do, Acquire and multi locks.
// Use it if up to maximum / n owners may work at a time; for one at a time an
// InterProcessMutex costs less. It acquires all n leases or nothing, and behaves as
// [InterProcessSemaphoreMutex]: it is not reentrant, and any caller may release it. Its
// hold is for all n leases: it is lost when one of them is. If n is below 1 or above a
// fixed maximum, or the semaphore is nil, each Acquire returns an error; with a shared
// maximum below n it waits. See docs/semaphore.md.
func (s *InterProcessSemaphoreV2) AsLock(n int) InterProcessLock {
	return &InterProcessSemaphoreMutex{newLeaseLock(s, n)}
}

func newLeaseLock(s *InterProcessSemaphoreV2, n int) *leaseLock {
	m := &leaseLock{semaphore: s, n: n, book: book{stays: map[owner]*stay{}}}
	m.exclusive = s != nil && s.fixedMax > 0 && n > s.fixedMax-n
	return m
}

func (m *leaseLock) where() string {
	if m == nil {
		return ""
	}
	return m.semaphore.where()
}

func (m *leaseLock) acquire(a acquisition) (hold *Hold, err error) {
	if err := usable("acquire", m.where(), a.ctx); err != nil {
		return nil, err
	}
	of, by := m.begin(a.caller)
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.endCallLocked(of, by, hold)
	}()
	_, err = m.semaphore.acquireWithin(a.ctx, m.n, a.bound, func(leases []*Hold) *Hold {
		hold = m.record(of, leases)
		return hold
	})
	return hold, err
}

// begin returns the stay of a call that is not granted yet, and what named its owner.
func (m *leaseLock) begin(c caller) (of *stay, by *naming) {
	who, by := m.lockFor(&c)
	defer m.unlock(by)
	return m.beginCallLocked(who, by, new(stay)), by
}

// record makes the record of what was acquired, before anybody else has it: of a lease,
// or of several as one.
func (m *leaseLock) record(of *stay, leases []*Hold) *Hold {
	h := leases[0]
	if len(leases) > 1 {
		h = join(leases)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	of.recordLocked(h)
	// One that was lost before it came here may have been granted again already.
	at, _ := slices.BinarySearchFunc(m.records, h, func(a, b *Hold) int {
		return cmp.Compare(a.token, b.token)
	})
	m.records = slices.Insert(m.records, at, h)
	m.newest = max(m.newest, h.token)
	return h
}

// youngest implements core: for any caller that has acquired nothing it is what the value
// holds, as in Curator. That was granted last of what is held, or the very last if
// nothing is. Once granted again, a lost one is its owner's alone, and where there is no
// room for two all that were granted again are lost.
func (m *leaseLock) youngest(c caller) *Hold {
	who, by := m.lockFor(&c)
	defer m.unlock(by)
	var own, good, last *Hold
	for _, h := range m.records {
		if h.isReleased() {
			continue
		}
		if last = h; h.stay.who == who {
			own = h
		}
		if h.err() == nil && (!m.exclusive || h.token == m.newest) {
			good = h
		}
	}
	if last != nil && last.token != m.newest {
		last = nil
	}
	return cmp.Or(own, good, last)
}
