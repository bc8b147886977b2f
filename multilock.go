package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// InterProcessMultiLock is several locks that are acquired together, in the given order,
// all or nothing (Curator's). Use it if work needs several locks. Give the same locks in
// the same order everywhere, or two multi locks can wait for each other forever. It is
// reentrant, and safe for concurrent use, if its members are. Each acquisition owns what
// it has acquired of the members, and releases that alone. Its owner may re-enter a
// member. See docs/multi-lock.md.
type InterProcessMultiLock struct {
	lock *multiLock
}

type multiLock struct {
	locks []InterProcessLock
	bad   error  // why it cannot be used, nil if it can
	once  []core // what a further member must neither be nor contain

	book // whose records are those of the members' owners
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
	m := &multiLock{locks: slices.Clone(locks)}
	if len(locks) == 0 {
		m.bad = errors.New(op + ": locks is empty")
	}
	for i, lock := range locks {
		what := fmt.Sprintf("%s: lock %d", op, i+1)
		if m.bad = checkLock(what, lock); m.bad != nil {
			break
		}
		once := onlyOnce(lock.core())
		given := func(c core) bool { return slices.Contains(m.once, c) }
		if slices.ContainsFunc(once, given) {
			m.bad = errors.New(what + " is given twice")
			break
		}
		m.once = append(m.once, once...)
	}
	return &InterProcessMultiLock{m}
}

// onlyOnce returns lock, and if it is a multi lock those in it that are not reentrant.
func onlyOnce(lock core) []core {
	all := []core{lock}
	if m, ok := lock.(*multiLock); ok && m != nil {
		for _, c := range m.once {
			if _, ok := c.(*leaseLock); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

func (m *InterProcessMultiLock) inner() *multiLock {
	if m == nil {
		return nil
	}
	return m.lock
}

func (m *InterProcessMultiLock) core() core { return m.inner() }

// where implements core: all members are what it is about.
func (m *multiLock) where() string {
	if m == nil {
		return ""
	}
	return "a multi lock"
}

// Acquire implements InterProcessLock. If a member is lost while it waits for another, it
// releases all and starts over. If a member fails, it releases those before it, in
// reverse, and returns all errors joined.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) error {
	_, err := m.inner().acquire(newAcquisition(ctx, bound{}))
	return err
}

// AcquireTimeout implements InterProcessLock, with one deadline for all members.
func (m *InterProcessMultiLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return acquireTimeout(ctx, m.inner(), timeout)
}

func (m *multiLock) acquire(a acquisition) (hold *Hold, err error) {
	if err := usable("acquire", m.where(), a.ctx); err != nil {
		return nil, err
	}
	if m.bad != nil {
		return nil, m.bad
	}
	if a.givenBack == nil { // the outermost waits for what all of them give back
		a.givenBack = new([]leaving)
		defer func() { // also if an observer panics, or ends the goroutine
			if hold == nil {
				err = a.awaitGivenBack(err)
			}
		}()
	}
	a.ownerAt(&m.book) // asks which goroutine this is, if need be, once for all members
	if h := m.youngest(a.caller); h != nil && h.Err() != nil {
		return nil, fmt.Errorf("recipes: acquire a multi lock: %w", h.Err())
	}
	var backoff zkconn.Backoff
	for {
		members, ended, err := m.acquireEach(a)
		switch {
		case ended == nil && err == nil:
			return m.record(members), nil
		case ended == nil:
			return nil, err
		}
		// While the caller waited for one member, another one was lost, and somebody else
		// may have it by now: so this starts over. If one was released, awaitGivenBack
		// returns that.
		if err := a.awaitGivenBack(nil); err != nil {
			return nil, err
		}
		if a.single && time.Until(a.until) <= 0 { // it has its second for that
			return nil, fmt.Errorf("%w: a member was lost while the others were tried",
				&BusyError{Path: ended.each()[0].reporter.path})
		}
		select {
		case <-a.ctx.Done(): // the next member returns its error, as with the bound's
		case <-time.After(a.atMost(backoff.Next())):
		}
	}
}

// acquireEach acquires all members once. If one cannot be acquired, or one that it got
// has ended meanwhile (ended), it gives back those that it got, also if an observer, or
// the ctx, panics or ends the goroutine.
func (m *multiLock) acquireEach(a acquisition) (members []*Hold, ended *Hold, err error) {
	kept := false
	defer func() {
		if !kept {
			*a.givenBack = append(*a.givenBack, endAll(members))
		}
	}()
	for i, lock := range m.locks {
		if i > 0 && a.self.identity != 0 { // the observers' ctx names the new owner
			a.ctx = withOwners(a.ctx, members[i-1].scopes()...)
		}
		member, err := lock.core().acquire(a)
		switch {
		case errors.Is(err, ErrLockLost): // maybe a member before it has the same grant
			return members, endedOf(members), err
		case err != nil:
			return members, nil, err
		}
		members = append(members, member)
	}
	ended = endedOf(members)
	kept = ended == nil
	return members, ended, nil
}

// endedOf returns a hold that was released or lost; nil: none was.
func endedOf(holds []*Hold) *Hold {
	at := slices.IndexFunc(holds, func(h *Hold) bool {
		return h.isPartReleased() || h.isUnreliable()
	})
	if at < 0 {
		return nil
	}
	return holds[at]
}

// awaitGivenBack waits a short time for what was given back, also in an outage, and
// returns err with what has failed of that. What is not confirmed by then goes on in the
// background, and is no error. Nor is that a member was lost before.
func (a acquisition) awaitGivenBack(err error) error {
	if len(*a.givenBack) == 0 {
		return err
	}
	all := leaving{parts: *a.givenBack}
	*a.givenBack = nil
	ctx, cancel := context.WithTimeoutCause(
		context.WithoutCancel(a.ctx), znode.LeaveWithin, errGivingBack,
	)
	defer cancel()
	errs := slices.DeleteFunc(all.wait(ctx), func(err error) bool {
		return errors.Is(err, errGivingBack) || errors.Is(err, ErrLockLost)
	})
	if len(errs) == 0 {
		return err
	}
	return errors.Join(err, notGivenBack{errors.Join(errs...)})
}

var errGivingBack = errors.New(
	"not all members were acquired; there is no time to wait for the release of those " +
		"that were",
)

// notGivenBack is why members were not given back as they should, which AcquireTimeout
// does not hide behind a wait that was ended by its limit.
type notGivenBack struct{ error }

func (e notGivenBack) Unwrap() error { return e.error }

// record makes the record that owns members.
func (m *multiLock) record(members []*Hold) *Hold {
	h := join(members)
	h.book = &m.book
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, h)
	return h
}

// youngest implements core.
func (m *multiLock) youngest(c caller) *Hold {
	for h := range m.backward {
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
	if l := m.inner(); l != nil && l.bad != nil {
		return l.bad
	}
	return release(ctx, m.inner())
}

// IsAcquiredInThisProcess reports whether an owner holds all members through this value.
func (m *InterProcessMultiLock) IsAcquiredInThisProcess() bool {
	return isAcquired(m.inner())
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
	return holdOf(ctx, m.inner())
}
