package recipes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
)

// reentrant is what the mutex, the read lock and the write lock share: who holds it, and
// how often.
type reentrant struct {
	conn      Conn
	path      string
	config    session.Config
	steps     *steps
	queue     *seqnode.Queue
	keeps     bool          // the place in the queue, for all owners; see WithCaching
	revocable chan struct{} // closed by the first MakeRevocable

	// Of the two sides of a read/write lock only, set by its constructor.
	refuse func(owner) error         // why an owner may not queue; nil: it may
	beside func(owner) *seqnode.Node // its write node, beside which it need not queue
	pair   any                       // both sides' key of owners

	mu       sync.Mutex // guards what follows; not held across a call to ZooKeeper
	claims   map[owner]*claim
	listener func()
}

// A claim is an owner's stake in the lock: an Acquire under way, then a hold, of which it
// is the releaser.
type claim struct {
	lock    *reentrant
	who     owner
	settled chan struct{} // closed when the first Acquire has ended
	steps   *steps        // of that

	// Guarded by reentrant.mu.
	hold          *Hold // nil while the first Acquire is under way
	count         int
	revokePending bool   // the lock was asked back while there was no listener
	observing     uint64 // the goroutine that tells of the place in the queue; 0: none
}

func newReentrant(
	conn Conn, s settings, recipe, path, kind string, kinds []string, rule seqnode.Rule,
) *reentrant {
	if s.look == nil {
		s.look = s.lookout(recipe, path)
	}
	return &reentrant{
		conn: conn, path: path, config: s.sessionConfig(conn),
		steps: &steps{recipe: recipe, path: path, observer: s.observer},
		queue: s.queue(path, kind, kinds, rule), keeps: s.keep != nil,
		revocable: make(chan struct{}), claims: map[owner]*claim{},
	}
}

// where is the lock's path, "" of a zero value.
func (r *reentrant) where() string {
	if r == nil {
		return ""
	}
	return r.path
}

// Acquire implements InterProcessLock. An owner that holds the lock re-enters without
// asking ZooKeeper; if its hold was lost it gets ErrLockLost until it has released as
// often as it had acquired.
func (r *reentrant) Acquire(ctx context.Context) error {
	_, err := r.acquireWithin(ctx, limit{})
	return err
}

// AcquireTimeout implements InterProcessLock.
func (r *reentrant) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	_, err := r.acquireWithin(ctx, newLimit(timeout))
	return heldOrBusy(ctx, err)
}

// take implements nativeLock.
func (r *reentrant) take(ctx context.Context, l limit) (taken, error) {
	hold, err := r.acquireWithin(ctx, l)
	return taken{hold: hold}, err
}

func (r *reentrant) acquireWithin(ctx context.Context, l limit) (*Hold, error) {
	if err := usable("acquire", r.where(), ctx); err != nil {
		return nil, err
	}
	hold, err := r.acquireAs(ctx, ownerOf(ctx, r), l)
	if err != nil {
		return nil, wrap("acquire", r.path, err)
	}
	return hold, nil
}

// acquireAs acquires for an owner. It tells of its steps with the ctx of the call.
func (r *reentrant) acquireAs(
	ctx context.Context, who owner, l limit,
) (hold *Hold, err error) {
	err = l.keep(ctx, func(within context.Context, try bool) (err error) {
		hold, err = r.enterOrReenter(within, ctx, who, try)
		return err
	})
	return hold, err
}

func (r *reentrant) enterOrReenter(
	ctx, call context.Context, who owner, try bool,
) (*Hold, error) {
	for {
		hold, c, mine, err := r.claim(who)
		switch {
		case hold != nil || err != nil:
			return hold, err
		case mine:
			return r.enter(ctx, call, c, try)
		case try:
			return nil, fmt.Errorf("%w: %s", seqnode.ErrBusy, elsewhere)
		}
		if r.isObserving(c) {
			return nil, errObserving
		}
		if err := r.awaitSettled(ctx, c.settled); err != nil {
			return nil, err
		}
	}
}

var errObserving = errors.New("the owner is queueing for it, and its observer, which " +
	"acquires it as the same owner, would wait for itself")

// isObserving tells whether the caller is the observer of the claim's own Acquire.
func (r *reentrant) isObserving(c *claim) bool {
	r.mu.Lock()
	at := c.observing
	r.mu.Unlock()
	return at != 0 && at == goroutineID()
}

// awaitSettled waits for another goroutine of the owner's, which is acquiring, until it
// closes settled, or sends.
func (r *reentrant) awaitSettled(ctx context.Context, settled <-chan struct{}) error {
	asked := time.Now()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		s := session.Use(r.conn, r.config)
		defer s.Release()
		return seqnode.Standing(s, session.Cancelled(ctx), elsewhere, asked)
	}
}

// elsewhere is where an owner stands that acquires the lock on two goroutines at once.
const elsewhere = "its owner is acquiring it on another goroutine"

// claim re-enters the owner's hold, with an error if that was lost. Where it has none it
// makes a new claim, which is the caller's to settle (mine), or returns the one that
// another goroutine of the owner's is to settle.
func (r *reentrant) claim(who owner) (hold *Hold, c *claim, mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.claims[who]
	switch {
	case c == nil:
		c = &claim{
			lock: r, who: who, settled: make(chan struct{}), steps: r.steps.begin(),
		}
		r.claims[who] = c
		return nil, c, true, nil
	case c.hold == nil:
		return nil, c, false, nil
	case c.hold.Err() != nil:
		return nil, nil, false, c.hold.Err()
	}
	c.count++
	return c.hold, nil, false, nil
}

// enter goes through the queue for a new claim.
func (r *reentrant) enter(
	ctx, call context.Context, c *claim, try bool,
) (*Hold, error) {
	began, last := time.Now(), ""
	hold, err := r.admit(ctx, c, seqnode.Request{
		TryOnce:   try,
		WatchSelf: r.revocable,
		OnData:    func(data []byte) { r.changed(c, data) },
		OnQueued: func(node string, ahead int) {
			last = node
			r.tellQueued(call, c, Event{Kind: EventQueued, Node: node, Ahead: ahead})
		},
	})
	elapsed := time.Since(began)
	switch {
	case err == nil:
		tellOr(func() { r.abandon(c) }, func() { hold.tellAcquired(call, elapsed) })
	case isBusy(err):
		c.steps.tell(call, Event{Kind: EventTimedOut, Node: last, Elapsed: elapsed})
	default:
		c.steps.tell(call, Event{
			Kind: EventFailed, Node: last, Elapsed: elapsed, Err: err,
		})
	}
	return hold, err
}

// tellQueued tells a place in the queue. The owner who waits in it can call Acquire
// there, and would wait for itself.
func (r *reentrant) tellQueued(call context.Context, c *claim, e Event) {
	if r.steps.observer == nil {
		return
	}
	observing := func(goroutine uint64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		c.observing = goroutine
	}
	observing(goroutineID())
	defer observing(0)
	c.steps.tell(call, e)
}

// admit goes through the queue, or past it, and settles the claim in any case, also where
// the observer panics or ends the goroutine.
func (r *reentrant) admit(
	ctx context.Context, c *claim, req seqnode.Request,
) (hold *Hold, err error) {
	defer func() { r.settle(c, hold) }()
	if r.refuse != nil {
		if err := r.refuse(c.who); err != nil {
			return nil, err
		}
	}
	s := session.Use(r.conn, r.config)
	defer s.Release()
	var writer, node *seqnode.Node
	if r.beside != nil {
		writer = r.beside(c.who)
	}
	switch {
	case writer != nil:
		node, err = r.queue.EnterBeside(ctx, s, writer, req)
	case r.keeps:
		share, err := r.queue.EnterKept(ctx, s, req)
		if err != nil {
			return nil, err
		}
		return newHold(r.conn, share.Path, share, c.steps), nil
	default:
		node, err = r.queue.Enter(ctx, s, req)
	}
	if err != nil {
		return nil, err
	}
	return newHold(r.conn, node.Path, node, c.steps), nil
}

// settle records how the first Acquire of a claim has ended: with a hold, or with none.
func (r *reentrant) settle(c *claim, hold *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hold == nil {
		delete(r.claims, c.who)
	} else {
		hold.releaser = c
		c.hold, c.count = hold, 1
		r.watchLocked(c)
	}
	close(c.settled)
}

// abandon takes off a claim the acquire of a caller who will not return.
func (r *reentrant) abandon(c *claim) {
	if hold, last, _ := c.unwind(); last {
		hold.node.Withdraw()
	}
}

// Release implements InterProcessLock. It gives ErrNotOwner to an owner that does not
// hold the lock.
func (r *reentrant) Release(ctx context.Context) error {
	if err := usable("release", r.where(), ctx); err != nil {
		return err
	}
	if err := r.releaseAs(ctx, ownerOf(ctx, r)); err != nil {
		return wrap("release", r.path, err)
	}
	return nil
}

// releaseAs releases for an owner.
func (r *reentrant) releaseAs(ctx context.Context, who owner) error {
	hold, last, err := r.unwind(who)
	if err == nil && last {
		err = releaseOne(ctx, hold.beginLeaving)
	}
	return err
}

// beginRelease implements nativeLock.
func (r *reentrant) beginRelease(
	ctx context.Context,
) (finish func(context.Context) error) {
	if err := usable("release", r.where(), ctx); err != nil {
		return failed(err)
	}
	return r.beginUnwound(ctx, func() (*Hold, bool, error) {
		return r.unwind(ownerOf(ctx, r))
	})
}

// beginUnwound begins to release what unwind takes off.
func (r *reentrant) beginUnwound(
	ctx context.Context, unwind func() (hold *Hold, last bool, err error),
) (finish func(context.Context) error) {
	hold, last, err := unwind()
	if err == nil && last {
		return finishing(r.path, hold.beginLeaving(ctx))
	}
	return finishing(r.path, func(context.Context) error { return err })
}

// unwind takes one acquire off the owner's claim. The last one takes the claim off the
// lock; its znode is the caller's to delete.
func (r *reentrant) unwind(who owner) (hold *Hold, last bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.claims[who]
	if c == nil || c.hold == nil {
		return nil, false, r.notOwnerLocked()
	}
	return c.unwindLocked()
}

// unwind is reentrant.unwind for this claim, and for no later one of the same owner.
func (c *claim) unwind() (hold *Hold, last bool, err error) {
	c.lock.mu.Lock()
	defer c.lock.mu.Unlock()
	if c.lock.claims[c.who] != c {
		return nil, false, errReleased
	}
	return c.unwindLocked()
}

func (c *claim) unwindLocked() (hold *Hold, last bool, err error) {
	if c.count--; c.count == 0 {
		delete(c.lock.claims, c.who)
	}
	return c.hold, c.count == 0, c.hold.Err()
}

// beginRelease implements releaser.
func (c *claim) beginRelease(ctx context.Context) (finish func(context.Context) error) {
	return c.lock.beginUnwound(ctx, c.unwind)
}

// left implements releaser.
func (c *claim) left() bool {
	c.lock.mu.Lock()
	defer c.lock.mu.Unlock()
	return c.lock.claims[c.who] == c
}

// shares implements releaser.
func (c *claim) shares() []share { return []share{{c.lock, c.who}} }

// notOwnerLocked tells an owner that does not hold the lock whether another one does.
func (r *reentrant) notOwnerLocked() error {
	for _, c := range r.claims {
		if c.hold != nil {
			return fmt.Errorf("%w: another owner acquired it through this value, "+
				"see WithOwner", ErrNotOwner)
		}
	}
	return errNotHeld
}

// holdOf implements ownedLock.
func (r *reentrant) holdOf(who owner) *Hold {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.claims[who]; c != nil {
		return c.hold
	}
	return nil
}

// ownerKey implements ownedLock.
func (r *reentrant) ownerKey() any {
	if r != nil && r.pair != nil {
		return r.pair
	}
	return r
}

// held returns the hold of an owner that holds the lock, else nil.
func (r *reentrant) held(who owner) *Hold {
	if h := r.holdOf(who); h != nil && h.Err() == nil {
		return h
	}
	return nil
}

// holds is called with reentrant.mu held.
func (c *claim) holds() bool { return c.hold != nil && c.hold.Err() == nil }

// IsAcquiredInThisProcess reports whether any owner holds the lock through this value. A
// lock that is lost is not held.
func (r *reentrant) IsAcquiredInThisProcess() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.claims {
		if c.holds() {
			return true
		}
	}
	return false
}

// IsOwned reports whether the owner of ctx holds the lock (Curator's
// isOwnedByCurrentThread). It asks nothing of ZooKeeper. One that lost it does not hold
// it.
func (r *reentrant) IsOwned(ctx context.Context) bool {
	return r.held(ownerOf(ctx, r)) != nil
}

// Hold returns the hold of ctx's owner, nil where it has none. One that was lost stays
// its owner's, until it has released as often as it had acquired: so Hold(ctx) is no nil
// in the very moment of the loss.
func (r *reentrant) Hold(ctx context.Context) *Hold { return r.holdOf(ownerOf(ctx, r)) }

// LockPath returns the znode of ctx's owner (Curator's getLockPath), "" where it does not
// hold the lock.
func (r *reentrant) LockPath(ctx context.Context) string {
	if h := r.held(ownerOf(ctx, r)); h != nil {
		return h.path
	}
	return ""
}

// MakeRevocable sets the function that is called, in a goroutine of its own, each time
// another process asks for the lock back (AttemptRevoke, or Curator's Revoker), of a
// holder and of a waiter through this value. Requests that follow one another faster than
// they can be read are one. It may be set at any time, and stays in force for all later
// holds; nil ends that. A znode of a revocable lock takes one read and one watch at once,
// instead of only when it lasts.
func (r *reentrant) MakeRevocable(listener func()) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener = listener
	if listener == nil {
		return
	}
	select {
	case <-r.revocable:
	default:
		close(r.revocable)
	}
	for _, c := range r.claims {
		r.watchLocked(c)
		if c.revokePending {
			c.revokePending = false
			go listener()
		}
	}
}

// watchLocked watches the znode of a claim that is held, if the lock is revocable.
func (r *reentrant) watchLocked(c *claim) {
	if c.hold != nil && r.listener != nil {
		c.hold.node.WatchSelf()
	}
}

// changed looks at new data of a claim's znode.
func (r *reentrant) changed(c *claim, data []byte) {
	if string(data) != revokeMessage {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.revokePending = r.listener == nil; !c.revokePending {
		go r.listener()
	}
}
