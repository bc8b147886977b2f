package seqnode

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// far is how long a round trip takes at least if a waiter looks beyond its blocker. That
// costs a read, and mostly another one of the waiter's own znode. If the servers are
// nearer, these take more time than they save.
const far = time.Millisecond

// A beyond is the next participant in the way, past the blocker. Once it has gone, the
// blocker most likely holds the lock. Meanwhile the waiter finds out what it would have
// to ask once the blocker has gone: a list shows whether others are left, and a watch on
// the waiter's own znode that it is there. So the blocker's end grants without a request,
// and a hand-over takes one round trip instead of two.
type beyond struct {
	path string
	set  *calls.Pending[<-chan zk.Event] // sets its watch; nil before look
}

// newBeyond returns nil if there is none, or if it is not worth a look.
func (m *Member) newBeyond(name seqname.Name) *beyond {
	if name.Text == "" || m.s.RoundTrip() < far {
		return nil
	}
	return &beyond{path: m.queue.Path(name)}
}

// look begins to watch it. Nobody waits for the answer: the blocker may go before that.
func (b *beyond) look(ctx context.Context, s *zkconn.Conn) {
	if b != nil {
		b.set = calls.Start(s, func() (<-chan zk.Event, error) {
			return s.Watch(ctx, b.path)
		})
	}
}

// wake adds to what ends a sleep: the answer about the watch, or its event once that was
// answered. If the watch could not be set, the wait is as good without it.
func (b *beyond) wake(wake *wait.Wakers) {
	if b != nil {
		wake.BeyondSet, wake.BeyondPath = b.set.Done(), b.path
	}
}

// answered is called once the answer is here. missing: there is no such znode any more.
func (b *beyond) answered(ctx context.Context, wake *wait.Wakers) (missing bool) {
	events, err := b.set.Wait(ctx)
	wake.BeyondSet, wake.Beyond = nil, events
	return errors.Is(err, zk.ErrNoNode)
}
