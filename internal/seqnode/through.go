package seqnode

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// EnterThrough joins the queue as the one who holds gate, a Node of another queue, and
// waits for its turn. Nothing of it waits any longer than the gate lasts, which is given
// up in any case: once the Node that it returns is held, or behind the znode that it
// leaves. ErrGone says that the gate or the znode was lost: whoever wants to rejoin has
// to come through the gate again. Package leases says what that is good for.
func (q *Queue) EnterThrough(
	ctx context.Context, s *zkconn.Conn, gate *znode.Node, r Request,
) (*znode.Node, error) {
	w := &waiter{Member: q.newMember(s, &r), request: r, asked: time.Now()}
	var joined []*znode.Node
	err := w.join(ctx, "")
	if err == nil {
		joined = append(joined, w.node)
		err = w.untilBeside(ctx, gate)
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, znode.ErrEnded)) {
		err = outcome.Cancelled(ctx) // it came too late
	}
	if err == nil {
		gate.Withdraw()
		return w.node, nil
	}
	err = wait.Explain(s, err, w.position().Place(), w.asked)
	// In this order: whoever comes through the gate next finds no znode that waits.
	znode.GiveUp(ctx, joined, []*znode.Node{gate})
	if errors.Is(err, znode.ErrEnded) {
		err = znode.ErrGone
	}
	return nil, err
}

// untilBeside waits for the turn for as long as gate lasts. A gate of another session can
// be gone already.
func (w *waiter) untilBeside(ctx context.Context, gate *znode.Node) error {
	if w.node.Session() != gate.Session() {
		return znode.ErrEnded
	}
	stop := context.AfterFunc(gate.Ended(), w.node.Withdraw)
	err := wait.Until(ctx, w.s, w)
	if !stop() && err == nil {
		return znode.ErrEnded
	}
	return err
}
