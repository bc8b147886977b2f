package recipes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// A releaser undoes the acquisitions that a hold stands for.
type releaser interface {
	// beginRelease is a beginner. It undoes one of them, and nothing that was acquired
	// since; with none left, the error matches ErrNotOwner.
	beginRelease(ctx context.Context) (finish func(context.Context) error)
	// release is releaseOne of that.
	release(ctx context.Context) error
	// left tells whether one is left to undo, lost or not.
	left() bool
	// shares is for whom a ctx stands that carries the hold's owner.
	shares() []perLock
}

// errReleased is the ErrNotOwner of a hold with nothing left to undo.
var errReleased = fmt.Errorf("%w: the hold was released before", ErrNotOwner)

// name is what an error calls the hold.
func (h *Hold) name() string { return cmp.Or(h.Path(), "a hold") }

// left tells whether there is anything left to undo. A Hold that is none has nothing.
func (h *Hold) left() bool { return h.releaser != nil && h.releaser.left() }

// Release undoes one acquisition of the hold's owner, on any goroutine and with any ctx.
// Use it to release what [Acquire] returned. As in the lock's own Release, ctx bounds the
// wait for ZooKeeper's answer; a nil ctx is an error and releases nothing. Acquisitions
// that share the hold, such as re-entries, are counted, not distinguished. After a loss
// it returns ErrLockLost once for each. If none is left, even because another caller
// released the lock, it returns ErrNotOwner and leaves alone what was acquired since; so
// it does for a nil or zero Hold and a term of an election. For a multi lock it undoes
// one acquisition of each member and returns all errors joined; see docs/holds.md.
func (h *Hold) Release(ctx context.Context) error {
	switch {
	case h == nil || h.releaser == nil:
		return fmt.Errorf("recipes: release a hold: %w", errZeroHold)
	case ctx == nil:
		return fmt.Errorf("recipes: release a hold: %w", errNilCtx)
	}
	return h.releaser.release(ctx)
}

// A stand is the releaser of a hold that has no znode of its own: it stands for those of
// a multi lock's members, or for a custom lock.
type stand struct {
	hold  *Hold
	stops []func() bool // see forget
	parts []taken
	once  bool         // only one acquisition has this hold
	count atomic.Int64 // of acquisitions that are known of and not released
	spent atomic.Bool  // all that were known of are released, and no other was made since

	// what a Do or an Acquire has found out of the owners of locks behind custom ones;
	// nil: nothing
	acquired atomic.Pointer[[]perLock]
}

// newStand returns what stands for parts: its hold is lost when one of them is, and has
// the greatest token, and the path of the last one that tells its hold.
func newStand(parts []taken) *stand {
	s := &stand{parts: parts}
	s.hold, s.stops = newHoldOf(holdsOf(parts))
	s.hold.releaser = s
	return s
}

// renew is for another acquisition of the parts: known of, so that the hold counts it, or
// one of those that it may only release.
func (s *stand) renew(known int64) {
	s.count.Add(known)
	s.spent.Store(false)
}

// standForOnce returns what was taken of a custom lock as released by its hold.
func standForOnce(custom taken) taken {
	s := newStand([]taken{custom})
	s.once = true
	s.count.Store(1)
	return taken{hold: s.hold}
}

// holdsOf returns the holds of those that tell them.
func holdsOf(parts []taken) (holds []*Hold) {
	for _, part := range parts {
		if part.hold != nil {
			holds = append(holds, part.hold)
		}
	}
	return holds
}

// newHoldOf returns the hold that members are together. With none it is never lost.
// stops end the watch for its loss.
func newHoldOf(members []*Hold) (all *Hold, stops []func() bool) {
	lost, cancel := context.WithCancelCause(context.Background())
	all = &Hold{lost: lost, members: members}
	lose := func(h *Hold) { cancel(h.Err()) }
	for _, h := range members {
		all.path, all.conn = h.path, h.conn
		all.token = max(all.token, h.token)
		if h.Err() != nil {
			lose(h)
		}
		if h.lost != nil { // else it is a zero Hold of a custom lock
			stops = append(stops, context.AfterFunc(h.lost, func() { lose(h) }))
		}
	}
	return all, stops
}

// forget ends what newHoldOf has begun, for a hold that is over: a member that goes on
// would keep it.
func (s *stand) forget() {
	for _, stop := range s.stops {
		stop()
	}
}

// left implements releaser.
func (s *stand) left() bool {
	return s.count.Load() > 0 ||
		!s.once && !s.spent.Load() && slices.ContainsFunc(s.hold.members, (*Hold).left)
}

// countDown takes one off the count; false: it was 0.
func (s *stand) countDown() bool {
	for {
		n := s.count.Load()
		if n == 0 {
			return false
		}
		if s.count.CompareAndSwap(n, n-1) {
			s.spent.Store(n == 1)
			return true
		}
	}
}

// beginRelease implements releaser. If anything is left, all parts are released: a custom
// one may have no hold that tells whether it is. What was acquired by the multi lock's
// own methods is not counted, but is known to have been made (spent): what else the owner
// has of the members is another hold's.
func (s *stand) beginRelease(ctx context.Context) (finish func(context.Context) error) {
	if !s.countDown() && !s.left() {
		return func(context.Context) error {
			return fmt.Errorf("recipes: release %s: %w", s.hold.name(), errReleased)
		}
	}
	if s.once {
		s.forget()
	}
	begin := make([]beginner, len(s.parts))
	for i, part := range s.parts {
		begin[i] = part.beginner(0)
	}
	return beginJoined(withShares(ctx, s.shares()), begin)
}

// release implements releaser.
func (s *stand) release(ctx context.Context) error {
	return releaseOne(ctx, s.beginRelease)
}

// shares implements releaser.
func (s *stand) shares() (all []perLock) {
	for _, h := range s.hold.members {
		if h.releaser != nil {
			all = append(all, h.releaser.shares()...)
		}
	}
	if acquired := s.acquired.Load(); acquired != nil {
		all = append(all, *acquired...)
	}
	return all
}
