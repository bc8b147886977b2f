package recipes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/lockcache"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Hold is one acquisition of a lock, from the grant to its release or loss, and
// readable after that; re-entries share it. A nil Hold (what a lock's Hold returns to a
// caller without one) and the zero Hold were never acquired: Lost is closed, Err matches
// ErrLockLost and ErrNotOwner, Path is "" and FencingToken 0.
type Hold struct {
	path     string
	conn     Conn // that path is of
	token    int64
	lost     context.Context // done, with the cause, when the lock is lost
	releaser releaser        // set before anybody has the hold

	members []*Hold // those that it stands for, as a multi lock's does; else nil

	// Of the hold of one znode only.
	node  backing
	steps *steps

	ending   ending    // what the observer is told of the end
	tellLoss sync.Once // guards loss
	loss     error     // what Err returns once lost is done: always the same value
}

// A backing is what a hold rests on: a znode of its own, or a share of one that is kept.
type backing interface {
	path() string
	// under is the znode under which the owner of a write lock may read, nil where the
	// hold was released meanwhile.
	under() *znode.Node
	Session() int64
	Token() int64
	Lost() context.Context
	Cause() error
	// Check asks the connection whether it can be relied on at this moment. If not,
	// although nobody may have been told yet, it is lost.
	Check() error
	Lose(cause error)
	WatchSelf()
	Guard() (settled func(), ok bool)
	StartLeaving() (left func(ctx context.Context) error)
	Withdraw()
}

type (
	ownZnode    struct{ *znode.Node }
	sharedZnode struct{ *lockcache.Share }
)

func (n ownZnode) path() string       { return n.Path }
func (n ownZnode) under() *znode.Node { return n.Node }

func (s sharedZnode) path() string       { return s.Path }
func (s sharedZnode) under() *znode.Node { return s.Beside() }

// backedBy is the backing by a znode of its own, if there is no error.
func backedBy(node *znode.Node, err error) (backing, error) {
	if err != nil {
		return nil, err
	}
	return ownZnode{node}, nil
}

// restOn makes h, which is new, a hold that rests on node.
func (h *Hold) restOn(node backing, conn Conn, steps *steps) *Hold {
	h.path, h.token, h.lost = node.path(), node.Token(), node.Lost()
	h.conn, h.node, h.steps = conn, node, steps
	steps.grant()
	return h
}

// tellAcquired tells of a hold that was acquired after a wait, and from then on of its
// loss.
func (h *Hold) tellAcquired(ctx context.Context, waited time.Duration) {
	h.steps.emit(ctx, Event{
		Kind: EventAcquired, Node: h.path, Elapsed: waited, Token: h.token,
	})
	ctx = context.WithoutCancel(ctx)
	context.AfterFunc(h.lost, func() {
		if h.ending.lost() {
			h.tellEnd(ctx, EventLost, h.Err())
		}
	})
}

// tellReleased tells of a release, unless a loss was told before.
func (h *Hold) tellReleased(ctx context.Context, err error) {
	if h.steps.observer == nil {
		return
	}
	if told, ok := h.ending.released(); ok {
		returned := false
		defer func() { told(returned) }()
		h.tellEnd(ctx, EventReleased, err)
		returned = true
	}
}

func (h *Hold) tellEnd(ctx context.Context, kind EventKind, err error) {
	h.steps.emit(ctx, Event{
		Kind: kind, Node: h.path, Elapsed: time.Since(h.steps.granted), Err: err,
	})
}

// ended tells whether h, or one that it stands for, was released or lost.
func (h *Hold) ended() bool {
	if h.node == nil {
		return slices.ContainsFunc(h.members, (*Hold).ended)
	}
	return h.node.Cause() != nil
}

// hasEnded is ended, and also asks the connection, which may not have told yet.
func (h *Hold) hasEnded() bool {
	if h.node == nil {
		return slices.ContainsFunc(h.members, (*Hold).hasEnded)
	}
	return h.ended() || h.node.Check() != nil
}

// beginLeaving is a beginner: it sends the delete of the znode, and finish waits for the
// answer until its ctx is done, and tells what became of it.
func (h *Hold) beginLeaving(
	ctx context.Context,
) (finish func(ctx context.Context) error) {
	before := h.Err()
	left := h.node.StartLeaving()
	return func(within context.Context) error {
		return h.tellLeft(ctx, left(within), before)
	}
}

// leave is both at once, for a hold that is released alone.
func (h *Hold) leave(ctx context.Context) error {
	before := h.Err()
	left := h.node.StartLeaving()
	within, cancel := forRelease(ctx)
	defer cancel()
	return h.tellLeft(ctx, left(within), before)
}

// tellLeft tells how a release has ended, and returns that. before is what was known of a
// loss as it began.
func (h *Hold) tellLeft(ctx context.Context, err, before error) error {
	switch {
	case err == nil:
		h.tellReleased(ctx, nil)
		return nil
	case h.Err() != nil:
		// it may have been gone
		if before == nil && !errors.Is(h.Err(), znode.ErrGone) {
			return fmt.Errorf("while it was being released: %w", h.Err())
		}
		return h.Err()
	case outcome.Final(err):
		h.tellReleased(ctx, err)
		return err
	default:
		err = outcome.WithCause(err)
		h.tellReleased(ctx, err)
		return fmt.Errorf(
			"release not confirmed; %s is being deleted in the background: %w",
			h.path, err,
		)
	}
}

// isZero tells whether h was never acquired.
func (h *Hold) isZero() bool { return h == nil || h.lost == nil }

// Path returns the znode that stands for this acquisition.
func (h *Hold) Path() string {
	if h == nil {
		return ""
	}
	return h.path
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
	if h == nil {
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
		return over.Done()
	}
	return h.lost.Done()
}

// over is done: nothing depends on the zero Hold.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Err returns nil while no loss is known, then why; that matches ErrLockLost.
func (h *Hold) Err() error {
	if h.isZero() {
		return errNoHold
	}
	for _, member := range h.members {
		if err := member.Err(); err != nil {
			return err
		}
	}
	if h.node == nil || h.lost.Err() == nil {
		return nil
	}
	h.tellLoss.Do(func() { h.loss = lost(h.path, context.Cause(h.lost)) })
	return h.loss
}

// Context returns a child of parent that is cancelled, with Err as its cause, when the
// lock is lost, not when it is released. Call cancel when the work is done. For this lock
// the ctx carries the hold's owner, also after release; for every other lock, parent's.
// The ctx of a lease or term carries none.
func (h *Hold) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	if h != nil && h.releaser != nil {
		parent = withShares(parent, h.releaser.shares())
	}
	ctx, end := context.WithCancelCause(parent)
	if err := h.Err(); err != nil {
		end(err)
	}
	if h.isZero() {
		return ctx, func() { end(nil) }
	}
	stop := context.AfterFunc(h.lost, func() { end(h.Err()) })
	return ctx, func() {
		stop()
		end(nil)
	}
}

// CheckOp returns an operation that succeeds only while the lock is held, to put first in
// your own transaction; Multi does so by itself. Its path is the server's: with a chroot,
// use Client.Unwrap. Learn the outcome before Release: after it the check passes until
// the znode is deleted, or as long as it is cached, even while the next owner in this
// process has the lock. After WithMaxHold has ended the hold it never succeeds.
func (h *Hold) CheckOp() *zk.CheckVersionRequest {
	switch {
	case h == nil:
		return &zk.CheckVersionRequest{Version: noVersion}
	case h.lost == nil || errors.Is(h.Err(), ErrHoldExpired):
		return &zk.CheckVersionRequest{Path: h.serverPath(), Version: noVersion}
	}
	return &zk.CheckVersionRequest{Path: h.serverPath(), Version: anyVersion}
}

// serverPath is the path as the server sees it, "" of a hold of nothing.
func (h *Hold) serverPath() string {
	if h.path == "" {
		return ""
	}
	return serverPath(h.conn, h.path)
}

// The versions of a check: one that matches whatever the znode has, and one that none
// has, since versions count from 0.
const (
	anyVersion = -1
	noVersion  = math.MinInt32
)
