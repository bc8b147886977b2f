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

// EnterN adds n znodes to a directory, all or none, and waits until it has no more
// participants than limit allows. They leave in any order, so the children are watched,
// and only one process at a time may be here: the holder of gate, which is given up in
// any case. The Nodes that it returns are held. ErrGone says that the gate or a znode was
// lost, or that the limit fell below n, which Limit.Await waits out: try again.
func (q *Queue) EnterN(
	ctx context.Context, s *session.Session, gate *Node, n int, limit Limit, tryOnce bool,
) ([]*Node, error) {
	b := &batch{q: q, s: s, gate: gate, limit: limit, asked: time.Now()}
	err := b.joinN(ctx, n)
	if err == nil {
		err = await(ctx, s, tryOnce, b)
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, errRejoin)) {
		err = session.Cancelled(ctx) // it came too late
	}
	if err == nil {
		gate.Withdraw()
		return b.nodes(), nil
	}
	err = Standing(s, err, b.full, b.asked)
	// In this order: whoever comes through the gate next counts the nodes.
	giveUp(ctx, b.nodes(), []*Node{gate})
	if errors.Is(err, errRejoin) {
		err = ErrGone
	}
	return nil, err
}

// A batch is znodes that wait for room in their directory, together. It is of the
// goroutine in EnterN.
type batch struct {
	q       *Queue
	s       *session.Session
	gate    *Node
	waiters []*waiter
	limit   Limit
	asked   time.Time // when the question was put that has no answer yet
	full    string    // why there was no room at the last look; "": there may be
	watch   bool      // look with watches from now on: the first look found no room
	last    snapshot
}

// A snapshot is what a batch sees of the directory.
type snapshot struct {
	queue         []Name
	pzxid         int64
	most          int
	left, changed <-chan zk.Event // when to look again; nil in one without watches
	// closed once the connection was away, and is back, since before that
	reconnected <-chan struct{}
}

// joinN creates n znodes at once, one behind the other, and the list behind the last: one
// round trip for all, and a list that counts if it shows them all. On an error the batch
// has those that there are.
func (b *batch) joinN(ctx context.Context, n int) (err error) {
	joining := make([]*session.Pending[*waiter], n)
	// turn is closed when the one ahead sends its create, or ends without.
	turn := make(chan struct{})
	close(turn)
	for i := range joining {
		c, mine := b.q.newCreation(b.s, nil), turn
		next := make(chan struct{})
		c.skipList, c.next, turn = i < n-1, sync.OnceFunc(func() { close(next) }), next
		joining[i] = session.Start(b.s, func() (*waiter, error) {
			defer c.next()
			<-mine
			return c.join(ctx)
		})
	}
	for _, j := range joining {
		<-j.Done() // it heeds ctx itself
		if w, joinErr := j.Wait(ctx); joinErr == nil {
			b.waiters = append(b.waiters, w)
		} else {
			err = joinErr
		}
	}
	return err
}

func (b *batch) nodes() []*Node {
	nodes := make([]*Node, len(b.waiters))
	for i, w := range b.waiters {
		nodes[i] = w.node
	}
	return nodes
}

// full says that there is no room for n znodes, "" where there is.
func (v *snapshot) full(dir string, n int) string {
	if len(v.queue) <= v.most {
		return ""
	}
	taken := len(v.queue) - n
	return fmt.Sprintf("no room in %s: %d wanted, %d of %d taken", dir, n, taken, v.most)
}

// look implements aim: it lists the directory, which must still have all znodes.
func (b *batch) look(ctx context.Context) (free bool, err error) {
	v, err := b.snapshot(ctx)
	if err != nil {
		return false, err
	}
	b.last = v
	b.full, b.asked = v.full(b.q.Dir, len(b.waiters)), time.Now()
	return b.full == "", nil
}

// snapshot asks for the limit and lists the directory. Its watches, if any, are set
// before the list, so that nothing goes unseen.
func (b *batch) snapshot(ctx context.Context) (v snapshot, err error) {
	if b.gate.ended.Err() != nil || b.s.SessionID() != b.gate.session {
		return v, errRejoin
	}
	v.reconnected = b.s.Reconnected()
	if v.most, v.changed, err = b.limit(ctx, b.watch); err != nil {
		return v, err
	}
	lister := b.waiters[len(b.waiters)-1] // it has the list that proves all creates
	var l listing
	if b.watch {
		l, v.left, err = lister.listAndWatch(ctx)
	} else {
		l, err = lister.list(ctx)
	}
	if errors.Is(err, zk.ErrNoNode) {
		l, err = listing{proven: l.proven}, nil
	}
	// The limit was lowered: Limit.Await waits without znodes.
	if v.most < len(b.waiters) && len(b.waiters) > 1 {
		return v, errRejoin
	}
	if err != nil {
		return v, err
	}
	v.queue, v.pzxid = b.q.members(l.children), l.pzxid
	for _, n := range b.nodes() {
		if !v.has(n) {
			if l.proven {
				n.gone(errUnlisted)
				return v, errRejoin
			}
			return b.snapshot(ctx) // the list had overtaken the create
		}
		n.discardStrays(v.queue)
	}
	return v, nil
}

func (v *snapshot) has(n *Node) bool {
	return slices.ContainsFunc(v.queue, func(m Name) bool {
		return m.Text == n.name.Text
	})
}

// wait implements aim. The first look was without watches, so one with them comes first.
func (b *batch) wait(ctx context.Context) (free bool, err error) {
	if !b.watch {
		b.watch = true
		b.watchOwn()
		return false, nil
	}
	wake := wakers{
		watch: b.last.left, path: b.q.Dir, limit: b.last.changed,
		ended: b.gate.ended.Done(), reconnected: b.last.reconnected, poll: nextPoll(),
	}
	_, _, err = wake.sleep(ctx, b.s)
	return false, err
}

// watchOwn watches the znodes where that is what tells of a close: see heedDeletions.
func (b *batch) watchOwn() {
	if !b.s.TellsClose() {
		for _, n := range b.nodes() {
			n.watchSelfLater()
		}
	}
}

// take implements aim: it holds the znodes. If they are the last in the directory, its
// pzxid is a token for all of them.
func (b *batch) take(ctx context.Context) error {
	last := b.last.queue[len(b.last.queue)-len(b.waiters):]
	nodes := b.nodes()
	ours := !slices.ContainsFunc(last, func(m Name) bool {
		return !slices.ContainsFunc(nodes, func(n *Node) bool {
			return n.name.Text == m.Text
		})
	})
	for _, w := range b.waiters {
		if ours {
			w.node.learnToken(b.last.pzxid)
		}
		if err := w.take(ctx); err != nil {
			return err
		}
	}
	// Lost since the list was asked for: others may have come through it, with greater
	// tokens.
	if b.gate.ended.Err() != nil {
		return errRejoin
	}
	return nil
}
