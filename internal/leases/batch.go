package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Request is a wish for some leases.
type Request struct {
	Spec          *znode.Spec   // of the leases
	Queue         observe.Queue // the directory that they are counted in
	Gate          *znode.Node   // the process that holds it may wait for room
	N             int           // how many leases
	Maximum       Maximum
	SingleAttempt bool // do not wait for room
}

// Enter adds N znodes to a directory, all or nothing, and waits until it has no more
// participants than the maximum. They leave in any order, so the children are watched,
// and only one process at a time may be here: the holder of the gate, which is left in
// any case. The Nodes that it returns are held. ErrGone says that the gate or a znode was
// lost, or that the maximum fell below N, which Maximum.Await waits out: try again.
func Enter(ctx context.Context, conn *zkconn.Conn, r Request) ([]*znode.Node, error) {
	gate := r.Gate
	b := &batch{Request: r, conn: conn, asked: time.Now()}
	err := b.joinN(ctx)
	if err == nil {
		err = wait.Until(ctx, conn, b)
	}
	switch {
	case err == nil && ctx.Err() == nil:
		gate.Withdraw()
		return b.nodes, nil
	case err == nil: // the caller must not get them
		err, b.noRoom = outcome.Cancelled(ctx), wait.Late
	case errors.Is(err, znode.ErrEnded) && ctx.Err() != nil:
		err = outcome.Cancelled(ctx)
	}
	err = wait.Explain(conn, err, b.noRoom, b.asked)
	// In this order: the next process that comes through the gate counts the nodes.
	znode.GiveUp(ctx, b.nodes, []*znode.Node{gate})
	if errors.Is(err, znode.ErrEnded) {
		err = znode.ErrGone
	}
	return nil, err
}

// A batch is znodes that wait for room in their directory, together. It belongs to the
// goroutine in Enter.
type batch struct {
	Request
	conn   *zkconn.Conn
	nodes  []*znode.Node
	asked  time.Time  // when the question was sent that has no answer yet
	noRoom wait.Place // why there was none at the last check; zero: there may be
	watch  bool       // check with watches from now on: the first found no room
	last   snapshot

	// The goroutine that sends the last create writes these two, until joinN returns.
	first       *calls.Pending[listing] // the list behind that; nil once it is used
	reconnected <-chan struct{}         // closed once the connection is back, since then
	// the connection was away, so that the server may lag behind what was seen before,
	// and no sync has succeeded since
	lagging bool
}

// A listing is the children of a directory.
type listing struct {
	children []string
	pzxid    int64 // of the last create or delete in the directory
	// proven: the request was sent after the create of the znode that it is to show was
	// answered. A list that is sent right behind the create may overtake it.
	proven bool
}

// A snapshot is what a batch sees of the directory.
type snapshot struct {
	queue []seqname.Name
	pzxid int64
	most  int
	// When to look again: somebody has come or left, or the maximum may have changed. Nil
	// in one without watches.
	childrenChanged, maximumChanged <-chan zk.Event
}

// A ticket is one lease on its way into the directory. It implements Hooks.
type ticket struct {
	znode.NoHooks // nobody asks for a lease back, and its end wakes nobody here

	batch  *batch
	next   func() // called just before the create is sent, or when there is none
	isLast bool   // the list goes behind this one
}

// Sending implements Hooks.
func (t *ticket) Sending() {
	t.next()
	if b := t.batch; t.isLast {
		b.reconnected = b.conn.Reconnected()
		b.first = calls.Start(b.conn, b.children)
	}
}

// Created implements Hooks.
func (t *ticket) Created(n *znode.Node) error {
	if n == nil {
		return nil
	}
	_, err := seqname.Numbered(n.Path, t.batch.Spec.Kind)
	return err
}

// joinN creates the znodes at once, one behind the other, and the list behind the last:
// one round trip for all, and a list that counts if it shows them all. On an error the
// batch has those that there are.
func (b *batch) joinN(ctx context.Context) (err error) {
	joining := make([]*calls.Pending[*znode.Node], b.N)
	// turn is closed when the one ahead sends its create, or ends without.
	turn := make(chan struct{})
	close(turn)
	for i := range joining {
		// Each waits for the one ahead of it to hand its create to the client.
		mine, next := turn, make(chan struct{})
		turn = next
		t := &ticket{
			batch: b, next: sync.OnceFunc(func() { close(next) }), isLast: i == b.N-1,
		}
		joining[i] = calls.Start(b.conn, func() (*znode.Node, error) {
			defer t.next()
			<-mine
			return znode.Create(ctx, b.conn, b.Spec, znode.NextNumber, t)
		})
	}
	for _, j := range joining {
		<-j.Done() // it ends with ctx
		if n, joinErr := j.Wait(ctx); joinErr == nil {
			b.nodes = append(b.nodes, n)
		} else {
			err = joinErr
		}
	}
	return err
}

// full says that n znodes are too many for the maximum; the zero Place if they are not.
func (v *snapshot) full(dir string, n int) wait.Place {
	if len(v.queue) <= v.most {
		return wait.Place{}
	}
	taken := len(v.queue) - n
	text := fmt.Sprintf("no room in %s: %d wanted, %d of %d taken", dir, n, taken, v.most)
	return wait.Place{Text: text, Ahead: taken}
}

// Check implements wait.Goal: it lists the directory, which must still have all znodes.
func (b *batch) Check(ctx context.Context) (free bool, err error) {
	v, err := b.look(ctx)
	if err != nil {
		return false, err
	}
	b.last = v
	b.noRoom, b.asked = v.full(b.Queue.Dir, len(b.nodes)), time.Now()
	return b.noRoom == wait.Place{}, nil
}

// look reads the maximum and lists the directory. Its watches, if any, are set before
// the list, so that nothing goes unseen.
func (b *batch) look(ctx context.Context) (v snapshot, err error) {
	if b.Gate.Ended().Err() != nil || b.conn.SessionID() != b.Gate.Session() {
		return v, znode.ErrEnded
	}
	b.lagging = b.lagging || b.conn.AwaySince(b.reconnected)
	b.reconnected = b.conn.Reconnected()
	v.most, v.maximumChanged, err = b.Maximum(ctx, b.watch)
	if err != nil {
		return v, err
	}
	l, changed, err := b.list(ctx)
	v.childrenChanged = changed
	if errors.Is(err, zk.ErrNoNode) {
		l, err = listing{proven: l.proven}, nil // nobody is there, not even this batch
	}
	// The maximum was lowered: Maximum.Await waits without znodes. One lease waits here,
	// whatever the maximum. This comes before an error of the list: the znodes would stay
	// while that is retried.
	if v.most < len(b.nodes) && len(b.nodes) > 1 {
		return v, znode.ErrEnded
	}
	if err != nil {
		return v, err
	}
	v.pzxid = l.pzxid
	znode.OrWithdraw(b.nodes, func() { v.queue = b.Queue.Participants(l.children) })
	for _, n := range b.nodes {
		if !v.has(n) {
			if l.proven {
				n.Gone(znode.ErrUnlisted)
				return v, znode.ErrEnded
			}
			return b.look(ctx) // the list had overtaken the create
		}
		for _, m := range v.queue {
			n.DiscardOrphan(m.Text)
		}
	}
	return v, nil
}

// list returns the list behind the last create, the first time. After that it sends a
// list: behind a sync if the server may lag, and with a watch if the batch waits for
// others to leave.
func (b *batch) list(
	ctx context.Context,
) (l listing, changed <-chan zk.Event, err error) {
	if first := b.first; first != nil {
		b.first = nil
		l, err = first.Wait(ctx)
		return l, nil, err
	}
	if b.lagging {
		if err := b.conn.CatchUp(ctx, b.Spec.Dir); err != nil {
			return l, nil, err
		}
		b.lagging = false
	}
	if !b.watch {
		l, err = calls.Call(ctx, b.conn, b.children)
		l.proven = true
		return l, nil, err
	}
	l.proven = true
	children, stat, changed, err := b.conn.WatchChildren(ctx, b.Spec.Dir)
	if err == nil {
		l.children, l.pzxid = children, stat.Pzxid
	}
	return l, changed, err
}

func (b *batch) children() (l listing, err error) {
	children, stat, err := b.conn.Children(b.Spec.Dir)
	if err == nil {
		l.children, l.pzxid = children, stat.Pzxid
	}
	return l, err
}

func (v *snapshot) has(n *znode.Node) bool {
	name := n.Name()
	return slices.ContainsFunc(v.queue, func(m seqname.Name) bool {
		return m.Text == name
	})
}

// Wait implements wait.Goal. The first look was without watches, so one with them comes
// first.
func (b *batch) Wait(ctx context.Context) error {
	if b.SingleAttempt {
		return wait.ErrBusy
	}
	if !b.watch {
		b.watch = true
		b.watchOwn()
		return nil
	}
	wake := wait.Wakers{
		Watch: b.last.childrenChanged, Path: b.Queue.Dir,
		Maximum: b.last.maximumChanged, Ended: b.Gate.Ended().Done(),
		Reconnected: b.reconnected, Poll: wait.NextPoll(),
	}
	_, _, err := wake.Sleep(ctx, b.conn)
	return err
}

// watchOwn watches the znodes if the connection does not announce its close: then their
// deletion holds requests back (zkconn.Conn.HoldBack).
func (b *batch) watchOwn() {
	if !b.conn.TellsClose() {
		for _, n := range b.nodes {
			n.WatchSelfLater(znode.Soon)
		}
	}
}

// Commit implements wait.Goal: it holds the znodes, and once it has all, their MaxHold
// begins. If they are the last in the directory, its pzxid is a token for all of them.
func (b *batch) Commit(ctx context.Context) error {
	last := b.last.queue[len(b.last.queue)-len(b.nodes):]
	ours := !slices.ContainsFunc(last, func(m seqname.Name) bool {
		return !slices.ContainsFunc(b.nodes, func(n *znode.Node) bool {
			return n.Name() == m.Text
		})
	})
	for _, n := range b.nodes {
		if ours {
			n.LearnToken(b.last.pzxid)
		}
		if err := n.AwaitToken(ctx); err != nil {
			return err
		}
		if err := n.Hold(); err != nil {
			return err
		}
	}
	// Lost since the list was asked for: others may have come through it, with greater
	// tokens.
	if b.Gate.Ended().Err() != nil {
		return znode.ErrEnded
	}
	for _, n := range b.nodes {
		n.ExpireLater()
	}
	return nil
}
