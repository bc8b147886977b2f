package lockcache

import (
	"context"
	"time"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Share is an owner's part in a generation. The generation's znode is held for it, and
// may be held for other owners before, after and at the same time. It is safe for
// concurrent use.
type Share struct {
	*znode.Node // the generation's; what is not below is the Node's

	// Set by admitLocked.
	generation   *generation
	listener     seqnode.Listener // see Request; may be nil
	cancelExpiry func()           // takes back expire
	expires      time.Time        // when that is called; zero: never

	// Done, with the cause, by the tenant when the Node is lost, or by expire.
	lost    context.Context
	loseNow context.CancelCauseFunc
	lostAt  time.Time // set before lost is done, and read after that

	// Guarded by entry.mu.
	ended   bool // released, or expired
	guarded int  // transactions of this owner whose outcome is open
}

// Lost is Node.Lost for this owner alone: it stays open whatever becomes of the
// generation after the release.
func (sh *Share) Lost() context.Context { return sh.lost }

// Until is Node.Until for this owner alone.
func (sh *Share) Until() time.Time {
	if sh.lost.Err() != nil {
		return sh.lostAt
	}
	return znode.Earlier(sh.Node.Until(), sh.expires)
}

// Cause returns why the Share ended, nil if it has not.
func (sh *Share) Cause() error {
	e := sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case sh.ended && sh.lost.Err() != nil:
		return context.Cause(sh.lost)
	case sh.ended:
		return znode.ErrLeft // and not the end of a znode that others used since
	}
	return sh.Node.Cause()
}

// Guard is Node.Guard. The check of a Share that was released would pass for as long as
// the entry is cached: so it is rejected here, and an entry is not kept behind a
// transaction whose outcome is open.
func (sh *Share) Guard() (unguard func(), ok bool) {
	e := sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if sh.ended {
		return nil, false
	}
	done, ok := sh.Node.Guard()
	if !ok {
		return nil, false
	}
	sh.guarded++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		sh.guarded--
		done()
	}, true
}

// Under returns the Node for EnterUnder, nil if the Share was released. From now on the
// entry is not kept: a read lock under a writer's znode is that owner's, and the next
// owner would be admitted while it is held.
func (sh *Share) Under() *znode.Node {
	e := sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if sh.ended {
		return nil
	}
	sh.generation.closed = true
	e.reconcileLocked()
	return sh.Node
}

// StartLeaving releases the Share. If the entry stays cached, or others use it, no
// request is sent and awaitDelete does not wait; else it is Node.StartLeaving.
func (sh *Share) StartLeaving() (awaitDelete func(ctx context.Context) error) {
	g, e := sh.generation, sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	sh.cancelExpiry()
	if sh.ended {
		return func(context.Context) error { return znode.ErrLeft }
	}
	sh.ended = true
	// While ZooKeeper does not answer, the znode may be lost already: the delete will
	// show that.
	g.dropUserLocked(sh.guarded > 0 || e.key.conn.Unavailable())
	if g.awaitDelete != nil {
		// Still attached, so a loss that comes before the answer counts.
		return g.awaitDelete
	}
	if !g.node.Detach((*tenant)(sh)) {
		cause := g.node.Cause()
		return func(context.Context) error { return cause }
	}
	return func(context.Context) error { return nil }
}

// Withdraw is StartLeaving without waiting for any result.
func (sh *Share) Withdraw() { sh.StartLeaving() }

// expire ends the Share of an owner that has had it for as long as it may. Nobody else is
// admitted, and once nobody is left the generation ends: not before the margin is over,
// in which this owner may still be busy. Others who use it stay. Lost tells the owner,
// and its cause answers the release that follows.
func (sh *Share) expire() {
	g, e := sh.generation, sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if sh.ended || sh.lost.Err() != nil {
		return
	}
	sh.ended = true
	if g.users == 1 {
		// It has the Node to itself: the Node notifies it, and leaves its margin.
		g.node.Lose(znode.ErrExpired)
	} else if g.node.Detach((*tenant)(sh)) {
		// The Node goes on for the others, so that nobody but this one is notified.
		sh.cancelExpiry()
		g.node.Linger(g.q.LossMargin)
		sh.lose(znode.ErrExpired)
	}
	g.dropUserLocked(true)
}

// A tenant is a Share as its Node sees it.
type tenant Share

// Lost implements znode.Tenant.
func (t *tenant) Lost(cause error) {
	sh := (*Share)(t)
	sh.cancelExpiry()
	sh.lose(cause)
}

// lose is called by one goroutine at a time: the Node's, or, once detached, expire's.
func (sh *Share) lose(cause error) {
	if sh.lost.Err() == nil {
		sh.lostAt = time.Now()
		sh.loseNow(cause)
	}
}
