package lockcache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// Policy says for how long an entry is cached that could be given up.
type Policy struct {
	Idle time.Duration // while nobody uses it, and nobody else wants it
	// how often in a row it is handed over in this process while others want it
	MaxHandovers int
}

// An entry is where the owners of this process, all who come through one connection,
// stand together in a queue with one znode. The owners of a kind that excludes itself
// have it one after the other, in the order in which they came; those of one that does
// not (readers) have it together. It is cached when they have left, until somebody else
// wants it. See the package's page.
type entry struct {
	// Set by entryOf.
	key      entryKey
	together bool // whether its owners have it together

	// mu guards what follows, and what generations and Shares say it does. It comes
	// before the mutexes of the packages below; nobody who has it calls ZooKeeper or
	// waits for anything else.
	mu      sync.Mutex
	current *generation // the last that was granted, unless it is over
	next    *generation // in the queue, or on its way there, for those who wait
	waiting []*waiter   // in the order in which they came
	unused  bool        // and another has the key, or will: nobody may come here
	later   bool        // reconcileLater is under way
}

type entryKey struct {
	conn  *zkconn.Conn
	queue seqnode.Key
	kind  string
}

// entries finds the entry of a connection, a directory and a kind. It has those that are
// used.
var entries sync.Map // entryKey to *entry

func entryOf(s *zkconn.Conn, q *seqnode.Queue) *entry {
	key := entryKey{s, q.Key(), q.Kind}
	if e, ok := entries.Load(key); ok {
		return e.(*entry)
	}
	together := !q.Excludes(
		order.Name{Kind: q.Kind, Seq: 0}, order.Name{Kind: q.Kind, Seq: 1},
	)
	e, _ := entries.LoadOrStore(key, &entry{key: key, together: together})
	return e.(*entry)
}

// A waiter is an owner who waits for an entry.
type waiter struct {
	entry   *entry
	q       *seqnode.Queue
	policy  Policy
	request seqnode.Request
	queued  chan queuedAt // has room for the latest; sent to with entry.mu held
	settled chan struct{} // closed by settle

	// Guarded by entry.mu until settled is closed.
	told  bool // something was sent on queued
	early bool // its margin was in the way when it could have been admitted; see letIn
	share *Share
	err   error
	where string          // where it stood, of wait.ErrBusy
	left  <-chan struct{} // closed once nothing is left behind that was made for it
}

// Enter is Queue.Enter for owners who share an entry, which is cached as the policy says.
// An owner that finds it held and free, or to which it is handed over, sends no request,
// and OnQueued is not called if there is no wait. OnDecision and WatchSelf of the request
// are not used.
func Enter(
	ctx context.Context, s *zkconn.Conn, q *seqnode.Queue, policy Policy,
	r seqnode.Request,
) (*Share, error) {
	if err := q.Check(s); err != nil {
		return nil, err
	}
	asked := time.Now()
	for {
		sh, w := entryOf(s, q).arrive(q, policy, r)
		switch {
		case sh != nil:
			return sh, nil
		case w != nil:
			return w.await(ctx, asked)
		}
	}
}

// arrive lets an owner in at once, or lets it wait. It does neither where the entry is
// not used any more.
func (e *entry) arrive(
	q *seqnode.Queue, policy Policy, r seqnode.Request,
) (*Share, *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unused {
		return nil, nil
	}
	if g := e.current; g != nil && len(e.waiting) == 0 && g.isFree() {
		if sh, err := g.admit(q, r); err == nil {
			return sh, nil
		}
	}
	w := &waiter{
		entry: e, q: q, policy: policy, request: r,
		queued: make(chan queuedAt, 1), settled: make(chan struct{}),
	}
	e.waiting = append(e.waiting, w)
	e.reconcile()
	if !w.isSettled() {
		if at := e.positionOf(len(e.waiting) - 1); at.node != "" {
			w.tell(at)
		}
	}
	return nil, w
}

// await waits until the owner is admitted.
func (w *waiter) await(ctx context.Context, asked time.Time) (*Share, error) {
	over := false
	defer func() {
		if !over { // OnQueued has panicked, or ended the goroutine
			w.depart(errNobodyWaits)
			w.giveBack()
		}
	}()
	for settled := false; !settled; {
		select {
		case at := <-w.queued:
			w.onQueued(at)
			continue
		case <-w.settled:
		case <-ctx.Done():
			w.depart(zkconn.Cancelled(ctx))
		}
		settled = true
	}
	select {
	case at := <-w.queued: // it has come before
		w.onQueued(at)
	default:
	}
	over = true
	if w.share != nil && ctx.Err() == nil {
		return w.share, nil
	}
	if w.share != nil { // it came too late
		w.giveBack()
		w.err, w.where = zkconn.Cancelled(ctx), "its turn came as the wait was over"
	}
	w.awaitLeft()
	return nil, wait.Explain(w.entry.key.conn, w.err, w.where, asked)
}

func (w *waiter) onQueued(at queuedAt) {
	if w.request.OnQueued != nil {
		w.request.OnQueued(at.node, at.ahead)
	}
}

func (w *waiter) giveBack() {
	if w.share != nil {
		w.share.Withdraw()
	}
}

// awaitLeft waits, for a time that a caller who gives up can spare.
func (w *waiter) awaitLeft() {
	if w.left == nil {
		return
	}
	select {
	case <-w.left:
	case <-time.After(znode.LeaveWithin):
	}
}

// depart ends the wait of an owner who leaves, unless it has ended already.
func (w *waiter) depart(cause error) {
	e := w.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.isSettled() {
		return
	}
	at := slices.Index(e.waiting, w)
	w.where = e.where(at)
	e.waiting = slices.Delete(e.waiting, at, at+1)
	w.left = e.leftBehind()
	w.settle(nil, cause)
	e.reconcile()
}

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
	// A generation that was held before, of readers kept apart by a writer who has left
	// since, ends with those who are in it.
	g.node, g.idleSince, e.current = n, time.Now(), g
	// Those for whom it joined, whoever stands behind by now.
	e.letIn()
	n.Waive()
	e.reconcile()
	return true
}

// tellQueued returns what is told each time that g has joined the queue.
func (e *entry) tellQueued(g *generation) func(node string, ahead int) {
	return func(node string, ahead int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		g.queued = queuedAt{node, ahead}
		for i, w := range e.waiting {
			if e.next == g && (e.current == nil || !w.told) {
				w.tell(e.positionOf(i))
			}
		}
	}
}

// What follows is called with entry.mu held.

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
		e.next.giveUp(errNobodyWaits)
		e.next = nil
	case len(e.waiting) > room && e.next == nil:
		e.next = e.newGeneration(e.waiting[0])
	}
	if e.current == nil && e.next == nil && !e.unused {
		e.unused = true
		entries.Delete(e.key)
	}
}

// reconcileCurrent admits whoever may be, and gives up what nobody here needs, or may
// keep.
func (e *entry) reconcileCurrent() {
	g := e.current
	if g == nil {
		return
	}
	if len(e.waiting) > 0 && g.isFree() {
		n := e.letIn()
		if g.contended || !g.watched {
			g.handovers += n
		}
	}
	switch {
	case g.node.Ended().Err() != nil: // it was lost
		g.stopIdle()
		e.current = nil
	case g.users > 0:
	case g.isOver():
		g.leave()
		e.current = nil
	default:
		g.awaitEnd()
	}
}

// letIn admits the first that waits, and of owners who have the entry together all, and
// tells how many that were. One whose margin has begun, or would soon with nothing amiss,
// is passed over for now: those who are in it do not lose it by that.
func (e *entry) letIn() (n int) {
	for i := 0; i < len(e.waiting); {
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
		}
		if !e.together {
			return n
		}
	}
	return n
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

// inTheWay returns the generation that those who wait wait for, nil if that is not the
// current one: of owners who have it together it admits no more, and they wait next to
// it.
func (e *entry) inTheWay() *generation {
	if e.current != nil && e.together && e.current.room() == 0 {
		return nil
	}
	return e.current
}

// refuseImpatient tells those who do not wait for others that it is not their turn.
func (e *entry) refuseImpatient() {
	if e.inTheWay() == nil && (e.next == nil || e.next.position.Behind == "") {
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

// leftBehind tells when nothing is left that was made for those who have waited, nil
// where there is nothing, or others wait for it.
func (e *entry) leftBehind() <-chan struct{} {
	if len(e.waiting) > 0 || e.next == nil {
		return nil
	}
	return e.next.run.Done()
}

// isEarly tells whether nobody is in the way of the one who waits but its own margin.
func (e *entry) isEarly(w *waiter) bool {
	return w.early && e.current != nil && e.current.isFree()
}

// where says who is ahead of the one who waits at an index, "" if nobody knows.
func (e *entry) where(at int) string {
	switch g := e.inTheWay(); {
	case e.isEarly(e.waiting[at]):
		return ""
	case g != nil:
		return seqnode.BehindOurs(e.positionOf(at).ahead, g.node.Path).String()
	case e.next == nil:
		return ""
	}
	where := e.next.position
	where.Ahead += e.before(at)
	return where.String()
}

// positionOf is what OnQueued is called with for the one who waits at an index.
func (e *entry) positionOf(at int) queuedAt {
	switch g := e.inTheWay(); {
	case g != nil:
		return queuedAt{g.node.Path, g.users + e.before(at)}
	case e.next != nil && e.next.queued.node != "":
		return queuedAt{e.next.queued.node, e.next.queued.ahead + e.before(at)}
	}
	return queuedAt{}
}

// before is how many go before the one who waits at an index.
func (e *entry) before(at int) int {
	if e.together {
		return 0
	}
	return at
}

// tell tells the latest.
func (w *waiter) tell(at queuedAt) {
	select {
	case <-w.queued:
	default:
	}
	w.queued <- at
	w.told = true
}

func (w *waiter) settle(sh *Share, err error) {
	w.share, w.err = sh, err
	close(w.settled)
}

func (w *waiter) isSettled() bool {
	select {
	case <-w.settled:
		return true
	default:
		return false
	}
}
