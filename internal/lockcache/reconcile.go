package lockcache

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/znode"
)

var errNobodyWaits = errors.New("nobody waits for it any more")

// What follows, up to newGeneration, is called with entry.mu held.

// reconcile decides what is to become of the entry. It is called after every change, and
// nobody else decides.
func (e *entry) reconcile() {
	e.reconcileCurrent()
	e.refuseImpatient()
	room := 0
	if e.current != nil {
		room = e.current.room()
	}
	switch {
	case len(e.waiting) == 0 && e.next != nil:
		e.next.giveUp(e.next.reason())
		e.next = nil
	case len(e.waiting) > room && e.next == nil:
		e.next = e.newGeneration(e.waiting[0])
	}
	if e.current == nil && e.next == nil && !e.unused {
		e.unused = true
		entries.Delete(e.key)
	}
}

// reason is why a generation is given up for which nobody waits.
func (g *generation) reason() error {
	if g.ranOut {
		return znode.ErrTimeOver
	}
	return errNobodyWaits
}

// reconcileCurrent admits whoever may be, and gives up what nobody here needs, or may
// keep.
func (e *entry) reconcileCurrent() {
	g := e.current
	if g == nil {
		return
	}
	if g.isFree() {
		e.letIn()
	}
	if len(e.waiting) > 0 && g.mustLook() {
		g.hurry()
	}
	switch {
	case g.node.HasEnded(): // it was lost; Ended comes later than Lost
		g.stopIdle()
		if g.users == 0 && g.left == nil {
			g.leave()
		}
		e.current = nil
	case g.users > 0:
	case g.isOver():
		g.leave()
		e.current = nil
	default:
		g.awaitEnd()
	}
}

// letIn admits the first that waits, and of owners who have the entry together all that
// may be, and tells how many that were. One whose margin has begun, or would soon with
// nothing amiss, is passed over for now: those who are in it do not lose it by that.
func (e *entry) letIn() (n int) {
	for i := 0; i < len(e.waiting) && !e.current.mustLook(); {
		w := e.waiting[i]
		sh, err := e.current.admit(w.q, w.request)
		w.early = err != nil
		switch {
		case errors.Is(err, znode.ErrGone):
			return n
		case err != nil:
			e.reconcileLater()
			i++
		case i == 0:
			e.waiting[0] = nil
			e.waiting = e.waiting[1:]
		default:
			e.waiting = slices.Delete(e.waiting, i, i+1)
		}
		if err == nil {
			w.settle(sh, nil)
			n++
			if e.current.counts() {
				e.current.handovers++
			}
		}
		if !e.together {
			return n
		}
	}
	return n
}

// admit makes an owner a user, who came with q. Its error is that of Share.attach.
func (g *generation) admit(q *seqnode.Queue, r seqnode.Request) (*Share, error) {
	sh := &Share{
		Node: g.node, generation: g, listener: r.Listener,
		margin: q.LossMargin, cancelExpiry: func() {},
	}
	sh.lost, sh.loseNow = context.WithCancelCause(context.Background())
	if q.MaxHold > 0 {
		sh.cancelExpiry = g.entry.key.conn.After(q.MaxHold, sh.expire)
	}
	if err := sh.attach(); err != nil {
		sh.cancelExpiry()
		return nil, err
	}
	g.users++
	return sh, nil
}

// awaitEnd ends a generation that nobody uses once it was idle for long enough. The timer
// of one that is used again goes on: so there is one for each time that it is idle that
// long, and not for each use.
func (g *generation) awaitEnd() {
	if g.idle != nil {
		return
	}
	left := g.policy.Idle - time.Since(g.idleSince)
	g.idle = time.AfterFunc(left, func() {
		g.entry.mu.Lock()
		defer g.entry.mu.Unlock()
		g.idle = nil
		g.entry.reconcile()
	})
}

// refuseImpatient tells those who do not wait for others that it is not their turn.
func (e *entry) refuseImpatient() {
	if e.inTheWay() == nil && !e.isBehindAnother() || e.isLooking() {
		return // nobody knows
	}
	var refused []*waiter
	for i, w := range e.waiting {
		if w.request.TryOnce && !e.isEarly(w) {
			w.where = e.where(i)
			refused = append(refused, w)
		}
	}
	if refused == nil {
		return
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(w *waiter) bool {
		return w.request.TryOnce && !e.isEarly(w)
	})
	for _, w := range refused {
		w.left = e.leftBehind()
		w.settle(nil, wait.ErrBusy)
	}
}

// reconcileLater has the entry looked at again, for those whose margin was in the way: a
// confirmation by the server lets them in, of which nobody is notified.
func (e *entry) reconcileLater() {
	if e.later {
		return
	}
	e.later = true
	e.key.conn.After(lookEvery, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.later = false
		e.reconcile()
	})
}

// newGeneration begins a generation for an owner. It is called with entry.mu held.
func (e *entry) newGeneration(of *waiter) *generation {
	q := *of.q
	q.Cached = true
	g := &generation{
		entry: e, q: &q, policy: of.policy, doubt: doubt{look: make(chan struct{}, 1)},
	}
	g.ctx, g.giveUp = context.WithCancelCause(context.Background())
	g.run = calls.Start(e.key.conn, func() (none struct{}, err error) {
		n, err := g.q.Enter(g.ctx, e.key.conn, seqnode.Request{
			Listener: g, OnDecision: g.looked,
		})
		if e.granted(g, n, err) {
			g.keepWatch()
		}
		return none, err
	})
	return g
}

// What follows happens to an entry from outside: each locks entry.mu, notes what has
// happened, and calls reconcile.

// reconcileNow is reconcile, of one who has not locked the entry.
func (e *entry) reconcileNow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reconcile()
}

// granted ends the part of a generation's goroutine in which it waits; false: there is
// nothing to hold.
func (e *entry) granted(g *generation, n *znode.Node, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next != g { // it was given up
		if n != nil {
			n.Withdraw()
		}
		return false
	}
	e.next = nil
	if err != nil {
		for _, w := range e.waiting {
			w.settle(nil, err)
		}
		e.waiting = nil
		e.reconcile()
		return false
	}
	// This replaces a current generation of readers, if there is one: it admits no more,
	// and ends with the last of its users.
	g.node, g.idleSince, e.current = n, time.Now(), g
	// Those for whom it joined, whoever stands behind by now.
	e.letIn()
	g.doubtful, g.handovers = true, 0
	n.Waive()
	e.reconcile()
	return true
}

// Queued implements seqnode.Listener: it tells those who wait for g.
func (g *generation) Queued(node string, ahead int) {
	e := g.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	g.queued = queuedAt{node, ahead}
	for i, w := range e.waiting {
		if e.next == g && (e.current == nil || !w.told) {
			w.tell(e.positionOf(i))
		}
	}
}

// looked takes note of what the list of a generation that waits has shown; false: nobody
// wants to wait for that.
func (g *generation) looked(at seqnode.Position, followed bool) bool {
	e := g.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	g.position, g.contended = at, followed
	if e.next != g {
		return true // its ctx is done
	}
	e.reconcile()
	return e.next == g
}

// lookEvery is how much time a held generation leaves between two looks at a directory in
// which others come and go who need not wait for it.
const lookEvery = 100 * time.Millisecond

// keepWatch is the generation's goroutine once it is held. Until somebody behind is known
// to wait it watches the directory; then there is nothing more to find out. It looks at
// once where the last change was long ago, as the first after the grant always is. It
// ends with the Node.
func (g *generation) keepWatch() {
	n, s := g.node, g.entry.key.conn
	var looked time.Time
	for looks := 0; !g.isContended(); looks++ {
		if looks > 1 && g.pause(time.Until(looked.Add(lookEvery))) != nil {
			break
		}
		looked = time.Now()
		reconnected := s.Reconnected()
		var left <-chan zk.Event
		followed := true // also where it cannot be known
		err := s.Retry(n.Ended(), func() (err error) {
			followed, left, err = g.followed()
			return err
		})
		if n.Ended().Err() != nil {
			break
		}
		if g.found(err != nil || followed) {
			break
		}
		wake := wait.Wakers{
			Watch: left, Path: g.q.Dir, Ended: n.Ended().Done(), Reconnected: reconnected,
			Poll: wait.NextPoll(),
		}
		if _, ev, _ := wake.Sleep(n.Ended(), s); errors.Is(ev.Err, zk.ErrClosing) {
			s.ConnClosed()
		}
		g.beginDoubt()
	}
	<-n.Ended().Done()
	g.entry.reconcileNow()
}

// pause waits for d, until somebody waits for the look that follows, or until the Node
// has ended, which is an error.
func (g *generation) pause(d time.Duration) error {
	select {
	case <-g.look:
	case <-time.After(max(0, d)):
	case <-g.node.Ended().Done():
	}
	return g.entry.key.conn.Pause(g.node.Ended(), 0)
}

// beginDoubt takes note that somebody has come, or gone.
func (g *generation) beginDoubt() {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	g.doubtful = true
}

// found takes note of whether somebody behind waits for the generation, or may.
func (g *generation) found(followed bool) (contended bool) {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	if !followed {
		g.handovers = 0 // nobody has waited meanwhile
	}
	g.doubtful, g.contended = false, g.contended || followed
	g.entry.reconcile()
	return g.contended
}

// DataChanged implements seqnode.Listener: it tells all who have a part in the
// generation, or wait for it. Who changes the data wants something of its owners: it is
// not kept for others.
func (g *generation) DataChanged(data []byte) {
	e := g.entry
	e.mu.Lock()
	g.closed = true
	var tell []seqnode.Listener
	if g.node != nil {
		for _, t := range g.node.Tenants() {
			tell = append(tell, t.(*tenant).listener)
		}
	} else if e.next == g {
		for _, w := range e.waiting {
			tell = append(tell, w.request.Listener)
		}
	}
	e.reconcile()
	e.mu.Unlock()
	for _, listener := range tell {
		if listener != nil {
			listener.DataChanged(data)
		}
	}
}

// expire ends the Share of an owner who has had it for as long as it may.
func (sh *Share) expire() { sh.end(znode.ErrExpired) }

// end ends the Share of an owner who has lost it. Nobody else is admitted, and once
// nobody is left the generation ends: not before the margin is over, in which this owner
// may still be busy. Others who are in it stay.
func (sh *Share) end(cause error) {
	g, e := sh.generation, sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if sh.released || sh.lost.Err() != nil {
		return
	}
	sh.released = true
	if g.users == 1 {
		g.node.Lose(cause)
	} else if sh.detach() {
		sh.cancelExpiry()
		g.node.Linger(sh.margin)
		sh.loseNow(cause)
	}
	g.leaveOne(true)
	e.reconcile()
}
