package lockcache

import (
	"context"
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
}

type entryKey struct {
	conn  *zkconn.Conn
	queue seqnode.Key
	kind  string
	terms znode.Terms // so that all who share a znode have the same margin
}

// entries finds the entry of its key, for as long as that entry is used.
var entries sync.Map // entryKey to *entry

func entryOf(s *zkconn.Conn, q *seqnode.Queue) *entry {
	key := entryKey{s, q.Key(), q.Kind, q.Terms}
	if e, ok := entries.Load(key); ok {
		return e.(*entry)
	}
	together := !q.Excludes(
		seqname.Name{Kind: q.Kind, Seq: 0}, seqname.Name{Kind: q.Kind, Seq: 1},
	)
	e, _ := entries.LoadOrStore(key, &entry{key: key, together: together})
	return e.(*entry)
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
	if g := e.current; g != nil && len(e.waiting) == 0 && g.isFreeLocked() {
		if sh := g.admitLocked(r); sh != nil {
			if g.doubtful {
				g.handovers++
			}
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
		if at := e.positionOfLocked(len(e.waiting) - 1); at.node != "" {
			w.tellLocked(at)
		}
	}
	return nil, w
}

// reconcileNow is reconcile, of one who has not locked the entry.
func (e *entry) reconcileNow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reconcileLocked()
}

// reconcileLocked decides what is to become of the entry. It is called after every
// change, and nobody else decides.
func (e *entry) reconcileLocked() {
	e.reconcileCurrentLocked()
	e.refuseImpatientLocked()
	room := 0
	if e.current != nil {
		room = e.current.roomLocked()
	}
	switch {
	case len(e.waiting) == 0 && e.next != nil:
		e.next.giveUp(e.next.reasonLocked())
		e.next = nil
	case len(e.waiting) > room && e.next == nil:
		e.next = e.newGenerationLocked(e.waiting[0])
	}
	if e.current == nil && e.next == nil && !e.unused {
		e.unused = true
		entries.Delete(e.key)
	}
}

// reconcileCurrentLocked admits whoever may be, and gives up what nobody here needs, or
// may keep.
func (e *entry) reconcileCurrentLocked() {
	g := e.current
	if g == nil {
		return
	}
	if g.isFreeLocked() {
		e.letInLocked()
	}
	if len(e.waiting) > 0 && g.mustLookLocked() {
		g.hurry()
	}
	switch {
	case g.node.Ended().Err() != nil: // it was lost
		g.stopIdleLocked()
		if g.users == 0 && g.left == nil {
			g.leaveLocked()
		}
		e.current = nil
	case g.users > 0:
	case g.isOverLocked():
		g.leaveLocked()
		e.current = nil
	default:
		g.awaitEndLocked()
	}
}

// letInLocked admits the first that waits, and of owners who have the entry together all
// that may be.
func (e *entry) letInLocked() {
	for len(e.waiting) > 0 && !e.current.mustLookLocked() {
		w := e.waiting[0]
		sh := e.current.admitLocked(w.request)
		if sh == nil {
			return // it is lost
		}
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		w.settleLocked(sh, nil)
		if e.current.countsLocked() {
			e.current.handovers++
		}
		if !e.together {
			return
		}
	}
}

// refuseImpatientLocked tells those who do not wait for others that it is not their turn.
func (e *entry) refuseImpatientLocked() {
	if e.inTheWayLocked() == nil && !e.isBehindAnotherLocked() || e.isLookingLocked() {
		return // nobody knows
	}
	var refused []*waiter
	for i, w := range e.waiting {
		if w.request.TryOnce {
			w.where = e.whereLocked(i)
			refused = append(refused, w)
		}
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(w *waiter) bool {
		return w.request.TryOnce
	})
	for _, w := range refused {
		w.left = e.leftBehindLocked()
		w.settleLocked(nil, wait.ErrBusy)
	}
}

// newGenerationLocked begins a generation for an owner.
func (e *entry) newGenerationLocked(of *waiter) *generation {
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
			w.settleLocked(nil, err)
		}
		e.waiting = nil
		e.reconcileLocked()
		return false
	}
	// This replaces a current generation of readers, if there is one: it admits no more,
	// and ends with the last of its users.
	g.node, g.idleSince, e.current = n, time.Now(), g
	// Those for whom it joined, whoever stands behind by now.
	e.letInLocked()
	g.doubtful, g.handovers = true, 0
	e.reconcileLocked()
	return true
}

// inTheWayLocked returns the generation that those who wait wait for, nil if that is not
// the current one: of owners who have it together it admits no more, and they wait next
// to it.
func (e *entry) inTheWayLocked() *generation {
	if e.current != nil && e.together && e.current.roomLocked() == 0 {
		return nil
	}
	return e.current
}

// isBehindAnotherLocked tells whether the next generation waits for somebody. A cached
// entry that may be idle is nobody: it leaves soon.
func (e *entry) isBehindAnotherLocked() bool {
	return e.next != nil && e.next.position.Behind != "" && !e.next.position.MayBeIdle
}

// isLookingLocked tells whether no user of the current generation is in the way, and
// whether the first that waits may use it is being asked.
func (e *entry) isLookingLocked() bool {
	g := e.current
	return g != nil && (g.users == 0 || e.together) && !g.closed && g.mustLookLocked()
}

// leftBehindLocked tells when nothing is left that was made for those who have waited,
// nil where there is nothing, or others wait for it.
func (e *entry) leftBehindLocked() *calls.Pending[struct{}] {
	if len(e.waiting) > 0 || e.next == nil {
		return nil
	}
	return e.next.run
}

// whereLocked says who is ahead of the one who waits at an index; the zero Place if
// nobody knows.
func (e *entry) whereLocked(at int) wait.Place {
	switch g := e.inTheWayLocked(); {
	case e.isLookingLocked():
		return wait.Place{}
	case g != nil:
		return seqnode.BehindOurs(e.positionOfLocked(at).ahead, g.node.Path).Place()
	case e.next == nil:
		return wait.Place{}
	}
	where := e.next.position
	where.Ahead += e.before(at)
	return where.Place()
}

// positionOfLocked is what the Listener is told of the one who waits at an index.
func (e *entry) positionOfLocked(at int) queuedAt {
	switch g := e.inTheWayLocked(); {
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
