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

// EnterUnder takes a place under writer, a held znode of the same owner that excludes all
// others, and with its number: there is nobody to wait for (Curator since 5.5,
// CURATOR-621). The Node has writer's token, since its own would be larger than that of
// others who wait already. If writer turns out to be lost, it enters the queue like
// anybody.
func (q *Queue) EnterUnder(
	ctx context.Context, s *zkconn.Conn, writer *znode.Node, r Request,
) (*znode.Node, error) {
	if err := q.Check(s); err != nil {
		return nil, err
	}
	asked := time.Now()
	w := &waiter{Member: q.newMember(s, &r)}
	w.under = writer.Hooks().(*Member)
	if err := w.join(ctx, w.under.self.Name().Number()); err != nil {
		return nil, wait.Explain(s, err, wait.Place{}, asked)
	}
	n := w.node
	n.SetToken(writer.Token())
	err := wait.Until(ctx, s, w)
	if err == nil && writer.HasEnded() {
		err = znode.ErrEnded // others may be let in
	}
	switch {
	case errors.Is(err, znode.ErrEnded):
		n.Withdraw()
		return q.Enter(ctx, s, r)
	case ctx.Err() != nil:
		err = wait.Explain(s, outcome.Cancelled(ctx), wait.Place{}, asked)
	case err == nil:
		return n, nil
	}
	znode.GiveUp(ctx, []*znode.Node{n})
	return nil, err
}
