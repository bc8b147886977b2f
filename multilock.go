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

// InterProcessMultiLock is several locks that are acquired together, in the given order,
// all or nothing (Curator's). Use it if work needs several locks. Give the same locks in
// the same order everywhere, or two multi locks can wait for each other forever. It is
// reentrant, and safe for concurrent use, if its members are. Its owner may re-enter a
// member. See docs/multi-lock.md.
type InterProcessMultiLock struct {
	locks []InterProcessLock
	bad   error // why it cannot be used, nil if it can

	mu     sync.Mutex // guards what follows
	stands []*stand   // of what Hold has returned; those that ended go with the next call
}

var _ InterProcessLock = (*InterProcessMultiLock)(nil)

// self implements nativeLock.
func (m *InterProcessMultiLock) self() nativeLock { return m }

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

// NewInterProcessMultiLockOf returns a multi lock of locks of any kind, custom ones too.
// With none, a nil one or one given twice, every Acquire fails.
func NewInterProcessMultiLockOf(locks ...InterProcessLock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{locks: slices.Clone(locks)}
	if len(locks) == 0 {
		m.bad = errors.New("recipes: NewInterProcessMultiLockOf: locks is empty")
	}
	for i, lock := range locks {
		switch {
		case isNil(lock):
			m.bad = fmt.Errorf(
				"recipes: NewInterProcessMultiLockOf: lock %d is nil", i+1,
			)
		case reflect.ValueOf(lock).Comparable() && slices.Contains(m.locks[:i], lock):
			m.bad = fmt.Errorf(
				"recipes: NewInterProcessMultiLockOf: lock %d is given twice", i+1,
			)
		}
	}
	return m
}

// isNil tells of nil, and of a nil pointer in an interface.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Acquire implements InterProcessLock. If a member is lost while it waits for another, it
// releases all and starts over. If a member fails, it releases those before it, in
// reverse, and returns all errors joined.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) error {
	return m.acquireAll(ctx, bound{})
}

// AcquireTimeout implements InterProcessLock, with one deadline for all members; a custom
// member takes as long as it takes.
func (m *InterProcessMultiLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return heldOrBusy(m.acquireAll(ctx, newBound(timeout)))
}

// acquireAll is what the multi lock's own methods do. The hold that stands for the
// members does not count that, but may release it.
func (m *InterProcessMultiLock) acquireAll(ctx context.Context, l bound) error {
	members, err := m.takeAll(ctx, l)
	if err == nil {
		m.standFor(members).renew(0)
	}
	return err
}

// take implements nativeLock.
func (m *InterProcessMultiLock) take(ctx context.Context, l bound) (taken, error) {
	members, err := m.takeAll(ctx, l)
	switch {
	case err != nil:
		return taken{}, err
	case !tellsHolds(m):
		return taken{custom: m}, nil
	}
	s := m.standFor(members)
	s.renew(1)
	return taken{hold: s.hold}, nil
}

// takeAll acquires all members, again and again unless they are to be tried once.
func (m *InterProcessMultiLock) takeAll(ctx context.Context, l bound) ([]taken, error) {
	if err := m.unusable(ctx); err != nil {
		return nil, err
	}
	if err := m.lostBy(ctx); err != nil {
		return nil, err
	}
	for {
		members, err := m.takeEach(ctx, l)
		if err != nil {
			return nil, err
		}
		holds := holdsOf(members)
		ended := slices.IndexFunc(holds, (*Hold).hasEnded)
		if ended < 0 {
			return members, nil
		}
		// While the caller waited for one member, another one was lost, and somebody else
		// may have it by now. Like any other wait this one begins anew.
		switch err := giveBack(ctx, members); {
		case err != nil:
			return nil, err
		case l.once:
			var busy BusyError
			for _, one := range holds[ended].each() {
				busy.Path = one.steps.path
			}
			return nil, fmt.Errorf(
				"%w: a member was lost while the others were tried", &busy,
			)
		}
	}
}

// unusable tells why a method cannot be called with ctx.
func (m *InterProcessMultiLock) unusable(ctx context.Context) error {
	switch {
	case m == nil:
		return fmt.Errorf("recipes: multi lock: %w", errZero)
	case m.bad != nil:
		return m.bad
	case len(m.locks) == 0:
		return fmt.Errorf("recipes: multi lock: %w", errZero)
	case ctx == nil:
		return fmt.Errorf("recipes: multi lock: %w", errNilCtx)
	}
	return nil
}

// lostBy tells of a member that ctx's owner has lost and not released. Reentrant members
// tell it themselves.
func (m *InterProcessMultiLock) lostBy(ctx context.Context) error {
	for _, lock := range m.locks {
		var member *leaseLock
		switch lock := lock.(type) {
		case *InterProcessSemaphoreMutex:
			member = lock.leaseLock
		case *leaseLock:
			member = lock
		default:
			continue
		}
		if h := member.holdOf(ownerOf(ctx, member)); h != nil && h.Err() != nil {
			return wrap("acquire", member.semaphore.path, h.Err())
		}
	}
	return nil
}

// takeEach acquires all members once. Where one is not to be had it gives back those that
// it got, also where an observer panics or ends the goroutine.
func (m *InterProcessMultiLock) takeEach(
	ctx context.Context, l bound,
) (members []taken, err error) {
	defer func() {
		if len(members) == len(m.locks) {
			return
		}
		back := giveBack(ctx, members)
		if back != nil && endedByLimit(err) { // which would hide the other
			err = nil
		}
		members, err = nil, errors.Join(err, back)
	}()
	for _, lock := range m.locks {
		member, err := take(ctx, lock, l)
		if err != nil {
			return members, err
		}
		members = append(members, member)
	}
	return members, nil
}

// giveBackWithin is what a caller who did not get all members can spare for giving back
// those that it got.
const giveBackWithin = 80 * time.Millisecond

var errGivingBack = errors.New(
	"not all members were acquired, and there is no time to wait for the release of " +
		"those that were",
)

// giveBack releases members in a short time, also in an outage. What is not confirmed by
// then goes on in the background, and is no error. Nor is that one was lost before.
func giveBack(ctx context.Context, members []taken) error {
	if len(members) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(
		context.WithoutCancel(ctx), giveBackWithin, errGivingBack,
	)
	defer cancel()
	begin := make([]beginner, len(members))
	for i, member := range members {
		begin[i] = member.beginner(giveBackWithin / time.Duration(len(members)))
	}
	errs := beginAll(ctx, begin)(ctx)
	noMatter := []error{errGivingBack, context.DeadlineExceeded, ErrLockLost}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		return slices.ContainsFunc(noMatter, func(e error) bool {
			return errors.Is(err, e)
		})
	})...)
}

// Release implements InterProcessLock. It releases all members, even if some fail, and
// returns all errors joined. It starts with the last, and takes no longer than one
// release: the znodes can be deleted in any order. Only a custom member is waited for in
// its turn.
func (m *InterProcessMultiLock) Release(ctx context.Context) error {
	return releaseOne(ctx, m.beginRelease)
}

// beginRelease implements nativeLock.
func (m *InterProcessMultiLock) beginRelease(
	ctx context.Context,
) (finish func(context.Context) error) {
	if err := m.unusable(ctx); err != nil {
		return failed(err)
	}
	begin := make([]beginner, len(m.locks))
	for i, lock := range m.locks {
		if own, ok := native(lock); ok {
			begin[i] = own.beginRelease
		} else {
			begin[i] = beginCustom(lock, 0)
		}
	}
	return beginJoined(ctx, begin)
}

// IsAcquiredInThisProcess reports whether all members are.
func (m *InterProcessMultiLock) IsAcquiredInThisProcess() bool {
	return m != nil && m.bad == nil && len(m.locks) > 0 &&
		!slices.ContainsFunc(m.locks, func(lock InterProcessLock) bool {
			return !lock.IsAcquiredInThisProcess()
		})
}

// Holds returns the hold of each member in order, or nil if ctx's owner does not hold all
// of them. A lost hold is included until it is released, a custom member without a Hold
// method is not. A store that one member guards must get that hold's token from
// everybody.
func (m *InterProcessMultiLock) Holds(ctx context.Context) []*Hold {
	return holdsOf(m.ofOwner(ctx))
}

// ofOwner returns the members as ctx's owner has them, nil where it does not hold all of
// them.
func (m *InterProcessMultiLock) ofOwner(ctx context.Context) []taken {
	if m == nil {
		return nil
	}
	members := make([]taken, len(m.locks))
	for i, lock := range m.locks {
		var ok bool
		if members[i], ok = ofOwner(ctx, lock); !ok {
			return nil
		}
	}
	return members
}

// Hold returns a hold that stands for all members: it is lost when one of them is, and
// has the greatest token and the path and check of the last. It is nil if ctx's owner
// does not hold all members, or if no member reports its hold. It remains the owner's
// until it is released, even if it is lost.
func (m *InterProcessMultiLock) Hold(ctx context.Context) *Hold {
	members := m.ofOwner(ctx)
	if len(holdsOf(members)) == 0 {
		return nil
	}
	return m.standFor(members).hold
}

// standFor returns what stands for members, the same each time.
func (m *InterProcessMultiLock) standFor(members []taken) *stand {
	holds := holdsOf(members)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stands = slices.DeleteFunc(m.stands, func(s *stand) bool {
		over := s.hold.ended() && !slices.Equal(s.hold.members, holds)
		if over {
			s.forget()
		}
		return over
	})
	at := slices.IndexFunc(m.stands, func(s *stand) bool {
		return slices.Equal(s.hold.members, holds)
	})
	if at < 0 {
		at = len(m.stands)
		m.stands = append(m.stands, newStand(members))
	}
	return m.stands[at]
}
