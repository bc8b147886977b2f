package recipes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
)

// A Hold is one acquisition of a lock, from the moment at which it is held to its release or loss; re-entries share it. It
// stays readable after that. Safe for concurrent use.
type Hold struct {
	path       string
	serverPath string
	token      int64
	lost       context.Context // done, with the cause, when the lock is lost

	members []*Hold // of a multi lock's hold only: those that it stands for

	// Of the hold of one znode only.
	conn     Conn
	node     *seqnode.Node
	lock     string // the lock's path
	since    time.Time
	observer func(Event)
}

// newHold begins the hold of a znode in the queue of a lock, after a wait.
func newHold(conn Conn, lock string, node *seqnode.Node, observer func(Event), waited time.Duration) *Hold {
	h := &Hold{
		path: node.Path, serverPath: serverPath(conn, node.Path), token: node.Token(), lost: node.Lost(),
		conn: conn, node: node, lock: lock, since: time.Now(), observer: observer,
	}
	h.observer(Event{Kind: EventAcquired, Path: lock, Node: h.path, Elapsed: waited, Token: h.token})
	context.AfterFunc(h.lost, func() { h.tell(EventLost, h.Err()) })
	return h
}

// ended tells whether h, or one that it stands for, was released or lost.
func (h *Hold) ended() bool {
	if h.node == nil {
		return slices.ContainsFunc(h.members, (*Hold).ended)
	}
	return h.node.Cause() != nil
}

func (h *Hold) tell(kind EventKind, err error) {
	h.observer(Event{Kind: kind, Path: h.lock, Node: h.path, Elapsed: time.Since(h.since), Err: err})
}

// release deletes the znode, and waits for the answer as InterProcessLock.Release promises.
func (h *Hold) release(ctx context.Context) error {
	if ctx.Err() != nil { // most likely it will be answered all the same
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(context.WithoutCancel(ctx), time.Second, context.Cause(ctx))
		defer cancel()
	}
	switch err := h.node.Leave(ctx); {
	case err == nil:
		h.tell(EventReleased, nil)
		return nil
	case h.Err() != nil:
		return h.Err()
	case session.Final(err):
		h.tell(EventReleased, err)
		return fmt.Errorf("delete %s: %w", h.path, err)
	default:
		h.tell(EventReleased, err)
		return fmt.Errorf("not confirmed yet, %s is being deleted in the background: %w", h.path, err)
	}
}

// Path returns the znode that stands for this acquisition.
func (h *Hold) Path() string { return h.path }

// FencingToken returns a zxid, at least that znode's czxid and below the czxid of every znode that joins later. So it grows
// with every later holder of the lock, also after the lock's path was deleted and made anew (sequence numbers do
// not), and compares with the czxid of a Java holder's znode. A store that the lock protects refuses what comes with a
// token lower than one that it has seen.
func (h *Hold) FencingToken() int64 { return h.token }

// Lost returns a channel that is closed as soon as the lock can no longer be relied on: at once when the session is
// known to have ended, the znode was deleted or the connection was closed, and otherwise before the server can end the session
// because it has not heard from this process. The time is this process's monotonic clock: a process that is stopped
// meanwhile is told when it runs again. Release does not close it, unless it finds the lock lost.
func (h *Hold) Lost() <-chan struct{} { return h.lost.Done() }

// Err returns nil while the lock is not known to be lost, and after that why it is, matching ErrLockLost.
func (h *Hold) Err() error {
	if h.lost.Err() == nil {
		return nil
	}
	return lost(h.path, context.Cause(h.lost))
}

// Check returns the operation to put first in a transaction of one's own, which ZooKeeper
// then does only if the lock is still held; Multi does that by itself. The path in it is the
// one that the server sees, so with a Client that has a chroot the transaction goes through
// Client.Unwrap.
func (h *Hold) Check() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: h.serverPath, Version: -1}
}
