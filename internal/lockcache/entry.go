package lockcache

import (
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Policy says for how long an entry stays cached.
type Policy struct {
	Idle time.Duration // while nobody uses it, and nobody else wants it
	// how many local hand-overs in a row are allowed while others want it
	MaxHandovers int
}

// An entry is what the owners of one kind share: they use the same connection, queue in
// the same directory with one znode, and have the same terms. Owners of an exclusive kind
// use it one after the other, in the order in which they came; readers use it together.
// See the package's page.
type entry struct {
	// Set by entryOf.
	key      entryKey
	together bool // the kind does not exclude itself

	// mu guards the rest, and what generations, waiters and Shares say. It comes before
	// the mutexes of the packages below. Nobody calls ZooKeeper or waits with it held.
	mu      sync.Mutex
	current *generation // the last that was granted, unless it is over
	next    *generation // in the queue, or on its way there, for those who wait
	waiting []*waiter   // in the order in which they came
	unused  bool        // it is no longer in entries, so nobody may join it
	demand  demand
}

// A demand is what an entry remembers of other processes, from one generation to the
// next. The connection keeps it (Conn.Note) while the entry is not used.
type demand struct {
	seen time.Time // when another process was last seen in the queue
	// vain counts the cached generations in a row that others wanted, and that served one
	// owner: nothing was gained by the watch on the directory and the list that comes
	// with it.
	vain int
}

// An entry that was cached in vain so often in a row is not cached, until for quiet no
// other process was seen in the queue.
const (
	vainAtMost = 2
	quiet      = time.Second
)

type entryKey struct {
	conn  *zkconn.Conn
	queue seqnode.Key
	kind  string
	terms znode.Terms // a shared znode has one loss margin
}

// entries finds an entry by its key, for as long as it is used.
var entries sync.Map // entryKey to *entry

func entryOf(conn *zkconn.Conn, q *seqnode.Queue) *entry {
	key := entryKey{conn, q.Key(), q.Kind, q.Terms}
	if e, ok := entries.Load(key); ok {
		return e.(*entry)
	}
	together := !q.Excludes(
		seqname.Name{Kind: q.Kind, Seq: 0}, seqname.Name{Kind: q.Kind, Seq: 1},
	)
	d, _ := conn.Noted(key).(demand)
	e, _ := entries.LoadOrStore(key, &entry{key: key, together: together, demand: d})
	return e.(*entry)
}

// isWorthCachingLocked reports whether the next generation is to be cached. Readers are
// always: an entry that they share spares them a znode each.
func (e *entry) isWorthCachingLocked() bool {
	return e.together || e.demand.vain < vainAtMost || time.Since(e.demand.seen) >= quiet
}

// arrive admits an owner at once, or returns a waiter for it. It returns neither if the
// entry is unused by now; then the key has, or will get, another one.
func (e *entry) arrive(
	q *seqnode.Queue, policy Policy, r seqnode.Request,
) (*Share, *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unused {
		return nil, nil
	}
	// The case for which all this exists: no request, and nothing to wait for.
	if g := e.current; g != nil && len(e.waiting) == 0 && g.isFreeLocked() {
		if sh := g.admitLocked(r); sh != nil {
			return sh, nil
		}
	}
	w := &waiter{
		entry: e, q: q, policy: policy, request: r,
		queued: make(chan queuedAt, 1), settled: make(chan struct{}),
	}
	e.waiting = append(e.waiting, w)
	e.reconcileLocked()
	if !w.isSettled() {
		if at := e.positionLocked(len(e.waiting) - 1); at.node != "" {
			w.reportLocked(at)
		}
	}
	return nil, w
}

// reconcile is reconcileLocked for a caller that does not hold the mutex.
func (e *entry) reconcile() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reconcileLocked()
}

// reconcileLocked decides what happens to the entry. It is called after every change, and
// nobody else decides: whatever came to pass, the four steps below lead from there to a
// state in which nothing is left to do.
func (e *entry) reconcileLocked() {
	// The current generation comes first: those whom it admits need no next one, and its
	// end may leave only the next one to wait for.
	e.reconcileCurrentLocked()
	// Then the single attempts. They are not counted below: no znode is created for an
	// owner that would not wait for it.
	e.dismissSingleAttemptsLocked()
	room := 0
	if e.current != nil {
		room = e.current.roomLocked()
	}
	switch {
	case len(e.waiting) == 0 && e.next != nil:
		// All for whom it queued have left, or the current one has admitted them.
		e.next.cancel(e.next.reasonLocked())
		e.next = nil
	case len(e.waiting) > room && e.next == nil:
		// Some of them have to queue. They do so now, behind the current znode, and not
		// once that is gone: so their turn comes before that of later processes.
		e.next = e.startLocked(e.waiting[0])
	}
	if e.current == nil && e.next == nil && !e.unused {
		e.unused = true
		if !e.demand.seen.IsZero() {
			e.key.conn.Note(e.key, e.demand)
		}
		entries.Delete(e.key)
	}
}

// reconcileCurrentLocked admits all who may enter, and releases what is not needed here,
// or may not be kept.
func (e *entry) reconcileCurrentLocked() {
	g := e.current
	if g == nil {
		return
	}
	// Admission before release: a generation with users is not released.
	if g.isFreeLocked() {
		e.admitWaitersLocked()
	}
	if len(e.waiting) > 0 && g.mustLookLocked() {
		g.hurry() // its goroutine may be in the pause between two looks
	}
	switch {
	case g.node.HasEnded():
		// It was lost; Ended comes later than Lost. Its users were notified by the Node,
		// and release their Shares later. The delete is begun here only if there are
		// none, since otherwise the last of them wants to wait for it.
		g.stopIdleLocked()
		if g.users == 0 && g.awaitDelete == nil {
			g.startLeavingLocked()
		}
		e.current = nil
	case g.users > 0:
		// Whatever others want, they wait for these.
	case g.isOverLocked():
		switch {
		case !g.q.Cached: // it shows nothing of what caching would have gained
		case g.contended && g.owners == 1:
			e.demand.vain++
		default:
			e.demand.vain = 0
		}
		g.startLeavingLocked()
		e.current = nil
	default:
		g.startIdleLocked()
	}
}

// admitWaitersLocked admits the first that waits, and of owners who use the entry
// together all that may be.
func (e *entry) admitWaitersLocked() {
	// In a doubt a hand-over may be the last that is allowed, so this is asked each time.
	for len(e.waiting) > 0 && !e.current.mustLookLocked() {
		w := e.waiting[0]
		sh := e.current.admitLocked(w.request)
		if sh == nil {
			return // the znode is lost: they wait for the next one
		}
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		w.settleLocked(sh, nil)
		if !e.together {
			return
		}
	}
}

// dismissSingleAttemptsLocked ends the wait of those who do not wait for others
// (Request.SingleAttempt), once it is known that somebody is ahead.
func (e *entry) dismissSingleAttemptsLocked() {
	switch {
	case e.isLookingLocked():
		return // the answer under way may admit them
	case e.blockerLocked() == nil && !e.isBehindAnotherLocked():
		return // it may be their turn
	}
	var singles []*waiter
	for i, w := range e.waiting {
		if w.request.SingleAttempt {
			w.where = e.whereLocked(i) // while all the others are still in the slice
			singles = append(singles, w)
		}
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(w *waiter) bool {
		return w.request.SingleAttempt
	})
	for _, w := range singles {
		w.cleared = e.clearingLocked()
		w.settleLocked(nil, wait.ErrBusy)
	}
}

// granted is called by g's goroutine with what Queue.Enter has returned. If that is a
// held Node, g becomes the current generation. It returns false if there is nothing to
// hold.
func (e *entry) granted(g *generation, n *znode.Node, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next != g { // it was cancelled, and the grant came all the same
		if n != nil {
			n.Withdraw()
		}
		return false
	}
	e.next = nil
	if err != nil {
		// Permanent, or it would still be trying: it would be the same for each of them.
		for _, w := range e.waiting {
			w.settleLocked(nil, err)
		}
		e.waiting = nil
		e.reconcileLocked()
		return false
	}
	// This replaces a current generation, if there is one, of readers or that was lost.
	// The former one admits no more, and ends with the last of its users.
	g.node, g.idleSince, e.current = n, time.Now(), g
	// Those who wait now are those for whom it queued. The first of them, or all readers,
	// are admitted before anything is counted: they overtake no process.
	e.admitWaitersLocked()
	g.doubtful, g.handovers = true, 0
	if !g.q.Cached {
		// Others want it, most likely. To assume so saves the list that would show it: g
		// is released as soon as nobody here waits, as an ordinary znode is.
		g.contended = true
	}
	e.reconcileLocked()
	return true
}

// blockerLocked returns the generation for which the waiters wait: the current one. It is
// nil if there is none, or one of readers that admits no more: then they queue with the
// znode of the next generation, which that one does not block.
func (e *entry) blockerLocked() *generation {
	if e.current != nil && e.together && e.current.roomLocked() == 0 {
		return nil
	}
	return e.current
}

// isBehindAnotherLocked reports whether the next generation waits for somebody. A cached
// entry that may be idle does not count: it leaves soon.
func (e *entry) isBehindAnotherLocked() bool {
	return e.next != nil && e.next.position.Behind != "" && !e.next.position.MayBeIdle
}

// isLookingLocked reports whether only the answer to a list is missing: no user of the
// current generation is in the way of the first that waits.
func (e *entry) isLookingLocked() bool {
	g := e.current
	return g != nil && (g.users == 0 || e.together) && !g.closed && g.mustLookLocked()
}

// clearingLocked returns what is done once nothing is left of what was begun for those
// who leave; nil if there is nothing, or others wait for it.
func (e *entry) clearingLocked() *calls.Pending[struct{}] {
	if len(e.waiting) > 0 || e.next == nil {
		return nil
	}
	return e.next.run
}

// whereLocked says who is ahead of the waiter at an index; the zero Place if that is not
// known.
func (e *entry) whereLocked(at int) wait.Place {
	switch g := e.blockerLocked(); {
	case e.isLookingLocked():
		return wait.Place{}
	case g != nil:
		return seqnode.BehindOurs(e.positionLocked(at).ahead, g.node.Path).Place()
	case e.next == nil:
		return wait.Place{}
	}
	where := e.next.position
	where.Ahead += e.before(at)
	return where.Place()
}

// positionLocked is what the Listener of the waiter at an index receives.
func (e *entry) positionLocked(at int) queuedAt {
	switch g := e.blockerLocked(); {
	case g != nil:
		return queuedAt{g.node.Path, g.users + e.before(at)}
	case e.next != nil && e.next.queued.node != "":
		return queuedAt{e.next.queued.node, e.next.queued.ahead + e.before(at)}
	}
	return queuedAt{}
}

// before is how many of this process go before the waiter at an index.
func (e *entry) before(at int) int {
	if e.together {
		return 0
	}
	return at
}
