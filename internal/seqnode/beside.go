package seqnode

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
)

// EnterBeside takes a place beside writer, a held znode of the same owner that excludes
// all others, and with its number: there is nobody to wait for (Curator since 5.5,
// CURATOR-621). The Node has writer's token, since its own would be larger than that of
// others who queue already. Where writer turns out to be lost, it enters the queue like
// anybody.
func (q *Queue) EnterBeside(
	ctx context.Context, s *session.Session, writer *Node, r Request,
) (*Node, error) {
	if err := s.Bears(q.LossMargin); err != nil {
		return nil, err
	}
	asked := time.Now()
	c := q.newCreation(s, r.OnData)
	c.number = writer.name.number()
	w, err := c.join(ctx)
	if err != nil {
		return nil, Standing(s, err, "", asked)
	}
	n := w.node
	n.token.Store(writer.Token())
	err = s.Retry(ctx, func() error {
		err := w.stillBeside(ctx, writer)
		if err == nil {
			err = w.take(ctx)
		}
		if writer.hasEnded() || n.session != writer.session {
			return errRejoin
		}
		return err
	})
	switch {
	case errors.Is(err, errRejoin):
		n.Withdraw()
		return q.Enter(ctx, s, r)
	case ctx.Err() != nil:
		err = Standing(s, session.Cancelled(ctx), "", asked)
	case err == nil:
		return n, nil
	}
	giveUp(ctx, []*Node{n})
	return nil, err
}

// stillBeside looks whether writer's znode was there when w's was: if somebody had
// deleted it before, and the notice is late, another may have come in. From then on w
// keeps them out by itself.
func (w *waiter) stillBeside(ctx context.Context, writer *Node) error {
	for {
		l, err := w.list(ctx)
		isThere := slices.Contains(l.children, w.node.name.Text)
		switch {
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return err
		case !isThere && !l.proven: // the list had overtaken the create
			continue
		case !slices.Contains(l.children, writer.name.Text):
			writer.gone(errUnlisted)
			return errRejoin
		case !isThere:
			w.node.gone(errUnlisted)
			return errRejoin
		}
		return nil
	}
}
