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

// reentrant is what the mutex, the read lock and the write lock share: who holds it, and how often.
type reentrant struct {
	conn     Conn
	path     string
	config   session.Config
	observer func(Event)
	queue    *seqnode.Queue
	minded   chan struct{} // closed by the first MakeRevocable

	mu       sync.Mutex // guards what follows; not held across a call to ZooKeeper
	claims   map[owner]*claim
	listener func()
}

// A claim is an owner's stake in the lock: an Acquire under way, then a hold.
type claim struct {
	settled chan struct{} // closed when the first Acquire has ended

	// Guarded by reentrant.mu.
	node    *seqnode.Node // nil while the first Acquire is under way
	hold    *Hold         // likewise
	since   time.Time
	count   int
	unheard bool // the lock was asked back while there was no listener
}

func newReentrant(conn Conn, s settings, path, kind string, kinds []string, rule seqnode.Rule) *reentrant {
	return &reentrant{
		conn: conn, path: path, config: s.sessionConfig(conn), observer: s.observer,
		queue:  &seqnode.Queue{Dir: path, Kind: kind, Kinds: kinds, Rule: rule, Data: s.data, ACL: s.acl, Log: s.logger},
		minded: make(chan struct{}), claims: map[owner]*claim{},
	}
}

// Acquire implements InterProcessLock. An owner that holds the lock re-enters without asking ZooKeeper; if its hold was lost
// it gets ErrLockLost until it has released as often as it had acquired.
func (r *reentrant) Acquire(ctx context.Context) error { return r.acquire(ctx, false) }

// AcquireTimeout implements InterProcessLock.
func (r *reentrant) AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error) {
	return acquireWithin(ctx, timeout, r.outage(), r.acquire)
}

// outage is how long a single try may take when ZooKeeper does not answer.
func (r *reentrant) outage() time.Duration {
	if t := r.config.Timeout(); t > 0 {
		return t
	}
	return 10 * time.Second
}

func (r *reentrant) acquire(ctx context.Context, try bool) error {
	if ctx.Err() != nil {
		return wrap("acquire", r.path, context.Cause(ctx))
	}
	who := ownerOf(ctx)
	for {
		c, mine, err := r.claim(who)
		if mine {
			err = r.enter(ctx, who, c, try)
		}
		if mine || err != nil {
			if err != nil {
				err = wrap("acquire", r.path, err)
			}
			return err
		}
		if c == nil {
			return nil
		}
		if try {
			return errTimeUp
		}
		select { // the same owner acquires on another goroutine
		case <-c.settled:
		case <-ctx.Done():
			return wrap("acquire", r.path, context.Cause(ctx))
		}
	}
}

// claim re-enters the owner's hold: no claim and no error. Where it has none it makes a new claim, which is the caller's to settle,
// or returns the one that another goroutine of the owner's is settling.
func (r *reentrant) claim(who owner) (c *claim, mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.claims[who]
	switch {
	case c == nil:
		c = &claim{settled: make(chan struct{})}
		r.claims[who] = c
		return c, true, nil
	case c.hold == nil:
		return c, false, nil
	case c.hold.Err() != nil:
		return nil, false, c.hold.Err()
	}
	c.count++
	return nil, false, nil
}

// enter goes through the queue for a new claim.
func (r *reentrant) enter(ctx context.Context, who owner, c *claim, try bool) error {
	began, last := time.Now(), ""
	s := session.Use(r.conn, r.config)
	defer s.Done()
	node, err := r.queue.Enter(ctx, s, seqnode.Entry{
		Try:     try,
		Minded:  r.minded,
		Changed: func(data []byte) { r.changed(c, data) },
		Queued: func(node string, ahead int) {
			last = node
			r.observer(Event{Kind: EventQueued, Path: r.path, Node: node, Ahead: ahead})
		},
	})
	if errors.Is(err, seqnode.ErrBusy) {
		err = errTimeUp
	}
	r.settle(who, c, node)
	elapsed := time.Since(began)
	switch {
	case err == nil:
		r.observer(Event{Kind: EventAcquired, Path: r.path, Node: last, Elapsed: elapsed, Token: c.hold.token})
		context.AfterFunc(c.hold.lost, func() { r.wasLost(c) })
	case errors.Is(err, errTimeUp):
		r.observer(Event{Kind: EventTimedOut, Path: r.path, Node: last, Elapsed: elapsed})
	default:
		r.observer(Event{Kind: EventFailed, Path: r.path, Node: last, Elapsed: elapsed, Err: err})
	}
	return err
}

// settle records how the first Acquire of a claim has ended: with a node, or without.
func (r *reentrant) settle(who owner, c *claim, node *seqnode.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if node == nil {
		delete(r.claims, who)
	} else {
		c.node, c.count, c.since = node, 1, time.Now()
		c.hold = &Hold{path: node.Path, serverPath: serverPath(r.conn, node.Path), token: node.Token(), lost: node.Lost()}
		r.mindLocked(c)
	}
	close(c.settled)
}

func (r *reentrant) wasLost(c *claim) {
	r.observer(Event{Kind: EventLost, Path: r.path, Node: c.hold.path, Elapsed: time.Since(c.since), Err: c.hold.Err()})
}

// Release implements InterProcessLock. It gives ErrNotOwner to an owner that does not hold the lock.
func (r *reentrant) Release(ctx context.Context) error {
	c, last, err := r.unwind(ownerOf(ctx))
	if err != nil {
		return wrap("release", r.path, err)
	}
	if !last {
		return nil
	}
	if ctx.Err() != nil { // most likely it will be answered all the same
		cause := context.Cause(ctx)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(context.WithoutCancel(ctx), time.Second, cause)
		defer cancel()
	}
	switch err := c.node.Leave(ctx); {
	case err == nil:
		r.observer(Event{Kind: EventReleased, Path: r.path, Node: c.hold.path, Elapsed: time.Since(c.since)})
		return nil
	case c.hold.Err() != nil:
		return wrap("release", r.path, c.hold.Err())
	case ctx.Err() != nil:
		r.observer(Event{Kind: EventReleased, Path: r.path, Node: c.hold.path, Elapsed: time.Since(c.since)})
		return wrap("release", r.path, fmt.Errorf("not confirmed yet, %s is being deleted in the background: %w", c.hold.path, err))
	default:
		return wrap("release", r.path, fmt.Errorf("delete %s: %w", c.hold.path, err))
	}
}

// unwind takes one acquire off the owner's claim. The last one takes the claim off the lock; its znode is the caller's to
// delete.
func (r *reentrant) unwind(who owner) (c *claim, last bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.claims[who]
	if c == nil || c.hold == nil {
		return nil, false, ErrNotOwner
	}
	if c.count--; c.count == 0 {
		delete(r.claims, who)
	}
	return c, c.count == 0, c.hold.Err()
}

// held returns the claim of an owner that holds the lock, else nil.
func (r *reentrant) held(who owner) *claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.claims[who]; c != nil && c.holds() {
		return c
	}
	return nil
}

// holds is called with reentrant.mu held.
func (c *claim) holds() bool { return c.hold != nil && c.hold.Err() == nil }

// IsAcquiredInThisProcess reports whether any owner holds the lock through this value. A lock that is lost is not held.
func (r *reentrant) IsAcquiredInThisProcess() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.claims {
		if c.holds() {
			return true
		}
	}
	return false
}

// IsOwned reports whether the owner of ctx holds the lock (Curator's isOwnedByCurrentThread). It asks nothing of ZooKeeper.
func (r *reentrant) IsOwned(ctx context.Context) bool { return r.held(ownerOf(ctx)) != nil }

// Hold returns the hold of ctx's owner, nil where it does not hold the lock.
func (r *reentrant) Hold(ctx context.Context) *Hold {
	if c := r.held(ownerOf(ctx)); c != nil {
		return c.hold
	}
	return nil
}

// LockPath returns the znode of ctx's owner (Curator's getLockPath), "" where it does not hold the lock.
func (r *reentrant) LockPath(ctx context.Context) string {
	if c := r.held(ownerOf(ctx)); c != nil {
		return c.hold.path
	}
	return ""
}

// MakeRevocable sets the function that is called, in a goroutine of its own, each time another process asks for the lock back
// (AttemptRevoke, or Curator's Revoker), of a holder and of a waiter through this value. Requests that follow one another faster
// than they can be read are one. It may be set at any time, and stays in force for all later holds; nil ends that.
// A znode of a revocable lock takes one read and one watch at once, instead of only when it lasts.
func (r *reentrant) MakeRevocable(listener func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener = listener
	if listener == nil {
		return
	}
	select {
	case <-r.minded:
	default:
		close(r.minded)
	}
	for _, c := range r.claims {
		r.mindLocked(c)
		if c.unheard {
			c.unheard = false
			go listener()
		}
	}
}

// mindLocked minds the znode of a claim that is held, if the lock is revocable.
func (r *reentrant) mindLocked(c *claim) {
	if c.node != nil && r.listener != nil {
		c.node.Mind()
	}
}

// changed looks at new data of a claim's znode.
func (r *reentrant) changed(c *claim, data []byte) {
	if string(data) != revokeMessage {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.unheard = r.listener == nil; !c.unheard {
		go r.listener()
	}
}
