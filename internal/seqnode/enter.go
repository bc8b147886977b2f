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

// Enter joins the queue and waits for its turn; the Node that it returns is held.
// Outages, ended sessions and a deleted znode do not end the wait; ctx, a closed
// connection and what no retry mends do, and leave no znode behind. An error tells where
// it stood.
func (q *Queue) Enter(
	ctx context.Context, s *zkconn.Conn, r Request,
) (*znode.Node, error) {
	if err := q.Check(s); err != nil {
		return nil, err
	}
	var backoff zkconn.Backoff
	for {
		asked := time.Now()
		w := &waiter{Member: q.newMember(s, &r), request: r, asked: asked}
		if err := w.join(ctx, ""); err != nil {
			return nil, wait.Explain(s, err, wait.Place{}, asked)
		}
		n := w.node
		err := wait.Until(ctx, s, w)
		if err == nil && ctx.Err() == nil {
			return n, nil
		}
		if !errors.Is(err, znode.ErrEnded) {
			where := w.position().Place()
			if err == nil {
				err, where = outcome.Cancelled(ctx), wait.Late
			}
			err = wait.Explain(s, err, where, w.asked)
			znode.GiveUp(ctx, []*znode.Node{n})
			return nil, err
		}
		q.Log.Info("zookeeper lock: queue position lost, rejoining",
			"node", n.Path, "cause", n.Cause())
		n.Withdraw() // nobody relies on it; it may outlive its session
		asked = time.Now()
		if err := s.Pause(ctx, backoff.Next()); err != nil {
			return nil, wait.Explain(s, err, w.position().Place(), asked)
		}
	}
}
