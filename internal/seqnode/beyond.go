package seqnode

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqname"
)

// far is how long a round trip takes at least if a waiter looks beyond its blocker. That
// costs a read, and mostly another one of the waiter's own znode: if servers are nearer,
// more time than it spares.
const far = time.Millisecond

// A beyond is the next participant in the way, past the blocker. Once it has gone, the
// blocker most likely holds the lock. Meanwhile the waiter finds out what it would have
// to ask once the blocker has gone: a list shows whether others are left, and a watch on
// the waiter's own znode that it is there. So the blocker's end grants without a request,
// and a hand-over takes one round trip instead of two.
type beyond struct {
	set   *calls.Pending[<-chan zk.Event] // sets its watch; nil: nobody looks
	moved bool                            // its watch has fired: a list is due
}

// look begins to watch it for m, if there is one and that is worth it.
func (b *beyond) look(ctx context.Context, m *Member, name seqname.Name) {
	*b = beyond{}
	if name.Text == "" || m.s.RoundTrip() < far {
		return
	}
	b.set = calls.Start(m.s, func() (<-chan zk.Event, error) {
		return m.s.Watch(ctx, m.queue.Path(name))
	})
}

// watch returns the watch that look has begun, nil if there is none: whatever the reason,
// the wait is as good without it. missing: there is no such znode any more.
func (b *beyond) watch(ctx context.Context) (events <-chan zk.Event, missing bool) {
	if b.set == nil {
		return nil, false
	}
	events, err := b.set.Wait(ctx)
	return events, errors.Is(err, zk.ErrNoNode)
}

// went says that it has gone, most likely. The answer about m's own znode comes with that
// to the list that follows.
func (b *beyond) went(m *Member) {
	m.node.WatchSelf()
	b.moved = true
}
