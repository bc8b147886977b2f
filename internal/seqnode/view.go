package seqnode

import (
	"slices"
	"time"
)

// A view is what a list shows of a queue. Nobody joins ahead of another, so of those who
// are in it, it has all that can ever be ahead.
type view struct {
	queue []Name // in order
	pzxid int64  // see listing
	asked time.Time
	// of what should not be in the directory one; "": nothing
	foreign string

	gone int // that many, of the first, have gone since; guarded by crowd.mu
}

// newView returns an error if the order of those in the list is not certain.
func newView(q *Queue, l listing) (*view, error) {
	queue := participants(l.children, q.Kinds)
	if err := checkSpread(q.Dir, queue); err != nil {
		return nil, err
	}
	return &view{
		queue: queue, foreign: q.foreign(l.children, len(queue)),
		pzxid: l.pzxid, asked: l.asked,
	}, nil
}

func (v *view) find(name Name) (at int, ok bool) {
	return slices.BinarySearchFunc(v.queue, name, compare)
}

// newer tells whether v is of a later time than u, as far as its end shows.
func (v *view) newer(u *view) bool {
	return u == nil || v.pzxid > u.pzxid
}

// A way is those who may still be ahead of a participant. The nearest that is in the way
// goes first: those between it and the participant are not, and never will be.
type way struct {
	n       *Node
	asked   time.Time // when the list was that shows them
	left    []Name    // in order
	skipped int       // how many more may be there who are not in the way
}

// way is the way of a waiter whom v shows at the index self.
func (w *waiter) way(v *view, self int) *way {
	y := &way{n: w.node, asked: v.asked, left: v.queue[:self]}
	// Others may turn up beside those who have gone.
	if !w.node.q.Relist {
		y.left = w.node.crowd.left(v, self)
	}
	if w.passed != nil {
		at, _ := slices.BinarySearchFunc(y.left, w.passed.name, compare)
		y.left, y.skipped = y.left[:at], w.passed.skipped
	}
	return y
}

// A passed is somebody who has gone who was in the way, and how many between it and the
// participant may be there, who are not.
type passed struct {
	name    Name
	skipped int
}

// next returns the index of the nearest that is in the way, -1 where nobody is. Those of
// this process that have yielded do not count: their deletes are under way.
func (y *way) next() int {
	for {
		at := y.n.q.Rule(y.left, y.n.name)
		if at < 0 || !y.yielded(y.left[at]) {
			return at
		}
		y.pass(at)
	}
}

// yielded tells whether the one with that name is of this process, and yields. Where
// somebody can turn up beside it, it had to before the list was asked for, which shows
// that one then; else it counts until it is gone, like one of another process.
func (y *way) yielded(name Name) bool {
	m := y.n.neighbour(y.n.q.Path(name))
	if m == nil || !m.yields() {
		return false
	}
	return !y.n.q.Relist || m.endedBefore(y.asked)
}

// pass goes past the one at an index, which has gone or is about to.
func (y *way) pass(at int) {
	y.skipped += len(y.left) - 1 - at
	y.left = y.left[:at]
}

// count is how many are ahead.
func (y *way) count() int { return len(y.left) + y.skipped }

// isClear tells whether nobody at all is ahead.
func (y *way) isClear() bool { return y.count() == 0 }
