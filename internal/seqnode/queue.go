package seqnode

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Queue is a recipe's side of one directory. It has no state and is safe for concurrent
// use.
type Queue struct {
	znode.Spec
	Kinds []string // whose znodes stand in the queue
	// Excludes is the recipe's rule: whether a participant that is ahead must go before
	// self may proceed. Nobody who joins later comes first: what grants in another order
	// is no rule, but a [wait.Goal] of its own.
	Excludes order.Excludes
	// Nested is that of order.Rules: whether a read lock that is taken under its owner's
	// write lock, with its number, may turn up ahead of one that waits. Nil: never.
	Nested func(self seqname.Name) bool
	// Value is the same for all queues of one lock value, and for no other; nil: there is
	// only this one.
	Value any
	Lint  *observe.Lint // what should not be in the directory; nil: nobody cares
}

// A Request is one wish to get through the queue.
type Request struct {
	// SingleAttempt: do not wait for another participant, but for a cached entry to leave
	// that nobody may be using: until ctx is done.
	SingleAttempt bool
	// StallTimeout: end the wait with [wait.ErrBusy] once nobody ahead has left for so
	// long, and for twice as long as joining has taken. It starts over with each znode.
	// 0: never.
	StallTimeout time.Duration
	Listener     Listener // may be nil
	// WatchSelf is closed once DataChanged matters: from then on the znode is watched at
	// once. It may be nil.
	WatchSelf <-chan struct{}

	// OnDecision is called with each position that a list or this process has shown, and
	// with whether somebody behind is known to wait for the znode. It returns false if
	// nobody wants to wait with that znode any more: then the wait ends in wait.ErrBusy.
	// It is set by one that shares the Node among owners, each of whom has a limit of its
	// own: so the Queue's MaxHold is not applied. It may be nil.
	OnDecision func(at Position, followed bool) bool
}

// A Listener learns of a znode, from the time when it joins the queue.
type Listener interface {
	// Queued says that the queue was joined, the first time or again.
	Queued(node string, ahead int)
	// DataChanged says what the znode's data is, after each change that the watch on it
	// shows.
	DataChanged(data []byte)
}

// Observed is the queue as one sees it who does not stand in it.
func (q *Queue) Observed() observe.Queue {
	return observe.Queue{Dir: q.Dir, Kinds: q.Kinds, Lint: q.Lint}
}

// Path returns the path of a member.
func (q *Queue) Path(m seqname.Name) string { return zkpath.Join(q.Dir, m.Text) }

// newWaiter returns one whose znode is not created yet.
func (q *Queue) newWaiter(conn *zkconn.Conn, r Request) *waiter {
	m := &Member{queue: q, conn: conn, listener: r.Listener}
	return &waiter{Member: m, request: r, asked: time.Now()}
}

// Enter joins the queue and waits for its turn; the Node that it returns is held.
// Outages, ended sessions and a deleted znode do not end the wait; ctx, a closed
// connection and a permanent error do, and leave no znode behind. An error says where it
// stood.
func (q *Queue) Enter(
	ctx context.Context, conn *zkconn.Conn, r Request,
) (*znode.Node, error) {
	if err := q.CheckTerms(conn); err != nil {
		return nil, err
	}
	spec := &q.Spec
	if r.SingleAttempt {
		single := q.Spec
		single.SingleAttempt, spec = true, &single
	}
	var backoff zkconn.Backoff
	for {
		w := q.newWaiter(conn, r)
		n, err := znode.Create(ctx, conn, spec, znode.NextNumber, w.Member)
		if err != nil {
			return nil, wait.Explain(conn, err, wait.Place{}, w.asked)
		}
		err = wait.Until(ctx, conn, w) // by w.Check, Wait and Commit
		switch {
		case err == nil && ctx.Err() == nil:
			return n, nil
		case !errors.Is(err, znode.ErrEnded):
			err = w.explain(ctx, err)
			znode.GiveUp(ctx, []*znode.Node{n})
			return nil, err
		}
		// The znode is gone, or the session is: rejoin at the tail.
		q.Log.Info("zookeeper lock: queue position lost, rejoining",
			"node", n.Path, "cause", n.Cause())
		n.Withdraw() // it may outlive its session, and would block everybody
		asked := time.Now()
		if err := conn.Pause(ctx, backoff.Next()); err != nil {
			return nil, wait.Explain(conn, err, w.position().Place(), asked)
		}
	}
}

// EnterUnder takes a place under writer, a held znode of the same owner that excludes all
// others, and with its number: there is nobody to wait for (Curator since 5.5,
// CURATOR-621). The Node has writer's token, since its own would be larger than that of
// others who wait already. If writer turns out to be lost, it enters the queue like
// anybody.
func (q *Queue) EnterUnder(
	ctx context.Context, conn *zkconn.Conn, writer *znode.Node, r Request,
) (*znode.Node, error) {
	if err := q.CheckTerms(conn); err != nil {
		return nil, err
	}
	w := q.newWaiter(conn, r)
	w.request = Request{} // it waits for nobody: no Queued, no single attempt
	w.under = writer.Hooks().(*Member)
	n, err := znode.Create(ctx, conn, &q.Spec, w.under.self.Name().Number(), w.Member)
	if err != nil {
		return nil, wait.Explain(conn, err, wait.Place{}, w.asked)
	}
	n.SetToken(writer.Token())
	err = wait.Until(ctx, conn, w)
	// The writer was there when the grant was decided. It may have ended since, and then
	// others are admitted that have not seen this reader.
	if err == nil && writer.HasEnded() {
		err = znode.ErrEnded
	}
	switch {
	case errors.Is(err, znode.ErrEnded):
		n.Withdraw()
		return q.Enter(ctx, conn, r)
	case err == nil && ctx.Err() == nil:
		return n, nil
	}
	err = w.explain(ctx, err)
	znode.GiveUp(ctx, []*znode.Node{n})
	return nil, err
}

// explain is wait.Explain of how the wait has ended. A nil err says that the turn came,
// but ctx is done by now: the caller must not get it.
func (w *waiter) explain(ctx context.Context, err error) error {
	where := w.position().Place()
	if err == nil {
		err, where = outcome.Cancelled(ctx), wait.Late
	}
	return wait.Explain(w.conn, err, where, w.asked)
}

// EnterThrough joins the queue on behalf of one who holds gate, a Node of another queue,
// and waits for its turn, but no longer than the gate lasts. The gate is left in any
// case: once the Node that it returns is held or, on an error, after its own znode.
// ErrGone says that the gate or the znode was lost: a caller that wants to rejoin has to
// come through the gate again. Package leases says what a gate is good for.
func (q *Queue) EnterThrough(
	ctx context.Context, conn *zkconn.Conn, gate *znode.Node, r Request,
) (*znode.Node, error) {
	w := q.newWaiter(conn, r)
	var joined []*znode.Node
	n, err := znode.Create(ctx, conn, &q.Spec, znode.NextNumber, w.Member)
	if err == nil {
		joined = append(joined, n)
		err = w.untilThrough(ctx, gate)
	}
	switch {
	case err == nil && ctx.Err() == nil:
		gate.Withdraw()
		return n, nil
	case errors.Is(err, znode.ErrEnded) && ctx.Err() != nil:
		err = outcome.Cancelled(ctx)
	}
	err = w.explain(ctx, err)
	// In this order: the next process that comes through the gate finds no znode that
	// waits.
	znode.GiveUp(ctx, joined, []*znode.Node{gate})
	if errors.Is(err, znode.ErrEnded) {
		err = znode.ErrGone
	}
	return nil, err
}
