package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	keep      *lockcache.Policy // how its queue entry is cached; nil: it is not
	revocable chan struct{}     // closed by the first MakeRevocable

	book     *book
	writer   *reentrant           // of a read lock: the write lock; else nil
	reader   *reentrant           // of a write lock: the read lock; else nil
	owners   map[owner]*ownership // guarded by book.mu
	listener func()               // guarded by book.mu
}

// An ownership is what an owner has of the lock: an Acquire under way, then a grant, and
// the records that share it.
type ownership struct {
	lock    *reentrant
	of      stay
	attempt attempt // the first Acquire; used by that alone

	// Guarded by book.mu.
	grant         *grant        // nil while the first Acquire is under way
	records       []*Hold       // the youngest last
	settled       chan struct{} // closed when the first Acquire ends; nil: nobody waits
	listening     int32         // calls of the listener that run
	revokePending bool          // the lock was asked back, and no listener called for it
	observing     uint64        // the goroutine that reports the position; 0: none

	made struct { // what grant and the first record point to, in the same allocation
		grant grant
		hold  Hold
		holds [1]*Hold
	}
}

// newReentrant returns the lock at the directory of queue.
func newReentrant(
	conn Conn, s settings, recipe string, queue *seqnode.Queue,
) *reentrant {
	r := &reentrant{
		conn: conn, path: queue.Dir, config: s.sessionConfig(conn),
		steps: &steps{
			recipe: recipe, path: queue.Dir, conn: conn, observer: s.lockObserver(),
		},
		queue: queue, keep: s.keep,
		revocable: make(chan struct{}), owners: map[owner]*ownership{},
	}
	r.book = &book{lock: r}
	return r
}

// where is the lock's path, "" of a nil or zero value.
func (r *reentrant) where() string {
	if r == nil {
		return ""
	}
	return r.path
}

// sinceLocked implements book's lock, for both sides of a read/write lock: the book is
// the reader's.
func (r *reentrant) sinceLocked(who owner) int64 {
	for side := r; side != nil; side = side.writer {
		if o := side.owners[who]; o != nil {
			return o.of.since
		}
	}
	return 0
}

// joinLocked implements book's lock, for both sides of a read/write lock.
func (r *reentrant) joinLocked(s stay) {
	for side := r; side != nil; side = side.writer {
		if o := side.owners[s.who]; o != nil {
			o.of.since = s.since
		}
	}
}

// acquire implements InterProcessLock.
func (r *reentrant) acquire(a acquisition) (*Hold, error) {
	if err := usable("acquire", r.where(), a.ctx); err != nil {
		return nil, err
	}
	hold, err := r.acquireBare(a)
	if err != nil {
		return nil, wrap("acquire", r.path, err)
	}
	return hold, nil
}

// acquireBare is acquire without operation and path in its error. From here on ctx ends
// with the bound; the ctx of the call (a.ctx) is only what the observer receives.
func (r *reentrant) acquireBare(a acquisition) (*Hold, error) {
	ctx, cancel, err := a.within(a.ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	for {
		hold, o, mine, err := r.claim(a)
		switch {
		case hold != nil || err != nil: // it was re-entered, or is lost
			return hold, err
		case mine: // this owner has nothing of the lock yet
			return r.acquireFirst(ctx, a, o)
		case a.once: // another goroutine of the owner is acquiring it
			return nil, &wait.Busy{Place: elsewhere, Cause: wait.ErrBusy}
		case r.isObserving(o):
			return nil, errObserving
		}
		if err := r.awaitSettled(ctx, o.settled); err != nil {
			return nil, err
		}
	}
}

var errObserving = errors.New("the owner is queueing for it, and its observer, which " +
	"acquires it as the same owner, would wait for itself")

// isObserving tells whether the caller is the observer of the owner's own Acquire.
func (r *reentrant) isObserving(o *ownership) bool {
	r.book.mu.Lock()
	at := o.observing
	r.book.mu.Unlock()
	return at != 0 && at == goroutineID()
}

// awaitSettled waits for another goroutine of the owner's, which is acquiring, until it
// closes settled, or sends.
func (r *reentrant) awaitSettled(ctx context.Context, settled <-chan struct{}) error {
	select {
	case <-settled:
		return nil
	default:
	}
	asked, s := time.Now(), zkconn.Use(r.conn, r.config)
	defer s.Release()
	defer wait.AskBeforeEnd(ctx, s)()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return wait.Explain(s, outcome.Cancelled(ctx), elsewhere, asked)
	}
}

// elsewhere is where an owner stands that acquires the lock on two goroutines at once.
var elsewhere = wait.Place{Text: "its owner is acquiring it on another goroutine"}

// claim re-enters the owner's grant, with an error if that was lost. Where there is none
// it makes a new ownership, which the caller must settle (mine), or returns the one that
// another goroutine of the owner's is to settle.
func (r *reentrant) claim(
	a acquisition,
) (hold *Hold, o *ownership, mine bool, err error) {
	s := a.lock(r.book)
	defer r.book.mu.Unlock()
	s = r.book.beginLocked(s)
	o = r.owners[s.who]
	switch {
	case o == nil:
		o = &ownership{lock: r, of: s}
		r.owners[s.who] = o
		return nil, o, true, nil
	case o.grant == nil:
		if o.settled == nil {
			o.settled = make(chan struct{})
		}
		return nil, o, false, nil
	case o.grant.err() != nil:
		return nil, nil, false, o.grant.err()
	}
	return o.recordLocked(new(Hold)), nil, false, nil
}

// recordLocked makes h, which is new, the record of one more acquisition.
func (o *ownership) recordLocked(h *Hold) *Hold {
	h.grant, h.keeper = o.grant, o
	o.records = append(o.records, h)
	return h
}

// acquireFirst acquires for a new ownership.
func (r *reentrant) acquireFirst(
	ctx context.Context, a acquisition, o *ownership,
) (*Hold, error) {
	call := a.ctx
	if a.fresh && r.steps.observer != nil {
		// If the caller's ctx names nobody, the owner is new. The observer's ctx names
		// it: if the observer acquires the lock, it does so as that owner.
		call = withShares(call, []share{{r.book.stay(&o.of), []*book{r.book}}})
	}
	o.attempt = newAttempt(call, r.steps)
	defer func() { o.attempt.call = nil }() // which the ownership would keep
	hold, err := r.enter(ctx, o, seqnode.Request{
		TryOnce: a.once, WatchSelf: r.revocable, Listener: o,
	})
	if err != nil {
		o.attempt.failed(err)
		return nil, err
	}
	o.attempt.acquired(func() { o.abandon(hold) }, hold.grant)
	return hold, nil
}

// Queued implements seqnode.Listener. The owner who waits in the observer can call
// Acquire there, and would wait for itself.
func (o *ownership) Queued(node string, ahead int) {
	if o.lock.steps.observer == nil {
		return
	}
	o.observe(goroutineID())
	defer o.observe(0)
	o.attempt.Queued(node, ahead)
}

func (o *ownership) observe(goroutine uint64) {
	o.lock.book.mu.Lock()
	defer o.lock.book.mu.Unlock()
	o.observing = goroutine
}

// DataChanged implements seqnode.Listener.
func (o *ownership) DataChanged(data []byte) { o.lock.changed(o, data) }

// enter gets the owner what a hold rests on: by a new entry in the queue as a rule. It
// settles the ownership in any case, also if the observer panics or ends the goroutine.
func (r *reentrant) enter(
	ctx context.Context, o *ownership, req seqnode.Request,
) (hold *Hold, err error) {
	// What follows sets on and err. The hold that enter returns is made of on, by settle.
	var on backing
	defer func() { hold = r.settle(o, on) }()
	s := zkconn.Use(r.conn, r.config)
	defer s.Release()
	if r.reader != nil && r.reader.held(o.of.who) != nil {
		return nil, ErrUpgrade // it would wait for its own read lock
	}
	if writer := r.writerOf(o.of.who); writer != nil {
		on, err = backedBy(r.queue.EnterUnder(ctx, s, writer, req))
		return nil, err
	}
	if r.keep == nil {
		on, err = backedBy(r.queue.Enter(ctx, s, req))
		return nil, err
	}
	share, err := lockcache.Enter(ctx, s, r.queue, *r.keep, req)
	if err == nil {
		on = sharedZnode{share}
	}
	return nil, err
}

// settle records how the first Acquire of an ownership has ended: with a grant that rests
// on something, or with none.
func (r *reentrant) settle(o *ownership, on backing) (hold *Hold) {
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	if on == nil {
		delete(r.owners, o.of.who)
	} else {
		o.grant = o.made.grant.restOn(on, o.attempt.steps)
		o.records = o.made.holds[:0]
		hold = o.recordLocked(&o.made.hold)
		r.watchLocked(o)
	}
	if o.settled != nil {
		close(o.settled)
	}
	return hold
}

// abandon ends the record of a caller who will not return, without a word to the
// observer.
func (o *ownership) abandon(h *Hold) {
	if last, ok := o.takeOff(h); ok {
		h.end()
		if last {
			h.node.Withdraw()
		}
	}
}

// What follows is the exported types' methods of these names.

func (r *reentrant) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	_, err := r.acquire(newAcquisition(ctx, newBound(timeout)))
	return heldOrBusy(err)
}

func (r *reentrant) Release(ctx context.Context) error {
	if err := usable("release", r.where(), ctx); err != nil {
		return err
	}
	c := callerOf(ctx)
	return r.releaseYoungest(&c).finish(ctx)
}

// releaseYoungest ends the record of what the caller has acquired last.
func (r *reentrant) releaseYoungest(c *caller) leaving {
	h, last, err := r.takeYoungest(c)
	if err != nil {
		return leaving{path: r.path, err: err}
	}
	return h.leave(r.path, last)
}

func (r *reentrant) takeYoungest(c *caller) (h *Hold, last bool, err error) {
	s := c.lock(r.book)
	defer r.book.mu.Unlock()
	o := r.owners[s.who]
	if o == nil || o.grant == nil {
		return nil, false, r.notOwnerLocked()
	}
	at := len(o.records) - 1
	h = o.records[at]
	return h, r.takeLocked(o, at), nil
}

// takeOff takes a record off, if it was not before, and tells whether it was the last of
// its owner.
func (o *ownership) takeOff(h *Hold) (last, ok bool) {
	o.lock.book.mu.Lock()
	defer o.lock.book.mu.Unlock()
	at := slices.Index(o.records, h)
	return at >= 0 && o.lock.takeLocked(o, at), at >= 0
}

// takeLocked takes a record off. The last one takes the ownership off the lock; its znode
// is the caller's to delete.
func (r *reentrant) takeLocked(o *ownership, at int) (last bool) {
	o.records = slices.Delete(o.records, at, at+1)
	if last = len(o.records) == 0; last {
		delete(r.owners, o.of.who)
	}
	return last
}

// end implements keeper.
func (o *ownership) end(h *Hold) leaving {
	last, ok := o.takeOff(h)
	if !ok {
		return leaving{path: o.lock.path, err: errReleased}
	}
	return h.leave(o.lock.path, last)
}

// stay implements keeper.
func (o *ownership) stay() (stay, *book) { return o.lock.book.stay(&o.of), o.lock.book }

// notOwnerLocked tells an owner that does not hold the lock whether another one does.
func (r *reentrant) notOwnerLocked() error {
	for _, o := range r.owners {
		if o.grant != nil {
			return fmt.Errorf("%w: another owner acquired it through this value, "+
				"see WithOwner", ErrNotOwner)
		}
	}
	return errNotHeld
}

// held returns the grant of an owner that holds the lock, else nil.
func (r *reentrant) held(who owner) *grant {
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	if o := r.owners[who]; o != nil && o.holdsLocked() {
		return o.grant
	}
	return nil
}

// holdsLocked tells whether the owner holds the lock and has not lost it.
func (o *ownership) holdsLocked() bool { return o.grant != nil && o.grant.err() == nil }

func (r *reentrant) IsAcquiredInThisProcess() bool {
	if r == nil {
		return false
	}
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	for _, o := range r.owners {
		if o.holdsLocked() {
			return true
		}
	}
	return false
}

func (r *reentrant) IsOwned(ctx context.Context) bool {
	h := r.Hold(ctx)
	return h != nil && h.err() == nil
}

func (r *reentrant) Hold(ctx context.Context) *Hold {
	if r.where() == "" {
		return nil
	}
	c := callerOf(ctx)
	return r.holdOf(&c)
}

func (r *reentrant) holdOf(c *caller) *Hold {
	s := c.lock(r.book)
	defer r.book.mu.Unlock()
	if o := r.owners[s.who]; o != nil && o.grant != nil {
		return o.records[len(o.records)-1]
	}
	return nil
}

func (r *reentrant) LockPath(ctx context.Context) string {
	if h := r.Hold(ctx); h != nil && h.err() == nil {
		return h.path()
	}
	return ""
}
