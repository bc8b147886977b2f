package lockcache

import (
	"context"

	"github.com/zkrecipes/recipes/internal/znode"
)

// Lost is Node.Lost for this owner alone: it stays open whatever becomes of the
// generation after the release.
func (sh *Share) Lost() context.Context { return sh.lost }

// Cause tells why the Share ended, nil if it has not.
func (sh *Share) Cause() error {
	e := sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case sh.released && sh.lost.Err() != nil:
		return context.Cause(sh.lost)
	case sh.released:
		return znode.ErrLeft
	}
	return sh.Node.Cause()
}

// Guard is Node.Guard. The check of a Share that was released would pass for as long as
// the entry is cached: so it is refused here, and an entry is not kept behind a
// transaction whose outcome is open.
func (sh *Share) Guard() (settled func(), ok bool) {
	e := sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if sh.released {
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

// Beside returns the Node for EnterUnder, nil where the Share was released. From now on
// the entry is not kept: what stands beside a writer's znode is its owner's, and the next
// owner would be admitted beside it.
func (sh *Share) Beside() *znode.Node {
	e := sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if sh.released {
		return nil
	}
	sh.generation.closed = true
	e.reconcile()
	return sh.Node
}

// StartLeaving releases the Share. Where the entry is cached, or others are in it,
// nothing is asked of ZooKeeper and left does not wait; else it is Node.StartLeaving.
func (sh *Share) StartLeaving() (left func(ctx context.Context) error) {
	g, e := sh.generation, sh.generation.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	sh.cancelExpiry()
	if sh.released {
		return func(context.Context) error { return znode.ErrLeft }
	}
	sh.released = true
	sh.forgo()
	// Out of touch it may be lost already; who deletes it finds out.
	g.leaveOne(sh.guarded > 0 || e.key.conn.Unavailable())
	_ = g.node.Check() // the clock may have run out, where nobody has looked yet
	e.reconcile()
	if e.current != g && g.users == 0 && g.left == nil {
		g.leave() // another was granted meanwhile
	}
	if g.left != nil {
		return g.left // it is told of a loss until that is done
	}
	if !sh.detach() {
		cause := g.node.Cause()
		return func(context.Context) error { return cause }
	}
	return func(context.Context) error { return nil }
}

// SessionEnded implements reliance.Ephemeral, for a Share with a margin: most likely its
// margin has begun, while others may still rely on the generation.
func (sh *Share) SessionEnded(cause error) { sh.end(cause) }

// Withdraw is StartLeaving without waiting for any result.
func (sh *Share) Withdraw() { sh.StartLeaving() }
