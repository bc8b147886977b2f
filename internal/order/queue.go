package order

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// A Watermark is how far a queue has come: everybody up to a number has gone from it, or
// is a member that has left and does nothing any more.
type Watermark struct {
	Seq   int32
	Token int64 // of the member that left; the watermark counts in one incarnation only
	// MetStranger: that member had met a participant of another process
	MetStranger bool
}

// A Queue is what one connection knows of one queue: a value that facts change and
// [Queue.Decide] judges. It is not safe for concurrent use. One Queue serves all members
// that the process has in the queue by that connection, and lives on from one session of
// the connection to the next.
type Queue struct {
	rules Rules

	// now is the last moment; no moment that is kept anywhere is later. changed is the
	// moment of the last fact.
	now, changed moment

	// members are in the order of the queue, each until it is removed, none twice. Those
	// of a former directory can stand anywhere. coming counts the creates under way, no
	// kind twice and none with a count of zero.
	members []*Member
	coming  []arrivals

	// others is how many were ahead of the first member when that was decided last.
	// Nothing but the count that is told to users depends on it.
	others int

	// mark is the watermark; its token is zero while there is none. A raised one has a
	// larger token.
	mark Watermark

	// directory is the incarnation, as Directory was last told; zero if it is not known.
	// since is the epoch of that, and set if and only if directory is.
	directory int64
	since     lapsing

	// settled is the latest epoch whose server is known to have applied all that this
	// process had seen before that epoch.
	settled lapsing

	// last is the newest firm list, with what has become of those on it. absent are those
	// that were told to have gone and are not on it, the oldest first: a list under way
	// may show them. There are absentAtMost at most, all told after last was asked for.
	last   snapshot
	absent []absence
}

type arrivals struct {
	kind  string
	count int
}

// New returns a queue of which nothing is known.
func New(r Rules) *Queue {
	if r.Nested == nil {
		r.Nested = func(seqname.Name) bool { return false }
	}
	return &Queue{rules: r}
}

// tick begins a new moment.
func (q *Queue) tick() moment {
	q.now++
	return q.now
}

// change is tick for a fact that can change a decision.
func (q *Queue) change() moment {
	q.changed = q.tick()
	return q.changed
}

// Idle reports whether there is no member and no create under way. Then the queue may be
// forgotten; what is worth keeping is its [Queue.Watermark].
func (q *Queue) Idle() bool { return len(q.members) == 0 && len(q.coming) == 0 }

// Watermark returns how far the queue has come, false if that is not known.
func (q *Queue) Watermark() (Watermark, bool) { return q.mark, q.mark.Token != 0 }

// Remember tells a new queue the watermark of an earlier one of the same connection and
// directory. It is ignored if a newer watermark is known.
func (q *Queue) Remember(w Watermark) {
	if w.Token > q.mark.Token {
		q.mark = w
	}
}

// at returns the place of m among the members.
func (q *Queue) at(m *Member) int { return slices.Index(q.members, m) }

// member returns the member of that name, nil if there is none.
func (q *Queue) member(n seqname.Name) *Member {
	for _, m := range q.members {
		if m.name == n {
			return m
		}
	}
	return nil
}

// uses reports whether a source may be used.
func (q *Queue) uses(s Sources) bool { return !q.rules.Fresh && q.rules.Without&s == 0 }

// nearest returns the last of members that has to go before another of the same session;
// nil if there is none.
func (q *Queue) nearest(members []*Member, other seqname.Name, session int64) *Member {
	for i := len(members) - 1; i >= 0; i-- {
		if members[i].goesBefore(other, session, q.rules.Excludes) {
			return members[i]
		}
	}
	return nil
}
