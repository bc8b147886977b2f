package recipes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/lockcache"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// reentrant is what the mutex, the read lock and the write lock share: who holds it, and
// how often.
type reentrant struct {
	conn      Conn
	path      string
	config    zkconn.Config
	steps     *steps
	queue     *seqnode.Queue
	enter     entrance
	revocable chan struct{} // closed by the first MakeRevocable
	pair      any           // of a read/write lock: both sides' key of owners

	mu       sync.Mutex // guards what follows; not held across a call to ZooKeeper
	claims   map[owner]*claim
	listener func()
}

// A claim is an owner's stake in the lock: an Acquire under way, then a hold, of which it
// is the releaser.
type claim struct {
	lock    *reentrant
	who     owner
	attempt attempt // the first Acquire; used by that alone

	// Guarded by reentrant.mu.
	hold          *Hold         // nil while the first Acquire is under way
	settled       chan struct{} // closed when that has ended; nil: nobody waits for it
	count         int
	listening     int    // calls of the listener that run
	revokePending bool   // the lock was asked back, and no listener was called for that
	observing     uint64 // the goroutine that tells of the place in the queue; 0: none

	made Hold // what hold points to
}

// An entrance is how an owner comes to hold a lock: through its queue, as a rule.
type entrance func(
	ctx context.Context, conn *zkconn.Conn, who owner, r seqnode.Request,
) (backing, error)

// through is the entrance through a queue: for each owner, or for all of them together
// by the policy of WithCaching, nil without that.
func through(queue *seqnode.Queue, keep *lockcache.Policy) entrance {
	if keep != nil {
		return func(
			ctx context.Context, conn *zkconn.Conn, _ owner, r seqnode.Request,
		) (backing, error) {
			share, err := lockcache.Enter(ctx, conn, queue, *keep, r)
			if err != nil {
				return nil, err
			}
			return sharedZnode{share}, nil
		}
	}
	return func(
		ctx context.Context, conn *zkconn.Conn, _ owner, r seqnode.Request,
	) (backing, error) {
		return backedBy(queue.Enter(ctx, conn, r))
	}
}

// newReentrant returns the lock at the directory of queue.
func newReentrant(
	conn Conn, s settings, recipe string, queue *seqnode.Queue, enter entrance,
) *reentrant {
	return &reentrant{
		conn: conn, path: queue.Dir, config: s.sessionConfig(conn),
		steps: &steps{recipe: recipe, path: queue.Dir, observer: s.observer},
		queue: queue, enter: enter,
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

// Acquire implements InterProcessLock. A holder re-enters without requests; after a loss
// it gets ErrLockLost until it has released as often as acquired.
func (r *reentrant) Acquire(ctx context.Context) error {
	_, err := r.acquireWithin(ctx, bound{})
	return err
}

// AcquireTimeout implements InterProcessLock.
func (r *reentrant) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	_, err := r.acquireWithin(ctx, newBound(timeout))
	return heldOrBusy(err)
}

// take implements nativeLock.
func (r *reentrant) take(ctx context.Context, l bound) (taken, error) {
	hold, err := r.acquireWithin(ctx, l)
	return taken{hold: hold}, err
}

// itself is r, also of a lock that embeds it.
func (r *reentrant) itself() *reentrant { return r }

func (r *reentrant) acquireWithin(ctx context.Context, l bound) (*Hold, error) {
	if err := usable("acquire", r.where(), ctx); err != nil {
		return nil, err
	}
	return r.acquireOwned(ctx, ownerOf(ctx, r), l)
}

// acquireOwned is acquireAs with what is lacking in its error.
func (r *reentrant) acquireOwned(
	ctx context.Context, who owner, l bound,
) (*Hold, error) {
	hold, err := r.acquireAs(ctx, who, l)
	if err != nil {
		return nil, wrap("acquire", r.path, err)
	}
	return hold, nil
}

// acquireAs acquires for an owner. It tells of its steps with the ctx of the call.
func (r *reentrant) acquireAs(
	ctx context.Context, who owner, l bound,
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
			return r.acquireAnew(ctx, call, c, try)
		case try:
			return nil, &wait.Busy{Place: elsewhere, Cause: wait.ErrBusy}
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
		s := zkconn.Use(r.conn, r.config)
		defer s.Release()
		return wait.Explain(s, outcome.Cancelled(ctx), elsewhere, asked)
	}
}

// elsewhere is where an owner stands that acquires the lock on two goroutines at once.
var elsewhere = wait.Place{Text: "its owner is acquiring it on another goroutine"}

// claim re-enters the owner's hold, with an error if that was lost. Where it has none it
// makes a new claim, which is the caller's to settle (mine), or returns the one that
// another goroutine of the owner's is to settle.
func (r *reentrant) claim(who owner) (hold *Hold, c *claim, mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.claims[who]
	switch {
	case c == nil:
		c = &claim{lock: r, who: who}
		r.claims[who] = c
		return nil, c, true, nil
	case c.hold == nil:
		if c.settled == nil {
			c.settled = make(chan struct{})
		}
		return nil, c, false, nil
	case c.hold.Err() != nil:
		return nil, nil, false, c.hold.Err()
	}
	c.count++
	return c.hold, nil, false, nil
}

// acquireAnew acquires for a new claim.
func (r *reentrant) acquireAnew(
	ctx, call context.Context, c *claim, try bool,
) (*Hold, error) {
	c.attempt = newAttempt(call, r.steps)
	defer func() { c.attempt.call = nil }() // which the claim would keep
	hold, err := r.admit(ctx, c, seqnode.Request{
		TryOnce: try, WatchSelf: r.revocable, Listener: c,
	})
	if err != nil {
		c.attempt.failed(err)
		return nil, err
	}
	c.attempt.acquired(c.abandon, hold)
	return hold, nil
}

// Queued implements seqnode.Listener. The owner who waits in the observer can call
// Acquire there, and would wait for itself.
func (c *claim) Queued(node string, ahead int) {
	if c.lock.steps.observer == nil {
		return
	}
	c.observe(goroutineID())
	defer c.observe(0)
	c.attempt.Queued(node, ahead)
}

func (c *claim) observe(goroutine uint64) {
	c.lock.mu.Lock()
	defer c.lock.mu.Unlock()
	c.observing = goroutine
}

// DataChanged implements seqnode.Listener.
func (c *claim) DataChanged(data []byte) { c.lock.changed(c, data) }

// admit lets the owner of a claim enter, and settles the claim in any case, also where
// the observer panics or ends the goroutine.
func (r *reentrant) admit(
	ctx context.Context, c *claim, req seqnode.Request,
) (hold *Hold, err error) {
	defer func() { r.settle(c, hold) }()
	s := zkconn.Use(r.conn, r.config)
	defer s.Release()
	on, err := r.enter(ctx, s, c.who, req)
	if err != nil {
		return nil, err
	}
	return c.made.restOn(on, r.conn, c.attempt.steps), nil
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
	if c.settled != nil {
		close(c.settled)
	}
}

// abandon takes off the acquire of a caller who will not return.
func (c *claim) abandon() {
	if hold, last, _ := c.unwind(); last {
		hold.node.Withdraw()
	}
}

// Release implements InterProcessLock. Without a hold it returns ErrNotOwner.
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
	return leaveLast(ctx, hold, last, err)
}

// leaveLast ends a hold if what was taken off was the last acquire. The znode of a lost
// one may be there still.
func leaveLast(ctx context.Context, hold *Hold, last bool, err error) error {
	switch {
	case err == nil && last:
		return hold.leave(ctx)
	case last:
		hold.node.Withdraw()
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
	switch {
	case err == nil && last:
		return finishing(r.path, hold.beginLeaving(ctx))
	case last:
		hold.node.Withdraw() // as leaveLast does
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

// release implements releaser.
func (c *claim) release(ctx context.Context) error {
	hold, last, err := c.unwind()
	if err = leaveLast(ctx, hold, last, err); err != nil {
		return wrap("release", c.lock.path, err)
	}
	return nil
}

// left implements releaser.
func (c *claim) left() bool {
	c.lock.mu.Lock()
	defer c.lock.mu.Unlock()
	return c.lock.claims[c.who] == c
}

// shares implements releaser.
func (c *claim) shares() []perLock { return []perLock{{c.lock, c.who}} }

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

// IsAcquiredInThisProcess implements InterProcessLock; false after a loss.
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

// IsOwned reports whether ctx's owner holds the lock and has not lost it (Curator's
// isOwnedByCurrentThread). It sends no requests.
func (r *reentrant) IsOwned(ctx context.Context) bool {
	return r.held(ownerOf(ctx, r)) != nil
}

// Hold returns the hold of ctx's owner, or nil if there is none. A lost hold remains its
// owner's, and is not nil, until released as often as acquired.
func (r *reentrant) Hold(ctx context.Context) *Hold { return r.holdOf(ownerOf(ctx, r)) }

// LockPath returns the znode of ctx's owner (Curator's getLockPath), or "" if that owner
// does not hold the lock.
func (r *reentrant) LockPath(ctx context.Context) string {
	if h := r.held(ownerOf(ctx, r)); h != nil {
		return h.path
	}
	return ""
}
