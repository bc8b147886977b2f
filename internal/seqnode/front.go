package seqnode

import (
	"context"

	"github.com/zkrecipes/recipes/internal/session"
)

// A front is how far a queue has come, as this process knows: everybody up to a number
// has gone from it, or is of this process, has left and does nothing any more. It is what
// a Node knows that had nobody ahead and leaves by itself; whoever has the next number
// has his turn then, without asking. Numbers tell who is next in one directory only,
// which could be deleted and made anew: see isNext.
type front struct {
	seq   int32
	token int64 // of the Node that left
	met   bool  // it had waited for one of another process
}

// passFront tells those behind n, which is about to end by itself. It is called with n.mu
// held.
func (n *Node) passFront() {
	if n.crowd != nil && n.first && !n.inUseLocked() {
		n.s.Note(n.crowd.key.queueKey, front{n.name.Seq, n.token.Load(), n.met})
	}
}

// front returns how far the queue has come; false where that is not known, or of no use:
// where others may turn up beside those who have gone.
func (q *Queue) front(s *session.Session) (f front, ok bool) {
	if q.Relist {
		return front{}, false
	}
	f, ok = s.Noted(q.key()).(front)
	return f, ok
}

// expectsTurn tells whether a create that is about to be sent will most likely have its
// turn at once, and know it, by a small read behind it at the most. Then a list is worth
// nothing.
func (q *Queue) expectsTurn(s *session.Session) bool {
	f, ok := q.front(s)
	return ok && !f.met && s.TellsCreates() && s.LearnBirth(q.Dir)
}

// isNext tells by number whether it is the waiter's turn: whether all between the front
// and itself are of this process, and not in its way. All of them have to be of the
// directory that is there now: their tokens are larger than its own then.
func (w *waiter) isNext(ctx context.Context) (p position, ok bool) {
	n := w.node
	f, ok := n.q.front(n.s)
	if !ok || n.crowd == nil || n.strays {
		return p, false
	}
	born, ok := n.s.Born(ctx, n.q.Dir)
	if !ok || f.token < born {
		return p, false
	}
	between, ok := n.crowd.between(f.seq, n, born)
	if !ok || !w.knowsToken(ctx) || n.Token() < born {
		return p, false
	}
	return position{ahead: between, first: between == 0}, true
}

// knowsToken tells whether the token is known, for which it reads unless a list is under
// way that may tell it.
func (w *waiter) knowsToken(ctx context.Context) bool {
	n := w.node
	return n.Token() != 0 || w.firstList == nil && n.awaitToken(ctx) == nil
}
