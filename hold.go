package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Hold is the handle of one acquisition of a lock, from the grant to its release or
// loss, and readable after that. Each acquisition has its own, also a re-entry, which
// shares path, token, Lost and Err with the others of its owner. A nil Hold (what a
// lock's Hold returns to a caller without one) and the zero Hold were never acquired:
// Lost is closed, Err matches ErrLockLost and ErrNotOwner, Path is "" and FencingToken 0.
type Hold struct {
	*grant // what was acquired; nil of the zero Hold

	// In which book it is, and in which stay and period of its owner: set before anybody
	// has the hold. All are zero of a lease and of a registration, which are nobody's; a
	// multi lock's has no stay, since each of its members has one.
	book   *book
	stay   *stay
	period uint64

	// Until as it was at its release, in Unix nanoseconds; 0: it was not released.
	untilAtRelease atomic.Int64
	// It was released, not lost, while other holds shared its grant: a later loss is
	// theirs. Set at its release, once its dependents have ended.
	keptByOthers atomic.Bool

	mu         sync.Mutex // guards what follows
	dependents []*dependent
}

// A dependent ends with a hold: a ctx of Context, or the hold of a multi lock.
type dependent struct {
	end func() // may be called again
	// takes back that the loss calls end. It is called once d has ended: of a ctx at
	// once, of a multi lock's hold only if others keep the grant; else a loss during the
	// release is still its own.
	stopOnLoss func() bool
	isHold     bool // a multi lock's: it can still be lost during the release
	index      int  // in dependents, while it is there; guarded as they are
}

// end releases h, if that was not done before (ok): it begins to release what no other
// hold shares. It touches nothing else.
func (h *Hold) end() (_ leaving, ok bool) {
	if !h.markReleased() {
		return leaving{path: h.lastLeaf().reporter.path, err: errReleased}, false
	}
	// Before the znode is deleted, by this release or another one: work under a ctx of
	// Context is to stop before another owner can begin. If code behind these ctxs
	// panics, the panic goes on, but the znode is deleted all the same.
	callOrElse(h.endDependents, func() { h.startLeaving() })
	return h.startLeaving(), true
}

// startLeaving begins to release what h had and no other hold shares.
func (h *Hold) startLeaving() leaving {
	last := h.book == nil || h.book.take(h) // a lease has no owner, and shares nothing
	if h.members != nil {                   // no two multi locks' holds share a grant
		h.dropDependents()
		return endAll(h.members)
	}
	loss := h.err()
	h.keptByOthers.Store(!last && loss == nil)
	h.dropDependents()
	switch {
	case h.keptByOthers.Load(): // the lock stays held
		return leaving{}
	case loss == nil:
		return leaving{
			path: h.reporter.path, grant: h.grant, awaitDelete: h.node.StartLeaving(),
		}
	case last:
		h.node.Withdraw() // the znode of a lost one may be there still
	}
	return leaving{path: h.reporter.path, err: loss}
}

// markReleased notes the release, once.
func (h *Hold) markReleased() (first bool) {
	return h.untilAtRelease.CompareAndSwap(0, h.Until().UnixNano())
}

// isReleased tells whether h itself was released; isPartReleased asks what it owns, too.
func (h *Hold) isReleased() bool { return h.untilAtRelease.Load() != 0 }

// keep has d end at the release of h, and at its loss; at once if that was before.
func (h *Hold) keep(d *dependent) {
	d.stopOnLoss = context.AfterFunc(h.lost, d.end)
	h.mu.Lock()
	d.index = len(h.dependents)
	h.dependents = append(h.dependents, d)
	h.mu.Unlock()
	if h.err() != nil || h.isPartReleased() {
		h.endDependent(d)
	}
}

// endDependent ends a dependent of h, which was released or lost.
func (h *Hold) endDependent(d *dependent) {
	if !d.isHold || h.keptByOthers.Load() {
		d.stopOnLoss() // or d would stay in memory for as long as the grant does
	}
	d.end()
}

// endDependents ends the ctxs of Context, and those of a multi lock's hold that owns h:
// it is not held any more without a member. On its return all have ended, even if another
// caller is at it: that may wait for a parent, which is asked. Where one panics, the
// others end all the same. The mutex is not held: a parent may use the hold.
func (h *Hold) endDependents() {
	h.mu.Lock()
	all := slices.Clone(h.dependents)
	h.mu.Unlock()
	fromLast(len(all), func(i int) { h.endDependent(all[i]) })
}

// dropDependents drops all dependents, which have ended: a caller may keep a Hold for
// long after its release.
func (h *Hold) dropDependents() {
	h.mu.Lock()
	all := h.dependents
	h.dependents = nil
	h.mu.Unlock()
	if h.keptByOthers.Load() {
		for _, d := range all {
			d.stopOnLoss()
		}
	}
}

// isPartReleased tells whether h was released, or a hold that it owns.
func (h *Hold) isPartReleased() bool {
	return h.isReleased() || slices.ContainsFunc(h.members, (*Hold).isPartReleased)
}

// scopes returns where a naming is about what h has acquired.
func (h *Hold) scopes() (all []scope) {
	if h.stay != nil {
		return []scope{{of: h.stay, period: h.period}}
	}
	for _, member := range h.members {
		all = append(all, member.scopes()...)
	}
	return all
}

// isZero tells whether h was never acquired.
func (h *Hold) isZero() bool { return h == nil || h.grant == nil }

// name is what an error calls the hold.
func (h *Hold) name() string { return cmp.Or(h.Path(), "a hold") }

// errReleased is the ErrNotOwner of a hold that was released.
var errReleased = fmt.Errorf("%w: the hold was released before", ErrNotOwner)

// Release ends this acquisition, on any goroutine and with any ctx, and no other one of
// its owner: the lock is released when the owner's last acquisition ends. Use it to
// release what [Acquire] returned. As in the lock's own Release, ctx bounds the wait for
// ZooKeeper's answer; a nil ctx is an error and releases nothing. After a loss it returns
// ErrLockLost. Once this acquisition has ended, even because another caller released the
// lock, Release returns ErrNotOwner and leaves alone what was acquired since; so it does
// for a nil or zero Hold and a term of an election. A multi lock's hold ends its
// acquisition of each member, and returns all errors joined.
func (h *Hold) Release(ctx context.Context) error {
	switch {
	case h.isZero():
		return fmt.Errorf("recipes: release a hold: %w", errZeroHold)
	case ctx == nil:
		return fmt.Errorf("recipes: release a hold: %w", errNilCtx)
	case h.unreleasable != nil:
		return wrap("release", h.reporter.path, h.unreleasable)
	}
	l, _ := h.end()
	return l.finish(ctx, nil)
}

// Path returns the znode that stands for this acquisition.
func (h *Hold) Path() string {
	if h.isZero() {
		return ""
	}
	return h.path()
}

// FencingToken returns a number that grows with every later holder of the lock; only
// owners of one cached entry ([WithCaching]) share it. Use it to keep out former holders:
// send it with each write, and let the store reject a token lower than one it has seen,
// unless concurrent holders (readers, leases) write to it. It is a zxid, at least the
// czxid of this hold's znode and below that of every znode that joins later. So it grows
// even if the lock's path is recreated, and compares with the czxid of a Java holder's
// znode. A multi lock's hold has the greatest token of its members, comparable only with
// multi locks of the same members; see [InterProcessMultiLock.Holds].
func (h *Hold) FencingToken() int64 {
	if h.isZero() {
		return 0
	}
	return h.token
}

// Lost returns a channel that closes as soon as the lock can no longer be relied on. Use
// it to stop the protected work. It closes at once when the session is known to have
// ended, the znode was deleted or the connection was closed. Otherwise it closes before
// the server can end the session for lack of contact, with at least a twentieth of the
// session timeout left for clock differences and notification. This assumes sessions of
// at least two server ticks; see [WithServerTick]. WithLossMargin closes it that much
// earlier, WithMaxHold when the hold has lasted that long; Release closes it only if the
// lock turns out to be lost. Time is the monotonic clock, or the wall clock if that moved
// further: a suspended process or machine notices just after resuming.
func (h *Hold) Lost() <-chan struct{} {
	if h.isZero() {
		return alwaysLost
	}
	return h.lost.Done()
}

// alwaysLost is closed: nothing depends on the zero Hold.
var alwaysLost = func() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// Err returns nil while no loss is known, then why, and always the same; that matches
// ErrLockLost.
func (h *Hold) Err() error {
	if h.isZero() {
		return errNoHold
	}
	return h.err()
}

// Until returns when Lost closes if the servers confirm nothing more until then,
// WithLossMargin and WithMaxHold counted. It moves on with each confirmation, never past
// WithMaxHold. Use it before a step that cannot be interrupted: is there time for it?
// A deletion of the znode, or the end of the session, can still come before it. After a
// loss it is when that was known, after Release what it was then. Of a multi lock it is
// the earliest of its members', of a nil or zero Hold the zero time. It sends nothing.
func (h *Hold) Until() time.Time {
	if h.isZero() {
		return time.Time{}
	}
	if kept := h.untilAtRelease.Load(); kept != 0 {
		return time.Unix(0, kept)
	}
	return h.until()
}

// Context returns a child of parent that is cancelled when the lock is lost, with Err as
// its cause, and when this hold is released (a multi lock's: or its acquisition of one
// member), with a cause that matches ErrNotOwner. For this lock it carries the hold's
// owner, for as long as that owner goes on to hold anything of the lock: goroutines that
// have it may re-enter. After that, even if that owner acquires the lock again, it
// carries parent's owner, as for every other lock. The ctx of a lease or term carries
// none. If the hold lasts longer than the work, let parent end with the work: the hold
// keeps the ctx until then. A release that gets it waits for a second at most.
func (h *Hold) Context(parent context.Context) context.Context {
	if parent == nil {
		parent = context.Background()
	}
	if h.isZero() {
		ctx, end := context.WithCancelCause(parent)
		end(errNoHold)
		return ctx
	}
	ctx, d := h.context(parent)
	context.AfterFunc(ctx, func() { h.forget(d) }) // else a long hold would keep it
	return ctx
}

// context is Context for a ctx that h may keep until its release. The cause of its end is
// the loss, if there is one: a caller that releases because of it may be faster than what
// watches for it.
func (h *Hold) context(parent context.Context) (context.Context, *dependent) {
	ctx, cancel := context.WithCancelCause(withOwners(parent, h.scopes()...))
	d := &dependent{end: func() { cancel(cmp.Or(h.err(), errReleased)) }}
	h.keep(d)
	return ctx, d
}

// forget lets go of what has ended, in a time that does not grow with the number of them.
func (h *Hold) forget(d *dependent) {
	d.stopOnLoss()
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.dependents) - 1
	if d.index > last || h.dependents[d.index] != d { // all were dropped
		return
	}
	moved := h.dependents[last]
	h.dependents[d.index], moved.index = moved, d.index
	h.dependents = slices.Delete(h.dependents, last, last+1)
}

// CheckOp returns an operation that succeeds only while the lock is held, to put first in
// your own transaction; Multi does so by itself. Its path is the server's: with a chroot,
// use Client.Unwrap. Learn the outcome before Release: after it the check passes until
// the znode is deleted, or as long as it is cached, even while the next owner in this
// process has the lock. After WithMaxHold has ended the hold it never succeeds.
func (h *Hold) CheckOp() *zk.CheckVersionRequest {
	if h.isZero() {
		return &zk.CheckVersionRequest{Version: noVersion}
	}
	g := h.lastLeaf()
	op := &zk.CheckVersionRequest{
		Path: serverPath(g.reporter.conn, g.path()), Version: g.node.Version(),
	}
	if errors.Is(h.Err(), ErrHoldExpired) ||
		op.Version >= 0 && (h.isReleased() || h.Err() != nil) {
		op.Version = noVersion
	}
	return op
}

// noVersion is the version of a check that no znode has: versions count from 0.
const noVersion = math.MinInt32
