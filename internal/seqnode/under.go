package seqnode

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
)

// EnterUnder takes a place beside senior, a held znode of the same owner that excludes all others, and with its number: there is
// nobody to wait for (Curator since 5.5, CURATOR-621). The Node has senior's token, since its own would be larger than that of
// others who queue already. Where senior turns out to be lost, it enters the queue like anybody.
func (q *Queue) EnterUnder(ctx context.Context, s *session.Session, senior *Node, e Entry) (*Node, error) {
	asked := time.Now()
	c := q.newCreation(s, e.Changed)
	c.number = senior.name.number()
	n, err := c.join(ctx)
	if err != nil {
		return nil, Standing(ctx, s, err, "", asked)
	}
	n.token = senior.token
	err = s.Retry(ctx, func() error {
		err := n.stillUnder(ctx, senior)
		if err == nil {
			err = n.take(ctx, false)
		}
		if senior.over.Err() != nil || n.session != senior.session {
			return errRejoin
		}
		return err
	})
	switch {
	case errors.Is(err, errRejoin):
		n.Withdraw()
		return q.Enter(ctx, s, e)
	case ctx.Err() != nil:
		err = Standing(ctx, s, context.Cause(ctx), "", asked)
	case err == nil:
		return n, nil
	}
	giveUp(ctx, []*Node{n})
	return nil, err
}

// stillUnder looks whether senior's znode was there when n's was: if somebody had deleted it before, and the notice is late,
// another may have come in. From then on n keeps them out by itself.
func (n *Node) stillUnder(ctx context.Context, senior *Node) error {
	for {
		l, err := n.list(ctx)
		switch {
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return err
		case !slices.Contains(l.children, n.name.Text) && !l.proven: // the list had overtaken the create
			continue
		case !slices.Contains(l.children, senior.name.Text):
			senior.end(errUnlisted)
			return errRejoin
		case !slices.Contains(l.children, n.name.Text):
			n.end(errUnlisted)
			return errRejoin
		}
		return nil
	}
}
