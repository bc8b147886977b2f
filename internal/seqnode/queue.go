package seqnode

import (
	"time"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A Queue is a recipe's side of one directory. It has no state and is safe for concurrent
// use.
type Queue struct {
	znode.Spec
	Kinds []string // whose znodes stand in the queue
	// Excludes is the recipe's rule: whether a participant that is ahead must go before
	// self may proceed. Nobody who joins later comes first: what grants in another order
	// is no rule, but a [wait.Goal] of its own.
	Excludes order.Excludes
	// Nested reports whether a participant may turn up ahead of one that waits: a read
	// lock that is taken under its owner's write lock has that one's number. Nil: never.
	Nested func(self seqname.Name) bool
	// what should not be in the directory; nil: nobody cares
	Lookout *observe.Lookout
}

// A Request is one wish to get through the queue.
type Request struct {
	// TryOnce: do not wait for another participant, but for a cached entry to leave that
	// nobody may be using: until ctx is done.
	TryOnce bool
	// Patience: give up with [wait.ErrBusy] once nobody ahead has left for so long, and
	// for twice as long as joining has taken. It starts over with each znode. 0: never.
	Patience time.Duration
	Listener Listener // may be nil
	// WatchSelf is closed once DataChanged matters: from then on the znode is watched at
	// once. It may be nil.
	WatchSelf <-chan struct{}

	// OnDecision is called with each position that a list or this process has shown, and
	// whether somebody behind is known to wait for the znode; false: nobody wants to wait
	// for that. It is set by one that shares the Node among owners, each of whom has a
	// time of its own: so the Queue's MaxHold is not applied. It may be nil.
	OnDecision func(at Position, followed bool) bool
}

// A Listener is told of a znode, from the time when it joins the queue.
type Listener interface {
	// Queued says that the queue was joined, the first time or again.
	Queued(node string, ahead int)
	// DataChanged says what the znode's data is, after each change that the watch on it
	// shows.
	DataChanged(data []byte)
}

// Observed is the queue as one sees it who does not stand in it.
func (q *Queue) Observed() observe.Queue {
	return observe.Queue{Dir: q.Dir, Kinds: q.Kinds, Lookout: q.Lookout}
}

// Path returns the path of a member.
func (q *Queue) Path(m seqname.Name) string { return zkpath.Join(q.Dir, m.Text) }
