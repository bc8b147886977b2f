package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// InterProcessMultiLock is several locks that are acquired together, in the given order,
// all or nothing (Curator's). Use it if work needs several locks. Give the same locks in
// the same order everywhere, or two multi locks can wait for each other forever. It is
// reentrant, and safe for concurrent use, if its members are. Each acquisition owns what
// it has acquired of the members, and releases that alone. Its owner may re-enter a
// member. See docs/multi-lock.md.
type InterProcessMultiLock struct {
	locks []InterProcessLock
	bad   error // why it cannot be used, nil if it can
	held  *multiHolds
}

// multiHolds are the acquisitions of a multi lock that were not released.
type multiHolds struct {
	mu  sync.Mutex // guards all
	all []*Hold    // the youngest last
}

var _ InterProcessLock = (*InterProcessMultiLock)(nil)

// NewInterProcessMultiLock returns a multi lock of an InterProcessMutex for each path. No
// paths, and a path given twice, are errors.
func NewInterProcessMultiLock(
	conn Conn, paths []string, opts ...Option,
) (*InterProcessMultiLock, error) {
	const op = "NewInterProcessMultiLock"
	if len(paths) == 0 {
		return nil, fmt.Errorf("recipes: %s: paths is empty", op)
	}
	var locks []InterProcessLock
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return nil, wrap(op, path, errors.New("paths contains it twice"))
		}
		lock, err := newMutex(conn, path, opts)
		if err != nil {
			return nil, refuse(op, path, err)
		}
		locks = append(locks, lock)
	}
	return NewInterProcessMultiLockOf(locks...), nil
}

// NewInterProcessMultiLockOf returns a multi lock of locks of any kind, other multi locks
// too. With none, a nil one or one given twice, every Acquire fails; so it does if a lock
// that is not reentrant is also in a multi lock among them.
func NewInterProcessMultiLockOf(locks ...InterProcessLock) *InterProcessMultiLock {
	const op = "recipes: NewInterProcessMultiLockOf"
	m := &InterProcessMultiLock{locks: slices.Clone(locks), held: &multiHolds{}}
	if len(locks) == 0 {
		m.bad = errors.New(op + ": locks is empty")
	}
	for i, lock := range locks {
		twice := func(other InterProcessLock) bool { return waitsForItself(other, lock) }
		switch {
		case m.bad != nil:
		case isNil(lock):
			m.bad = fmt.Errorf("%s: lock %d is nil", op, i+1)
		case slices.ContainsFunc(m.locks[:i], twice):
			m.bad = fmt.Errorf("%s: lock %d is given twice", op, i+1)
		}
	}
	return m
}

// waitsForItself tells whether two members are one lock, or have one in them that is not
// reentrant.
func waitsForItself(a, b InterProcessLock) bool {
	if a.identity() == b.identity() {
		return true
	}
	inB := notReentrant(b)
	return slices.ContainsFunc(notReentrant(a), func(lock any) bool {
		return slices.Contains(inB, lock)
	})
}

// notReentrant are the identities of such locks in lock.
func notReentrant(lock InterProcessLock) (all []any) {
	switch l := lock.(type) {
	case *InterProcessMultiLock:
		if l.bad == nil {
			for _, member := range l.locks {
				all = append(all, notReentrant(member)...)
			}
		}
	case *InterProcessSemaphoreMutex, *leaseLock:
		all = append(all, lock.identity())
	}
	return all
}

// identity implements InterProcessLock.
func (m *InterProcessMultiLock) identity() any { return m.held }

// usable returns why a method cannot do its operation with ctx.
func (m *InterProcessMultiLock) usable(ctx context.Context, op string) error {
	switch {
	case m == nil || m.held == nil:
		return fmt.Errorf("recipes: %s a multi lock: %w", op, errZero)
	case m.bad != nil:
		return m.bad
	case ctx == nil:
		return fmt.Errorf("recipes: %s a multi lock: %w", op, errNilCtx)
	}
	return nil
}

// Acquire implements InterProcessLock. If a member is lost while it waits for another, it
// releases all and starts over. If a member fails, it releases those before it, in
// reverse, and returns all errors joined.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) error {
	_, err := m.acquire(newAcquisition(ctx, bound{}))
	return err
}

// AcquireTimeout implements InterProcessLock, with one deadline for all members.
func (m *InterProcessMultiLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	_, err := m.acquire(newAcquisition(ctx, newBound(timeout)))
	return heldOrBusy(err)
}

// acquire implements InterProcessLock.
func (m *InterProcessMultiLock) acquire(a acquisition) (hold *Hold, err error) {
	if err := m.usable(a.ctx, "acquire"); err != nil {
		return nil, err
	}
	if a.given == nil { // the outermost waits for what all of them give back
		a.given = new([]leaving)
		defer func() { // also if an observer panics, or ends the goroutine
			if hold == nil {
				err = a.afterGivingBack(err)
			}
		}()
	}
	a.know()
	if h := m.youngest(&a.caller); h != nil && h.Err() != nil {
		return nil, fmt.Errorf("recipes: acquire a multi lock: %w", h.Err())
	}
	var backoff zkconn.Backoff
	for {
		members, err := m.acquireEach(a)
		if err != nil {
			return nil, err
		}
		ended := slices.IndexFunc(members, func(h *Hold) bool {
			return h.isReleased() || h.hasEnded()
		})
		if ended < 0 {
			return m.record(members), nil
		}
		// While the caller waited for one member, another one was lost, and somebody else
		// may have it by now. Like any other wait this one starts over.
		a.giveBack(members)
		if err := a.awaitGiven(); err != nil {
			return nil, err
		}
		if err := a.startOver(members[ended], backoff.Next()); err != nil {
			return nil, err
		}
	}
}

// startOver waits before the members are acquired again, one of which, ended, was lost. A
// single attempt has its second for that.
func (a acquisition) startOver(ended *Hold, after time.Duration) error {
	if a.once && time.Until(a.until) <= 0 {
		path := ended.each()[0].steps.path
		return fmt.Errorf("%w: a member was lost while the others were tried",
			&BusyError{Path: path})
	}
	select {
	case <-a.ctx.Done(): // the next member returns its error, as with the bound's
	case <-time.After(a.atMost(after)):
	}
	return nil
}

// acquireEach acquires all members once. Where one is not to be had it gives back those
// that it got, also where an observer panics or ends the goroutine.
func (m *InterProcessMultiLock) acquireEach(
	a acquisition,
) (members []*Hold, err error) {
	defer func() {
		if len(members) < len(m.locks) {
			a.giveBack(members)
			members = nil
		}
	}()
	for _, lock := range m.locks {
		member, err := lock.acquire(a)
		if err != nil {
			return members, err
		}
		members = append(members, member)
	}
	return members, nil
}

// record makes the record that owns members.
func (m *InterProcessMultiLock) record(members []*Hold) *Hold {
	grants := make([]*grant, len(members))
	for i, member := range members {
		grants[i] = member.grant
	}
	h := &Hold{grant: joinGrants(grants), keeper: m}
	h.members = members
	for _, member := range members {
		member.ownedBy(h)
	}
	m.held.mu.Lock()
	defer m.held.mu.Unlock()
	m.held.all = append(m.held.all, h)
	return h
}

// youngest returns what the caller has acquired last and not released; nil: nothing.
func (m *InterProcessMultiLock) youngest(c *caller) *Hold {
	if m == nil || m.held == nil {
		return nil
	}
	m.held.mu.Lock()
	all := slices.Clone(m.held.all)
	m.held.mu.Unlock()
	for _, h := range slices.Backward(all) {
		if c.owns(h) {
			return h
		}
	}
	return nil
}

// Release implements InterProcessLock. It releases what the acquisition has of each
// member, even if some fail, and returns all errors joined. It starts with the last, and
// takes no longer than one release: the znodes can be deleted in any order.
func (m *InterProcessMultiLock) Release(ctx context.Context) error {
	if err := m.usable(ctx, "release"); err != nil {
		return err
	}
	c := callerOf(ctx)
	for {
		h := m.youngest(&c)
		switch {
		case h == nil:
			return fmt.Errorf("recipes: release a multi lock: %w", errNotOwned)
		case m.takeOff(h): // else another caller has: there may be one before it
			return h.leaveAll().finish(ctx)
		}
	}
}

// errNotOwned is the ErrNotOwner of a multi lock.
var errNotOwned = fmt.Errorf("%w: its owner has not acquired it through this value",
	ErrNotOwner)

// takeOff takes a record off; false: it was off before.
func (m *InterProcessMultiLock) takeOff(h *Hold) bool {
	m.held.mu.Lock()
	defer m.held.mu.Unlock()
	at := slices.Index(m.held.all, h)
	if at >= 0 {
		m.held.all = slices.Delete(m.held.all, at, at+1)
	}
	return at >= 0
}

// end implements keeper.
func (m *InterProcessMultiLock) end(h *Hold) leaving {
	if !m.takeOff(h) {
		return leaving{err: fmt.Errorf("recipes: release %s: %w", h.name(), errReleased)}
	}
	return h.leaveAll()
}

// leaveAll ends a multi lock's record, which was taken off, and those that it owns.
func (h *Hold) leaveAll() leaving {
	h.end()
	return endAll(h.members)
}

// stay implements keeper: the members can be those of several.
func (m *InterProcessMultiLock) stay() (stay, *book) { return stay{}, nil }

// IsAcquiredInThisProcess reports whether an owner holds all members through this value.
func (m *InterProcessMultiLock) IsAcquiredInThisProcess() bool {
	if m == nil || m.held == nil {
		return false
	}
	m.held.mu.Lock()
	all := slices.Clone(m.held.all)
	m.held.mu.Unlock()
	return slices.ContainsFunc(all, func(h *Hold) bool {
		return !h.isReleased() && h.Err() == nil
	})
}

// Holds returns the hold of each member, in order, that belongs to what ctx's owner has
// acquired last and not released, lost or not; nil if there is nothing. A store that one
// member guards must get that hold's token from everybody.
func (m *InterProcessMultiLock) Holds(ctx context.Context) []*Hold {
	if h := m.Hold(ctx); h != nil {
		return slices.Clone(h.members)
	}
	return nil
}

// Hold implements InterProcessLock. The hold stands for all members: it is lost when one
// of them is, and has the greatest token and the path and check of the last.
func (m *InterProcessMultiLock) Hold(ctx context.Context) *Hold {
	c := callerOf(ctx)
	return m.youngest(&c)
}
