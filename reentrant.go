package recipes

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/lockcache"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// reentrant is what the mutex, the read lock and the write lock share: who holds it, and
// how often. For what owners, stays and records are see owner.go, and grant.go for grants
// and what they rest on.
type reentrant struct {
	conn      Conn
	path      string
	config    zkconn.Config
	reporter  *reporter
	queue     *seqnode.Queue
	caching   *lockcache.Policy // how its queue entry is cached; nil: it is not
	revocable chan struct{}     // closed by the first MakeRevocable

	book     *book
	side     int        // of the book: 1 of a write lock, else 0
	other    *reentrant // the other side of a read/write lock; else nil
	listener func()     // guarded by book.mu
}

// An ownership is what an owner has of the lock: an Acquire under way, then a grant, and
// the records that share it.
type ownership struct {
	lock *reentrant
	stay *stay // on both sides of a read/write lock the same
	// What counts the first Acquire until it is settled: the naming that gave its owner,
	// or if that is new the one in its observer's ctx; nil: none that can end.
	by     *naming
	teller teller // tells of the first Acquire; used by that alone

	observing presence // of the goroutine that reports the position

	// Guarded by book.mu.
	grant         *grant // nil while the first Acquire is under way
	records       []*Hold
	settled       chan struct{} // closed when the first Acquire ends; nil: nobody waits
	listening     int32         // calls of the listener that run
	revokePending bool          // the lock was asked back, and no listener called for it

	made struct { // what stay, grant and the first record may point to: one allocation
		stay  stay
		grant grant
		hold  Hold
		holds [1]*Hold
	}
}

// newReentrant returns the lock at the directory of queue.
func newReentrant(
	conn Conn, s settings, recipe string, queue *seqnode.Queue,
) *reentrant {
	return &reentrant{
		conn: conn, path: queue.Dir, config: s.sessionConfig(conn),
		reporter: &reporter{
			recipe: recipe, path: queue.Dir, conn: conn, observer: s.lockObserver(),
		},
		queue: queue, caching: s.caching,
		revocable: make(chan struct{}), book: &book{stays: map[owner]*stay{}},
	}
}

// where implements core.
func (r *reentrant) where() string {
	if r == nil {
		return ""
	}
	return r.path
}

// ownedLocked returns what an owner has of the lock; nil: nothing.
func (r *reentrant) ownedLocked(who owner) *ownership {
	if here := r.book.stays[who]; here != nil {
		return here.owned[r.side]
	}
	return nil
}

// eachLocked yields what each owner has of the lock.
func (r *reentrant) eachLocked(yield func(o *ownership) bool) {
	for _, here := range r.book.stays {
		if o := here.owned[r.side]; o != nil && !yield(o) {
			return
		}
	}
}

// acquire implements core.
func (r *reentrant) acquire(a acquisition) (*Hold, error) {
	if err := usable("acquire", r.where(), a.ctx); err != nil {
		return nil, err
	}
	hold, err := r.acquireBare(a)
	return hold, wrap("acquire", r.path, err)
}

// acquireBare is acquire whose error the caller completes. The wait ends with ctx or the
// bound; the observer receives the ctx of the call.
func (r *reentrant) acquireBare(a acquisition) (*Hold, error) {
	ctx, cancel, err := a.within(a.ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	hold, o, err := r.claim(ctx, a)
	if o == nil { // the owner re-entered its grant, or got an error
		return hold, err
	}
	defer func() { o.teller.call = nil }() // which the ownership would keep
	hold, err = r.enter(ctx, o, a)
	if err != nil {
		o.teller.failed(err)
		return nil, err
	}
	o.teller.acquired(func() { hold.end() }, hold.grant)
	return hold, nil
}

// claim re-enters the owner's grant, or returns why that was lost. If there is none, it
// returns a new ownership, which enter settles in any case. While another goroutine of
// the owner's is acquiring, it waits for that first.
func (r *reentrant) claim(ctx context.Context, a acquisition) (*Hold, *ownership, error) {
	var by *naming // which names the caller for as long as this waits
	defer func() {
		if by != nil {
			by.waited(r.book)
		}
	}()
	for {
		hold, mine, others, err := r.claimOnce(&a.caller, &by)
		switch {
		case others == nil:
			return hold, mine, err
		case a.single:
			return nil, nil, &wait.Busy{Place: elsewhere, Cause: wait.ErrBusy}
		case others.observing.isHere():
			return nil, nil, errObserving
		}
		if err := r.awaitTurn(ctx, others.settled); err != nil {
			return nil, nil, err
		}
	}
}

var errObserving = errors.New("the owner is queueing for it, and its observer, which " +
	"acquires it as the same owner, would wait for itself")

// awaitTurn waits for another goroutine of the owner's, which is acquiring, until turn
// yields: what an ownership has settled is closed; a LeaderLatch's turn has one token,
// which is the caller's then.
func (r *reentrant) awaitTurn(ctx context.Context, turn <-chan struct{}) error {
	select {
	case <-turn:
		return nil
	default:
	}
	asked, use := time.Now(), zkconn.Use(r.conn, r.config)
	defer use.Release()
	defer wait.AskBeforeEnd(ctx, use)()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return wait.Explain(use, outcome.Cancelled(ctx), elsewhere, asked)
	}
}

// elsewhere is where an owner stands that acquires the lock on two goroutines at once.
var elsewhere = wait.Place{Text: "its owner is acquiring it on another goroutine"}

// claimOnce is claim without a wait. If another goroutine of the owner's is acquiring, it
// returns others, to wait for; counted is set then to the naming that counts the call.
func (r *reentrant) claimOnce(
	c *caller, counted **naming,
) (hold *Hold, mine, others *ownership, err error) {
	who, by := r.book.lockFor(c)
	defer r.book.unlock(by)
	o := r.ownedLocked(who)
	if o == nil {
		o = &ownership{lock: r, by: by}
		o.stay = r.book.beginCallLocked(who, by, &o.made.stay)
		o.stay.owned[r.side] = o
		return nil, o, nil, nil
	}
	switch {
	case o.grant == nil:
		if o.settled == nil {
			o.settled = make(chan struct{})
		}
		if by != nil && *counted == nil {
			by.scopes[r.book].calls++
			*counted = by
		}
		return nil, nil, o, nil
	case o.grant.err() != nil:
		return nil, nil, nil, o.grant.err()
	}
	if by != nil {
		by.include(o.stay, o.stay.period.Load())
	}
	return o.recordLocked(new(Hold)), nil, nil, nil
}

// recordLocked makes h, which is new, the record of one more acquisition.
func (o *ownership) recordLocked(h *Hold) *Hold {
	h.grant = o.grant
	o.stay.recordLocked(h)
	o.records = append(o.records, h)
	return h
}

// Queued implements seqnode.Listener (DataChanged is in revoke.go). It notes which
// goroutine the observer runs on: an Acquire by the same owner from there would wait for
// itself, and fails instead (claim).
func (o *ownership) Queued(node string, ahead int) {
	if o.lock.reporter.observer == nil {
		return
	}
	o.observing.enter()
	defer o.observing.leave()
	o.teller.Queued(node, ahead)
}

// enter gets the owner what a hold rests on, and settles the ownership in any case, also
// if the observer, or the ctx of the call, panics or ends the goroutine.
func (r *reentrant) enter(
	ctx context.Context, o *ownership, a acquisition,
) (hold *Hold, err error) {
	callOrElse(func() {
		call := a.ctx
		if o.stay.who == a.self && a.self.identity != 0 && r.reporter.observer != nil {
			// The caller's ctx names nobody: the owner is the call's own. The observer's
			// ctx names it: if the observer acquires the lock, it does so as that owner.
			call = withOwners(call, scope{of: o.stay, calls: 1}) // this one
			o.by = callerOf(call).naming
		}
		o.teller = newTeller(call, r.reporter)
		var on backing
		on, err = r.obtain(ctx, o.stay.who, seqnode.Request{
			SingleAttempt: a.single, WatchSelf: r.revocable, Listener: o,
		})
		hold = r.settle(o, on)
	}, func() { r.settle(o, nil) })
	return hold, err
}

// obtain gets an owner what a hold rests on: by a new entry in the queue as a rule.
func (r *reentrant) obtain(
	ctx context.Context, who owner, req seqnode.Request,
) (backing, error) {
	use := zkconn.Use(r.conn, r.config)
	defer use.Release()
	if r.other != nil {
		g, observing := r.other.heldBy(who)
		switch {
		case observing:
			return nil, errObserving
		case g != nil && r.side == 1:
			return nil, ErrUpgrade // it would wait for its own read lock
		case g != nil:
			if writer := g.node.under(); writer != nil { // its owner reads without a wait
				return backedBy(r.queue.EnterUnder(ctx, use, writer, req))
			}
		}
	}
	if r.caching == nil {
		return backedBy(r.queue.Enter(ctx, use, req))
	}
	share, err := lockcache.Enter(ctx, use, r.queue, *r.caching, req)
	if err != nil {
		return nil, err
	}
	return sharedZnode{share}, nil
}

// settle records how the first Acquire of an ownership has ended: with a grant that rests
// on something, or with none.
func (r *reentrant) settle(o *ownership, on backing) (hold *Hold) {
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	if on == nil {
		o.stay.owned[r.side] = nil
	} else {
		o.grant = o.made.grant.restOn(on, o.teller.reporter)
		o.records = o.made.holds[:0]
		hold = o.recordLocked(&o.made.hold)
		o.watchLocked()
	}
	r.book.endCallLocked(o.stay, o.by, hold)
	if o.settled != nil {
		close(o.settled)
	}
	return hold
}

// youngest implements core.
func (r *reentrant) youngest(c caller) *Hold {
	who, by := r.book.lockFor(&c)
	defer r.book.unlock(by)
	return r.youngestLocked(who)
}

// youngestLocked returns what an owner has acquired last and not released, lost or not;
// nil: there is nothing.
func (r *reentrant) youngestLocked(who owner) *Hold {
	if o := r.ownedLocked(who); o != nil {
		if at := latest(o.records); at >= 0 {
			return o.records[at]
		}
	}
	return nil
}

// some implements core.
func (r *reentrant) some(is func(h *Hold) bool) bool {
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	for o := range r.eachLocked {
		if slices.ContainsFunc(o.records, is) {
			return true
		}
	}
	return false
}

// heldBy returns the grant of an owner that holds the lock and has not lost it, else nil,
// and whether the caller is the observer of that owner's first Acquire.
func (r *reentrant) heldBy(who owner) (g *grant, observing bool) {
	r.book.mu.Lock()
	o, h := r.ownedLocked(who), r.youngestLocked(who)
	r.book.mu.Unlock()
	if h != nil && h.err() == nil {
		g = h.grant
	}
	return g, o != nil && o.observing.isHere()
}

// These two are the exported types' methods of the same names.

func (r *reentrant) IsOwned(ctx context.Context) bool { return r.LockPath(ctx) != "" }

func (r *reentrant) LockPath(ctx context.Context) string {
	if h := holdOf(ctx, r); h != nil && h.err() == nil {
		return h.path()
	}
	return ""
}
