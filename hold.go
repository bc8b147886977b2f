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
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Hold is one acquisition of a lock, from the moment at which it is held to its release
// or loss; re-entries share it. It stays readable after that. A Hold is safe for
// concurrent use.
//
// A nil Hold, which a lock's method Hold returns to who does not hold it, is one that was
// never acquired, as the zero Hold is: Lost is closed, Err matches ErrNotOwner, the path
// is "" and the fencing token 0.
type Hold struct {
	path       string
	serverPath string
	token      int64
	lost       context.Context // done, with the cause, when the lock is lost
	releaser   releaser        // set before anybody has the hold

	members []*Hold       // those that it stands for, as a multi lock's does; else nil
	stops   []func() bool // see forget

	// Of the hold of one znode only.
	conn  Conn
	node  backing
	since time.Time
	steps *steps

	ending   ending    // what the observer is told of the end
	tellLoss sync.Once // guards loss
	loss     error     // what Err returns once lost is done: always the same value
}

// A backing is what a hold rests on: a znode of its own, or a share of one that is kept.
type backing interface {
	path() string
	// beside is the znode beside which the owner of a write lock may read, nil where the
	// hold was released meanwhile.
	beside() *znode.Node
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

func (n ownZnode) path() string        { return n.Path }
func (n ownZnode) beside() *znode.Node { return n.Node }

func (s sharedZnode) path() string        { return s.Path }
func (s sharedZnode) beside() *znode.Node { return s.Beside() }

// backedBy is the backing by a znode of its own, if there is no error.
func backedBy(node *znode.Node, err error) (backing, error) {
	if err != nil {
		return nil, err
	}
	return ownZnode{node}, nil
}

// newHold begins a hold that rests on node.
func newHold(conn Conn, node backing, steps *steps) *Hold {
	path := node.path()
	return &Hold{
		path: path, serverPath: serverPath(conn, path), token: node.Token(),
		lost: node.Lost(),
		conn: conn, node: node, since: time.Now(), steps: steps,
	}
}

// tellAcquired tells of a hold that was acquired after a wait, and from then on of its
// loss.
func (h *Hold) tellAcquired(ctx context.Context, waited time.Duration) {
	h.steps.tell(ctx, Event{
		Kind: EventAcquired, Node: h.path, Elapsed: waited, Token: h.token,
	})
	if h.steps.observer == nil {
		return
	}
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
	h.steps.tell(ctx, Event{
		Kind: kind, Node: h.path, Elapsed: time.Since(h.since), Err: err,
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
		switch err := left(within); {
		case err == nil:
			h.tellReleased(ctx, nil)
			return nil
		case h.Err() != nil:
			// it may have been gone
			if before == nil && !errors.Is(h.Err(), znode.ErrGone) {
				return fmt.Errorf("while it was being released: %w", h.Err())
			}
			return h.Err()
		case zkconn.Final(err):
			h.tellReleased(ctx, err)
			return err
		default:
			err = zkconn.Tell(err)
			h.tellReleased(ctx, err)
			return fmt.Errorf(
				"not confirmed yet, %s is being deleted in the background: %w", h.path,
				err,
			)
		}
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

// FencingToken returns a zxid, at least that znode's czxid and below the czxid of every
// znode that joins later. So it grows with every later holder of the lock, also after the
// lock's path was deleted and made anew (sequence numbers do not), and compares with the
// czxid of a Java holder's znode. Only owners of one cached queue entry (WithCaching)
// share a token. A store that the lock protects refuses what comes with a token lower
// than one that it has seen.
//
// Those who hold at the same time, readers or leases, have different tokens, as a rule. A
// store that all of them write to must not refuse the lower one: the token fences only
// where one holds at a time.
//
// The hold of a multi lock has the greatest token of its members. That one compares only
// with tokens of multi locks of the same members: a later holder of one member alone can
// have a lower one, since it may have joined that member's queue before the multi lock
// joined another's. A store that one member guards takes that member's token
// (InterProcessMultiLock.Holds), from everybody.
func (h *Hold) FencingToken() int64 {
	if h == nil {
		return 0
	}
	return h.token
}

// Lost returns a channel that is closed as soon as the lock can no longer be relied on:
// at once when the session is known to have ended, the znode was deleted or the
// connection was closed, and otherwise before the server can end the session because it
// has not heard from this process. At that moment at least a twentieth of the session
// timeout is left, for clocks that differ and for the time it takes to tell. That
// presumes that a session lasts for at least two of the servers' ticks; see
// WithServerTick. With WithLossMargin it closes that much earlier, and with WithMaxHold
// when the hold has lasted so long. The time is this process's monotonic clock, or its
// wall clock where that has moved farther: a process or a machine that was stopped
// meanwhile finds out just after it runs again. A Release does not close it, unless the
// lock turns out to be lost.
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

// Err returns nil while the lock is not known to be lost, and after that why it is,
// matching ErrLockLost.
func (h *Hold) Err() error {
	if h.isZero() {
		return errZeroHold
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

// Context returns a ctx that is parent's child and is cancelled, with Err as its cause,
// when the lock is lost. Release does not cancel it. Calling cancel, when what runs with
// it is complete, frees what it takes.
//
// The ctx carries the hold's owner for this lock, as the ctx of Do's fn does: code that
// has it may re-enter the lock and release what it re-entered, on any goroutine. Of a
// read/write lock that is so on both sides, of a multi lock in each member. At every
// other lock it stands for whatever parent stands for. After the release the ctx still
// stands for that owner: goroutines that acquire the lock with it then are one owner, and
// do not exclude each other. The ctx of a lease or of a term carries no owner.
func (h *Hold) Context(
	parent context.Context,
) (ctx context.Context, cancel context.CancelFunc) {
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

// Check returns the operation to put first in a transaction of one's own, which ZooKeeper
// then does only if the lock is still held; Multi does that by itself. The path in it is
// the one that the server sees, so with a Client that has a chroot the transaction goes
// through Client.Unwrap.
//
// Such a transaction must have an outcome that is known before Release: the next owner in
// this process has the lock from then on, and the check passes for as long as the delete
// of the znode takes, or its place is kept. (One of Multi's is waited for.)
//
// What Check returns of a hold that WithMaxHold has ended never passes: ZooKeeper answers
// zk.ErrBadVersion while the znode is there, and zk.ErrNoNode after that.
func (h *Hold) Check() *zk.CheckVersionRequest {
	switch {
	case h == nil:
		return &zk.CheckVersionRequest{Version: noVersion}
	case h.lost == nil || errors.Is(h.Err(), ErrHoldExpired):
		return &zk.CheckVersionRequest{Path: h.serverPath, Version: noVersion}
	}
	return &zk.CheckVersionRequest{Path: h.serverPath, Version: anyVersion}
}

// The versions of a check: one that matches whatever the znode has, and one that none
// has, since versions count from 0.
const (
	anyVersion = -1
	noVersion  = math.MinInt32
)
