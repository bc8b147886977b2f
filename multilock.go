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

// InterProcessMultiLock is several locks that are acquired together, in the order in
// which they were given, or not at all (Curator's InterProcessMultiLock). Whoever takes
// the same locks in several multi locks gives them in the same order everywhere, else two
// of them can wait for each other for ever.
//
// It is safe for concurrent use where its members are, as all locks here are, and
// reentrant where they are. Its owner is the owner of each member: whoever holds the
// multi lock can re-enter a member alone.
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

// holdFor returns the hold of ctx's owner. It is false where lock does not tell its
// holds, as a multi lock does not whose members do not.
func holdFor(ctx context.Context, lock InterProcessLock) (hold *Hold, tells bool) {
	if !tellsHolds(lock) {
		return nil, false
	}
	return lock.(holder).Hold(ctx), true
}

func tellsHolds(lock InterProcessLock) bool {
	if m, isMulti := lock.(*InterProcessMultiLock); isMulti {
		return slices.ContainsFunc(m.locks, tellsHolds)
	}
	_, tells := lock.(holder)
	return tells
}

// NewInterProcessMultiLock returns a multi lock of an InterProcessMutex for each path. It
// refuses no paths at all, a path given twice, and what NewInterProcessMutex refuses.
func NewInterProcessMultiLock(
	conn Conn, paths []string, opts ...Option,
) (*InterProcessMultiLock, error) {
	const op = "NewInterProcessMultiLock"
	if len(paths) == 0 {
		return nil, fmt.Errorf("recipes: %s: paths: there are none", op)
	}
	var locks []InterProcessLock
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return nil, wrap(op, path, errors.New("paths: it is given twice"))
		}
		lock, err := newMutex(conn, path, opts)
		if err != nil {
			return nil, refuse(op, path, err)
		}
		locks = append(locks, lock)
	}
	return NewInterProcessMultiLockOf(locks...), nil
}

// NewInterProcessMultiLockOf returns a multi lock of locks of any kind, also of the
// caller's own. With no lock, a nil one or one given twice, every Acquire fails.
func NewInterProcessMultiLockOf(locks ...InterProcessLock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{locks: slices.Clone(locks)}
	if len(locks) == 0 {
		m.bad = errors.New("recipes: NewInterProcessMultiLockOf: locks: there are none")
	}
	for i, lock := range locks {
		switch {
		case isNil(lock):
			m.bad = fmt.Errorf(
				"recipes: NewInterProcessMultiLockOf: locks: number %d is nil", i,
			)
		case reflect.ValueOf(lock).Comparable() && slices.Contains(m.locks[:i], lock):
			m.bad = fmt.Errorf(
				"recipes: NewInterProcessMultiLockOf: locks: number %d is given twice", i,
			)
		}
	}
	return m
}

func isNil(lock InterProcessLock) bool {
	v := reflect.ValueOf(lock)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Acquire implements InterProcessLock. It returns when all members are held: if one is
// lost while another one is waited for, it gives all back and begins anew. At the first
// member that fails it releases those before it, in reverse, and returns all errors
// joined. In an outage it waits for these releases no longer than 80 ms; they go on in
// the background.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) error {
	return m.acquireWithin(ctx, limit{})
}

// AcquireTimeout implements InterProcessLock, with one deadline for all members. A member
// of the caller's own kind is tried for as long as it takes.
func (m *InterProcessMultiLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return heldOrBusy(ctx, m.acquireWithin(ctx, newLimit(timeout)))
}

// acquireWithin acquires all members, again and again unless they are to be tried once.
func (m *InterProcessMultiLock) acquireWithin(ctx context.Context, l limit) error {
	if m.bad != nil {
		return m.bad
	}
	if err := m.lostBy(ctx); err != nil {
		return err
	}
	for {
		holds, err := m.acquireAll(ctx, l)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(holds, (*Hold).ended) {
			return nil
		}
		// While the caller waited for one member, another one was lost, and somebody else
		// may have it by now. Like any other wait this one begins anew.
		switch err := giveBack(ctx, m.locks); {
		case err != nil:
			return err
		case l.once:
			return fmt.Errorf(
				"%w: a member was lost while the others were tried", ErrBusy,
			)
		}
	}
}

// lostBy tells of a member that ctx's owner has lost and not released. Reentrant members
// tell it themselves.
func (m *InterProcessMultiLock) lostBy(ctx context.Context) error {
	for _, lock := range m.locks {
		member, ok := lock.(*InterProcessSemaphoreMutex)
		if !ok {
			continue
		}
		if h := member.holdOf(ownerOf(ctx, member)); h != nil && h.Err() != nil {
			return wrap("acquire", member.semaphore.path, h.Err())
		}
	}
	return nil
}

// acquireAll acquires all members once, and returns the holds of those that tell them.
// Where one is not to be had it gives back those that it got, also where an observer
// panics or ends the goroutine.
func (m *InterProcessMultiLock) acquireAll(
	ctx context.Context, l limit,
) (holds []*Hold, err error) {
	got := 0
	defer func() {
		if got == len(m.locks) {
			return
		}
		back := giveBack(ctx, m.locks[:got])
		if back != nil && errors.Is(err, ErrBusy) { // which would hide the other
			err = nil
		}
		holds, err = nil, errors.Join(err, back)
	}()
	for _, lock := range m.locks {
		if err := acquireWithin(ctx, lock, l); err != nil {
			return nil, err
		}
		got++
		if hold, ok := holdFor(ownOnlyFor(ctx, lock), lock); ok && hold != nil {
			holds = append(holds, hold)
		}
	}
	return holds, nil
}

// giveBackWithin is what a caller who did not get all members can spare for giving back
// those that it got.
const giveBackWithin = 80 * time.Millisecond

var errGivingBack = errors.New(
	"not all members were acquired, and there is no time to wait for the release of " +
		"those that were",
)

// giveBack releases locks in a short time, also in an outage. What is not confirmed by
// then goes on in the background, and is no error. Nor is that one was lost before.
func giveBack(ctx context.Context, locks []InterProcessLock) error {
	if len(locks) == 0 {
		return nil
	}
	ctx = ownOnly(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeoutCause(ctx, giveBackWithin, errGivingBack)
	defer cancel()
	errs := beginAll(ctx, locks, giveBackWithin/time.Duration(len(locks)))(ctx)
	noMatter := []error{errGivingBack, context.DeadlineExceeded, ErrLockLost}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		return slices.ContainsFunc(noMatter, func(e error) bool {
			return errors.Is(err, e)
		})
	})...)
}

// Release implements InterProcessLock. It releases all members, whatever becomes of each,
// and returns all errors joined. It begins with the last, but waits for none before it
// goes on to the next: so it waits no longer than for one, also in an outage, and their
// znodes can go in any order. (That does no harm: whoever waits for several of them gets
// the first a moment earlier.) Only a member of the caller's own kind is waited for in
// its turn.
func (m *InterProcessMultiLock) Release(ctx context.Context) error {
	return releaseOne(ctx, m)
}

// beginRelease implements releaser.
func (m *InterProcessMultiLock) beginRelease(
	ctx context.Context,
) (finish func(context.Context) error) {
	if m.bad != nil {
		return func(context.Context) error { return m.bad }
	}
	releaseAll := beginAll(ctx, m.locks, 0)
	return func(ctx context.Context) error { return errors.Join(releaseAll(ctx)...) }
}

// IsAcquiredInThisProcess reports whether all members are.
func (m *InterProcessMultiLock) IsAcquiredInThisProcess() bool {
	return m.bad == nil &&
		!slices.ContainsFunc(m.locks, func(lock InterProcessLock) bool {
			return !lock.IsAcquiredInThisProcess()
		})
}

// Holds returns the hold of each member in the order of the members, nil where ctx's
// owner does not hold all of them. One that was lost is among them until it is released.
// A member of the caller's own kind that has no Hold method is left out.
//
// A store that one member guards takes the token of that member's hold, not the one of
// Hold.
func (m *InterProcessMultiLock) Holds(ctx context.Context) []*Hold {
	var holds []*Hold
	for _, lock := range m.locks {
		hold, ok := holdFor(ctx, lock)
		switch {
		case !ok:
		case hold == nil:
			return nil
		default:
			holds = append(holds, hold)
		}
	}
	return holds
}

// Hold returns a hold that stands for all members: it is lost when one of them is, has
// the greatest token, and the path and check of the last. It is nil where ctx's owner
// does not hold all of them, or none of them tells its hold. It stays the owner's until
// it is released, also when it is lost.
//
// Its token compares only with those of multi locks of the same members; see
// Hold.FencingToken.
func (m *InterProcessMultiLock) Hold(ctx context.Context) *Hold {
	holds := m.Holds(ctx)
	if len(holds) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stands = slices.DeleteFunc(m.stands, func(h *Hold) bool {
		return h.ended() && !slices.Equal(h.members, holds)
	})
	at := slices.IndexFunc(m.stands, func(h *Hold) bool {
		return slices.Equal(h.members, holds)
	})
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
	lose := func(h *Hold) { cancel(h.Err()) }
	for _, h := range holds {
		all.token = max(all.token, h.token)
		if h.Err() != nil {
			lose(h)
		}
		context.AfterFunc(h.lost, func() { lose(h) })
	}
	return all
}
