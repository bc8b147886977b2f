package lockcache

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A generation is one znode of an entry, from its create to its delete. See the package's
// page.
type generation struct {
	// Set by startLocked.
	entry  *entry
	q      *seqnode.Queue // of the owner for whom it began
	policy Policy         // likewise
	look   chan struct{}  // buffers the wish of one that waits for the next list
	// ctx ends the wait in the queue: cancel is called if nobody waits for it any more.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// run is done when the generation's goroutine has ended. Of a cancelled generation,
	// its znode is gone by then, or the delete goes on in the background.
	run *calls.Pending[struct{}]

	// All of the rest is guarded by entry.mu.

	// While it waits.
	ranOut   bool             // the last owner that waited for it had no more time
	queued   queuedAt         // when it joined the queue last
	position seqnode.Position // by its last list; none if it may be its turn

	// From the grant on.
	node   *znode.Node // nil until then
	users  int         // how many Shares have not ended
	owners int         // how many Shares there have been
	// idleSince is when users became 0. idle ends the generation if it stays idle; nil if
	// no timer runs.
	idleSince time.Time
	idle      *time.Timer
	// set once the delete has begun
	awaitDelete func(ctx context.Context) error

	// Who else wants it. contended: somebody behind is known, or assumed, to wait for it;
	// once it is held, that stays so. doubtful: somebody may have come since the last
	// list, or the grant. handovers are the admissions while others waited, or may have.
	contended, doubtful bool
	handovers           int
	closed              bool // nobody else is admitted any more
}

var errNobodyWaits = errors.New("nobody waits for it any more")

// startLocked begins a generation for an owner.
func (e *entry) startLocked(of *waiter) *generation {
	q := *of.q
	// Others may join a single attempt: then those behind wait for it a little in vain.
	q.Cached, q.SingleAttempt = e.isWorthCachingLocked(), of.request.SingleAttempt
	g := &generation{entry: e, q: &q, policy: of.policy, look: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.run = calls.Start(e.key.conn, func() (none struct{}, err error) {
		// Not with the owner's ctx: if that owner leaves, others may wait for the znode.
		n, err := g.q.Enter(g.ctx, e.key.conn, seqnode.Request{
			Listener: g, OnDecision: g.onDecision,
		})
		if e.granted(g, n, err) {
			g.keepWatch()
		}
		return none, err
	})
	return g
}

// Queued implements seqnode.Listener, while g waits.
func (g *generation) Queued(node string, ahead int) {
	e := g.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	g.queued = queuedAt{node, ahead}
	if e.next != g {
		return
	}
	for i, w := range e.waiting {
		// A waiter behind the current generation has heard of that one's znode, which
		// says more about its turn than that of the next.
		if e.current == nil || !w.reported {
			w.reportLocked(e.positionLocked(i))
		}
	}
}

// onDecision is Request.OnDecision of a waiting generation: it takes note of what a list
// has shown. It returns false if that ends the wait.
func (g *generation) onDecision(at seqnode.Position, followed bool) bool {
	e := g.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	g.position, g.contended = at, followed
	if followed || at.Behind != "" {
		e.demand.seen = time.Now()
	}
	if e.next != g {
		return true // its ctx is done, which ends the wait with the right cause
	}
	e.reconcileLocked() // which may cancel it, if only single attempts waited
	return e.next == g
}

// lookEvery is how much time a held generation leaves between two lists of a directory in
// which others come and go who need not wait for it.
const lookEvery = 100 * time.Millisecond

// keepWatch is the rest of the generation's goroutine, from the grant on. It watches the
// directory until somebody behind is known, or assumed, to wait: then there is nothing
// more to find out. It ends with the Node.
func (g *generation) keepWatch() {
	n, conn := g.node, g.entry.key.conn
	var looked time.Time
	for looks := 0; !g.isContended(); looks++ {
		// The first list, and the first after an event, come at once. From then on the
		// others may be many, and need not concern this znode.
		if looks > 1 && g.pause(time.Until(looked.Add(lookEvery))) != nil {
			break
		}
		looked = time.Now()
		reconnected := conn.Reconnected() // before the list, so that none is missed
		var changed <-chan zk.Event
		followed := true // also if it cannot be known
		err := conn.Retry(n.Ended(), func() (err error) {
			followed, changed, err = g.lookBehind()
			return err
		})
		if n.Ended().Err() != nil {
			break
		}
		if g.endDoubt(err != nil || followed) {
			break
		}
		wake := wait.Wakers{
			Watch: changed, Path: g.q.Dir, Ended: n.Ended().Done(),
			Reconnected: reconnected, Poll: wait.NextPoll(),
		}
		_, _, _ = wake.Sleep(n.Ended(), conn)
		g.beginDoubt()
	}
	// The users are notified of a loss by the Node; the entry by nobody but this.
	<-n.Ended().Done()
	g.entry.reconcile()
}

// lookBehind lists the directory, with a watch, and reports whether somebody behind waits
// for g.
func (g *generation) lookBehind() (followed bool, changed <-chan zk.Event, err error) {
	n := g.node
	children, _, changed, err := g.entry.key.conn.WatchChildren(n.Ended(), g.q.Dir)
	if err != nil {
		return true, nil, err
	}
	// By Among, which does not report what should not be there: the queue's own lists do.
	queue, own := g.q.Observed().Among(children), n.Name()
	for self, m := range queue {
		if m.Text == own {
			return g.q.Excludes.Follows(m, queue[self+1:]), changed, nil
		}
	}
	return true, changed, nil // it is gone, of which the watch on it notifies
}

// pause waits for d, or until a waiter needs the next list. It returns an error if the
// Node has ended.
func (g *generation) pause(d time.Duration) error {
	if d > 0 {
		select {
		case <-g.look:
		case <-time.After(d):
		case <-g.node.Ended().Done():
		}
	}
	return g.entry.key.conn.Pause(g.node.Ended(), 0)
}

// beginDoubt takes note that somebody has come, or gone.
func (g *generation) beginDoubt() {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	g.doubtful = true
}

// endDoubt ends a doubt: it takes note of whether somebody behind waits for g, or may.
func (g *generation) endDoubt(followed bool) (contended bool) {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	if followed {
		g.entry.demand.seen = time.Now()
	} else {
		g.handovers = 0 // nobody was overtaken by them
	}
	g.doubtful, g.contended = false, g.contended || followed
	g.entry.reconcileLocked()
	return g.contended
}

func (g *generation) isContended() bool {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	return g.contended
}

// DataChanged implements seqnode.Listener: all who use g, or wait for it, are notified.
// A change of the data is a request to its owners, for example a revocation: so g is not
// kept for others.
func (g *generation) DataChanged(data []byte) {
	e := g.entry
	e.mu.Lock()
	g.closed = true
	var notify []seqnode.Listener
	if g.node != nil {
		for _, t := range g.node.Tenants() {
			notify = append(notify, t.(*tenant).listener)
		}
	} else if e.next == g {
		for _, w := range e.waiting {
			notify = append(notify, w.request.Listener)
		}
	}
	e.reconcileLocked()
	e.mu.Unlock() // a Listener is code of the user's
	for _, listener := range notify {
		if listener != nil {
			listener.DataChanged(data)
		}
	}
}

// admitLocked makes an owner a user; nil if g is lost.
func (g *generation) admitLocked(r seqnode.Request) *Share {
	sh := &Share{
		Node: g.node, generation: g, listener: r.Listener, cancelExpiry: func() {},
	}
	sh.lost, sh.loseNow = context.WithCancelCause(context.Background())
	if g.q.MaxHold > 0 {
		sh.expires = time.Now().Add(g.q.MaxHold)
		sh.cancelExpiry = g.entry.key.conn.After(g.q.MaxHold, sh.expire)
	}
	// The clock is asked first: g may have been idle, or this process stood still, for
	// any time. Attach says whether another goroutine has noticed a loss since.
	if g.node.Check() != nil || !g.node.Attach((*tenant)(sh)) {
		sh.cancelExpiry()
		return nil
	}
	g.users++
	g.owners++
	if g.contended || g.doubtful {
		g.handovers++ // this owner overtakes somebody, or may
	}
	return sh
}

// roomLocked is for how many more owners, one after the other, g is good.
func (g *generation) roomLocked() int {
	switch {
	case g.closed:
		return 0
	case !g.contended:
		return math.MaxInt
	case g.entry.together:
		return 0 // readers that overlap could keep a writer waiting forever
	}
	return max(0, g.policy.MaxHandovers-g.handovers)
}

// isFreeLocked reports whether one more owner may be admitted now.
func (g *generation) isFreeLocked() bool {
	return (g.users == 0 || g.entry.together) && g.roomLocked() > 0 && !g.mustLookLocked()
}

// mustLookLocked reports whether a list has to show first who stands behind: if somebody
// does, one more owner would be one too many.
func (g *generation) mustLookLocked() bool {
	return g.doubtful && !g.contended && g.handovers >= g.policy.MaxHandovers
}

// hurry ends the pause before the next list.
func (g *generation) hurry() {
	select {
	case g.look <- struct{}{}:
	default:
	}
}

// isOverLocked reports of a generation without users whether it is to be released.
func (g *generation) isOverLocked() bool {
	return g.closed || g.contended || time.Since(g.idleSince) >= g.policy.Idle
}

// reasonLocked is why a generation for which nobody waits is cancelled.
func (g *generation) reasonLocked() error {
	if g.ranOut {
		return znode.ErrTimeOver
	}
	return errNobodyWaits
}

// dropUserLocked takes off a user, and decides what becomes of the entry. unsure:
// something may still be done under the znode, or it may be lost, so nobody else is
// admitted.
func (g *generation) dropUserLocked(unsure bool) {
	g.closed = g.closed || unsure
	if g.users--; g.users == 0 {
		g.idleSince = time.Now()
	}
	// The clock may have run out and nobody have looked yet. Before reconcileLocked,
	// which would hand a lost lock over.
	_ = g.node.Check()
	g.entry.reconcileLocked()
	if g.entry.current != g && g.users == 0 && g.awaitDelete == nil {
		// It was lost while in use, or is one of readers that was replaced: the last of
		// its users releases the znode.
		g.startLeavingLocked()
	}
}

// startLeavingLocked begins to delete the znode.
func (g *generation) startLeavingLocked() {
	g.stopIdleLocked()
	g.awaitDelete = g.node.StartLeaving()
}

// startIdleLocked starts the timer that releases a generation without users, unless it
// runs. A use does not stop it: when it fires, reconcileLocked sees for how long the
// generation has really been idle. So a lock that is used often costs no timer per use.
func (g *generation) startIdleLocked() {
	if g.idle != nil {
		return
	}
	remaining := g.policy.Idle - time.Since(g.idleSince)
	g.idle = time.AfterFunc(remaining, func() {
		g.entry.mu.Lock()
		defer g.entry.mu.Unlock()
		g.idle = nil
		g.entry.reconcileLocked() // which sets another one if it was used meanwhile
	})
}

func (g *generation) stopIdleLocked() {
	if g.idle != nil {
		g.idle.Stop()
		g.idle = nil
	}
}
