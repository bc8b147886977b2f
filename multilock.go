package recipes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
)

// InterProcessMultiLock is several locks that are acquired together, in the order in which they were given, or not at all (Curator's
// InterProcessMultiLock). Whoever takes the same locks in several multi locks gives them in the same order everywhere, else two of them
// can wait for each other for ever.
//
// It is as safe for concurrent use, as reentrant and as particular about its owner as its members are.
type InterProcessMultiLock struct {
	locks []InterProcessLock
	bad   error // why it cannot be used, nil if it can

	mu     sync.Mutex // guards what follows
	stands []*Hold    // what Hold has returned; those that ended go with the next call
}

var _ InterProcessLock = (*InterProcessMultiLock)(nil)

// holder is a lock that tells its holds, as all locks here do.
type holder interface {
	Hold(ctx context.Context) *Hold
}

// holderOf returns lock if it tells its holds, which a multi lock does not whose members do not.
func holderOf(lock InterProcessLock) (holder, bool) {
	m, isMulti := lock.(*InterProcessMultiLock)
	if isMulti && !slices.ContainsFunc(m.locks, func(member InterProcessLock) bool { _, ok := holderOf(member); return ok }) {
		return nil, false
	}
	h, ok := lock.(holder)
	return h, ok
}

// NewInterProcessMultiLock returns a multi lock of an InterProcessMutex for each path. It refuses no paths at all, a path given
// twice, and what NewInterProcessMutex refuses.
func NewInterProcessMultiLock(conn Conn, paths []string, opts ...Option) (*InterProcessMultiLock, error) {
	const op = "NewInterProcessMultiLock"
	if len(paths) == 0 {
		return nil, fmt.Errorf("recipes: %s: paths: there are none", op)
	}
	var locks []InterProcessLock
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return nil, wrap(op, path, errors.New("paths: it is given twice"))
		}
		lock, err := NewInterProcessMutex(conn, path, opts...)
		if err != nil {
			return nil, wrap(op, path, err)
		}
		locks = append(locks, lock)
	}
	return NewInterProcessMultiLockOf(locks...), nil
}

// NewInterProcessMultiLockOf returns a multi lock of locks of any kind, also of the caller's own. With no lock, a nil one or one
// given twice, every Acquire fails.
func NewInterProcessMultiLockOf(locks ...InterProcessLock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{locks: slices.Clone(locks)}
	if len(locks) == 0 {
		m.bad = errors.New("recipes: NewInterProcessMultiLockOf: locks: there are none")
	}
	for i, lock := range locks {
		switch {
		case isNil(lock):
			m.bad = fmt.Errorf("recipes: NewInterProcessMultiLockOf: locks: number %d is nil", i)
		case reflect.ValueOf(lock).Comparable() && slices.Contains(m.locks[:i], lock):
			m.bad = fmt.Errorf("recipes: NewInterProcessMultiLockOf: locks: number %d is given twice", i)
		}
	}
	return m
}

func isNil(lock InterProcessLock) bool {
	v := reflect.ValueOf(lock)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Acquire implements InterProcessLock. It returns when all members are held: if one is lost while another one is waited for, it gives
// all back and begins anew. At the first member that fails it releases those before it, in reverse, and returns all errors
// joined. In an outage it waits for that no longer than 100 ms; it goes on in the background.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) error {
	_, err := m.acquire(ctx, false, func(lock InterProcessLock) (bool, error) {
		err := lock.Acquire(ctx)
		return err == nil, err
	})
	return err
}

// AcquireTimeout implements InterProcessLock, with one deadline for all members.
func (m *InterProcessMultiLock) AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error) {
	deadline := time.Now().Add(timeout)
	return m.acquire(ctx, timeout <= 0, func(lock InterProcessLock) (bool, error) {
		left := time.Until(deadline)
		if timeout > 0 && left <= 0 { // a timeout of 0 would be a try, which may take longer
			return false, nil
		}
		return lock.AcquireTimeout(ctx, max(0, left))
	})
}

// acquire acquires all members by one, again and again unless it is to be tried once.
func (m *InterProcessMultiLock) acquire(ctx context.Context, once bool, one func(lock InterProcessLock) (bool, error)) (bool, error) {
	if m.bad != nil {
		return false, m.bad
	}
	for {
		holds, err := m.acquireAll(ctx, one)
		if err != nil || holds == nil {
			return false, err
		}
		if !slices.ContainsFunc(holds, (*Hold).ended) {
			return true, nil
		}
		// While the caller waited for one member, another one was lost, and somebody else may have it by now. Like any other
		// wait this one begins anew.
		if err := giveBack(ctx, m.locks); err != nil || once {
			return false, err
		}
	}
}

// acquireAll acquires all members once, and returns the holds of those that tell them; nil if one was not to be had.
func (m *InterProcessMultiLock) acquireAll(ctx context.Context, one func(lock InterProcessLock) (bool, error)) ([]*Hold, error) {
	holds := []*Hold{}
	for i, lock := range m.locks {
		held, err := one(lock)
		if err != nil || !held {
			return nil, errors.Join(err, giveBack(ctx, m.locks[:i]))
		}
		if member, ok := holderOf(lock); ok {
			if hold := member.Hold(ctx); hold != nil {
				holds = append(holds, hold)
			}
		}
	}
	return holds, nil
}

// giveBackWithin is what a caller who did not get all members can spare for giving back those that it got.
const giveBackWithin = 100 * time.Millisecond

var errGivingBack = errors.New("not all members were acquired, and there is no time to wait for the release of those that were")

// giveBack is releaseAll in a short time, also in an outage. What is not confirmed by then goes on in the background, and is no error. Nor
// is that one was lost before.
func giveBack(ctx context.Context, locks []InterProcessLock) error {
	noMatter := []error{errGivingBack, context.DeadlineExceeded, ErrLockLost}
	var errs []error
	for _, lock := range slices.Backward(locks) {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), giveBackWithin/time.Duration(len(locks)), errGivingBack)
		if err := lock.Release(ctx); !slices.ContainsFunc(noMatter, func(e error) bool { return errors.Is(err, e) }) {
			errs = append(errs, err)
		}
		cancel()
	}
	return errors.Join(errs...)
}

// releaseAll releases locks in reverse, whatever becomes of each.
func releaseAll(ctx context.Context, locks []InterProcessLock) error {
	var errs []error
	for _, lock := range slices.Backward(locks) {
		errs = append(errs, lock.Release(ctx))
	}
	return errors.Join(errs...)
}

// Release implements InterProcessLock. It releases all members, in reverse, and returns all errors joined.
func (m *InterProcessMultiLock) Release(ctx context.Context) error {
	if m.bad != nil {
		return m.bad
	}
	return releaseAll(ctx, m.locks)
}

// IsAcquiredInThisProcess reports whether all members are.
func (m *InterProcessMultiLock) IsAcquiredInThisProcess() bool {
	return m.bad == nil && !slices.ContainsFunc(m.locks, func(lock InterProcessLock) bool { return !lock.IsAcquiredInThisProcess() })
}

// Holds returns the hold of each member in the order of the members, nil where ctx's owner does not hold all of them. A member
// of the caller's own kind that has no Hold method is left out.
func (m *InterProcessMultiLock) Holds(ctx context.Context) []*Hold {
	var holds []*Hold
	for _, lock := range m.locks {
		member, ok := holderOf(lock)
		if !ok {
			continue
		}
		hold := member.Hold(ctx)
		if hold == nil {
			return nil
		}
		holds = append(holds, hold)
	}
	return holds
}

// Hold returns a hold that stands for all members: it is lost when one of them is, has the greatest token, and the path and check of
// the last. It is nil where ctx's owner does not hold all of them, or none of them tells its hold.
func (m *InterProcessMultiLock) Hold(ctx context.Context) *Hold {
	holds := m.Holds(ctx)
	if len(holds) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stands = slices.DeleteFunc(m.stands, (*Hold).ended)
	at := slices.IndexFunc(m.stands, func(h *Hold) bool { return slices.Equal(h.members, holds) })
	if at < 0 {
		at = len(m.stands)
		m.stands = append(m.stands, standFor(holds))
	}
	return m.stands[at]
}

func standFor(holds []*Hold) *Hold {
	last := holds[len(holds)-1]
	lost, cancel := context.WithCancelCause(context.Background())
	all := &Hold{path: last.path, serverPath: last.serverPath, lost: lost, members: holds}
	share := func(h *Hold) { context.AfterFunc(h.lost, func() { cancel(h.Err()) }) }
	for _, h := range holds {
		all.token = max(all.token, h.token)
		share(h)
	}
	return all
}
