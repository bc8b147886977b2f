package seqnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
)

// EnterTogether adds n znodes to a directory, all or none, and waits until it has no more participants than limit allows. They
// leave in any order, so the children are watched, and only one process at a time may be here: the holder of gate, which is
// given up in any case. The Nodes that it returns are held. ErrGone says that the gate or a znode was lost: try again.
func (q *Queue) EnterTogether(ctx context.Context, s *session.Session, gate *Node, n int, limit Limit, try bool) ([]*Node, error) {
	c := crowd{q: q, s: s, gate: gate, limit: limit, asked: time.Now()}
	nodes, err := q.joinTogether(ctx, s, n)
	if err == nil {
		c.nodes = nodes
		err = c.await(ctx, try)
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, errRejoin)) {
		err = context.Cause(ctx) // it came too late
	}
	if err == nil {
		gate.Withdraw()
		return nodes, nil
	}
	err = Standing(ctx, s, err, c.full, c.asked)
	giveUp(ctx, nodes, []*Node{gate}) // in this order: whoever comes through the gate next counts the nodes
	if errors.Is(err, errRejoin) {
		err = ErrGone
	}
	return nil, err
}

// joinTogether creates the znodes at once, one behind the other, and the list behind the last. On an error it returns those
// that there are.
func (q *Queue) joinTogether(ctx context.Context, s *session.Session, n int) (nodes []*Node, err error) {
	joining := make([]*session.Pending[*Node], n)
	turn := make(chan struct{}) // closed when the one ahead sends its create, or ends without
	close(turn)
	for i := range joining {
		c, mine := q.newCreation(s, func([]byte) {}), turn
		next := make(chan struct{})
		c.unseen, c.next, turn = i < n-1, sync.OnceFunc(func() { close(next) }), next
		joining[i] = session.Start(s, func() (*Node, error) {
			defer c.next()
			<-mine
			return c.join(ctx)
		})
	}
	for _, j := range joining {
		<-j.Done() // it heeds ctx itself
		if node, joinErr := j.Wait(ctx); joinErr == nil {
			nodes = append(nodes, node)
		} else {
			err = joinErr
		}
	}
	return nodes, err
}

// A crowd is znodes that wait for room in their directory.
type crowd struct {
	q     *Queue
	s     *session.Session
	gate  *Node
	nodes []*Node
	limit Limit
	asked time.Time // when the question was put that has no answer yet
	full  string    // why there was no room at the last look; "": there may be
}

// A view is what the crowd sees of the directory.
type view struct {
	queue         []Name
	pzxid         int64
	most          int
	left, changed <-chan zk.Event // when to look again; nil in a view without watches
}

// full says that there is no room for n znodes, "" where there is.
func (v *view) full(dir string, n int) string {
	if len(v.queue) <= v.most {
		return ""
	}
	taken := len(v.queue) - n
	return fmt.Sprintf("no room in %s: %d wanted, %d of %d taken", dir, n, taken, v.most)
}

// await waits for room and takes the nodes.
func (c *crowd) await(ctx context.Context, try bool) error {
	watch := false
	return c.s.Retry(ctx, func() error {
		for ; ; watch = true {
			v, err := c.look(ctx, watch)
			if err != nil {
				return err
			}
			c.full, c.asked = v.full(c.q.Dir, len(c.nodes)), time.Now()
			switch {
			case c.full == "":
				return c.take(ctx, v)
			case try:
				return ErrBusy
			case watch:
				if err := c.wait(ctx, v); err != nil {
					return err
				}
			}
		}
	})
}

// look lists the directory, which must still have all nodes.
func (c *crowd) look(ctx context.Context, watch bool) (v view, err error) {
	if c.gate.over.Err() != nil || c.s.SessionID() != c.gate.session {
		return v, errRejoin
	}
	if v.most, v.changed, err = c.limit(ctx, watch); err != nil {
		return v, err
	}
	var l listing
	if watch {
		l, v.left, err = c.gate.listAndWatch(ctx, c.q)
	} else {
		l, err = c.nodes[len(c.nodes)-1].list(ctx)
	}
	if errors.Is(err, zk.ErrNoNode) {
		l, err = listing{proven: l.proven}, nil
	}
	if v.most < len(c.nodes) && len(c.nodes) > 1 { // it was lowered: Limit.Await waits without znodes
		return v, errRejoin
	}
	v.queue, v.pzxid = Sort(l.children, c.q.Kinds), l.pzxid
	for _, n := range c.nodes {
		switch {
		case err != nil:
		case !slices.ContainsFunc(v.queue, func(m Name) bool { return m.Text == n.name.Text }):
			if l.proven {
				n.end(errUnlisted)
				return v, errRejoin
			}
			return c.look(ctx, watch) // the list had overtaken the create
		default:
			n.discardStrays(l.children)
		}
	}
	return v, err
}

// take marks the nodes as held. If they are the last in the directory, its pzxid is a token for all of them.
func (c *crowd) take(ctx context.Context, v view) error {
	last := v.queue[len(v.queue)-len(c.nodes):]
	ours := !slices.ContainsFunc(last, func(m Name) bool {
		return !slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.name.Text == m.Text })
	})
	for _, n := range c.nodes {
		if ours {
			n.token = v.pzxid
		}
		if err := n.take(ctx, false); err != nil {
			return err
		}
	}
	if c.gate.over.Err() != nil { // lost since the list was asked for: others may have come through it, with greater tokens
		return errRejoin
	}
	return nil
}

// wait waits until it is worth looking again.
func (c *crowd) wait(ctx context.Context, v view) error {
	select {
	case <-v.left:
	case <-v.changed:
	case <-c.gate.over.Done():
	case <-c.gate.reconnected:
	case <-nextPoll():
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.s.Closed():
		return c.s.Pause(ctx, 0)
	}
	return nil
}
