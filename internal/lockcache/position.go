package lockcache

import (
	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
)

// What follows is called with entry.mu held.

// inTheWay returns the generation that those who wait wait for, nil if that is not the
// current one: of owners who have it together it admits no more, and they wait next to
// it.
func (e *entry) inTheWay() *generation {
	if e.current != nil && e.together && e.current.room() == 0 {
		return nil
	}
	return e.current
}

// isBehindAnother tells whether the next generation waits for somebody. A cached entry
// that may be idle is nobody: it leaves soon.
func (e *entry) isBehindAnother() bool {
	return e.next != nil && e.next.position.Behind != "" && !e.next.position.MayBeIdle
}

// isLooking tells whether no user of the current generation is in the way, and whether
// the first that waits may use it is being asked.
func (e *entry) isLooking() bool {
	g := e.current
	return g != nil && (g.users == 0 || e.together) && !g.closed && g.mustLook()
}

// leftBehind tells when nothing is left that was made for those who have waited, nil
// where there is nothing, or others wait for it.
func (e *entry) leftBehind() *calls.Pending[struct{}] {
	if len(e.waiting) > 0 || e.next == nil {
		return nil
	}
	return e.next.run
}

// isEarly tells whether nobody is in the way of the one who waits but its own margin.
func (e *entry) isEarly(w *waiter) bool {
	return w.early && e.current != nil && e.current.isFree()
}

// where says who is ahead of the one who waits at an index; the zero Place if nobody
// knows.
func (e *entry) where(at int) wait.Place {
	switch g := e.inTheWay(); {
	case e.isEarly(e.waiting[at]), e.isLooking():
		return wait.Place{}
	case g != nil:
		return seqnode.BehindOurs(e.positionOf(at).ahead, g.node.Path).Place()
	case e.next == nil:
		return wait.Place{}
	}
	where := e.next.position
	where.Ahead += e.before(at)
	return where.Place()
}

// positionOf is what the Listener is told of the one who waits at an index.
func (e *entry) positionOf(at int) queuedAt {
	switch g := e.inTheWay(); {
	case g != nil:
		return queuedAt{g.node.Path, g.users + e.before(at)}
	case e.next != nil && e.next.queued.node != "":
		return queuedAt{e.next.queued.node, e.next.queued.ahead + e.before(at)}
	}
	return queuedAt{}
}

// before is how many go before the one who waits at an index.
func (e *entry) before(at int) int {
	if e.together {
		return 0
	}
	return at
}
