package order

import "slices"

// Excludes reports whether a participant that is ahead must go before self may proceed.
// It depends on the two names alone. The nearest participant ahead that excludes self
// blocks it.
type Excludes func(ahead, self Name) bool

// Blocker returns the index of the one among those ahead that blocks self, -1 if there is
// none.
func (x Excludes) Blocker(ahead []Name, self Name) int {
	at := len(ahead) - 1
	for at >= 0 && !x(ahead[at], self) {
		at--
	}
	return at
}

// Follows reports whether one of those behind self has to wait for it.
func (x Excludes) Follows(self Name, behind []Name) bool {
	return slices.ContainsFunc(behind, func(n Name) bool { return x(self, n) })
}

// Sources is a set of the sources that [Queue.Decide] may use besides lists.
type Sources uint8

// The sources, the cheapest first. Decisions name theirs in [Decision.By].
const (
	// ByNeighbour means that a member of this process that excludes another blocks it.
	ByNeighbour Sources = 1 << iota
	// ByNumber means that the number behind the watermark has its turn.
	ByNumber
	// ByKnownList means that what happened after the last list was asked for is applied
	// to it. Without this source a list serves until the first such change in the way.
	ByKnownList
	// SmallReads means that a few predecessors are read one by one instead of listed.
	SmallReads
	// ByList marks a decision that a list proves by itself. It cannot be switched off.
	ByList
)

// Rules are what a queue is told once. They do not change.
type Rules struct {
	Excludes Excludes
	// Nested reports whether a participant may appear ahead of self after self was
	// created: a reader under a writer, with that writer's number. It must be true for
	// each kind that such a reader excludes. Nil: never.
	Nested func(self Name) bool
	// Ordered: the event of a watch is in its channel before the answer to any later
	// request. If not, confirmations and the directory's incarnation prove nothing, and
	// the queue ignores both.
	Ordered bool
	// Without is a set of sources not to use, to measure what they save.
	Without Sources
	// Fresh: only lists decide, each asked for after the last fact that can change the
	// queue or cast doubt on a member. It is slow, and the reference for tests: while
	// such facts are told, each Decide asks for another list.
	Fresh bool
}

// An Epoch counts how often the connection has been away. The driver reads it from the
// connection; it never decreases.
type Epoch uint64

// A moment orders the facts, as they were told.
type moment uint64

// A lapsing is something that is true in one epoch only: zero, or that epoch plus one.
type lapsing uint64

func in(e Epoch) lapsing { return lapsing(e) + 1 }

func (l lapsing) holds(now Epoch) bool { return l == in(now) }

// A Question is the time at which a request was sent, or at which a watch was known to
// be pending. It comes from [Queue.Asking] and goes back with the answer. It is a value,
// and may be used for several answers.
type Question struct {
	at    moment
	epoch Epoch
	// firm: the server has applied all that this process had seen before the epoch
	firm bool
	// the incarnation of the directory that the last list had shown by then
	directory int64
}

// A Listing is what a server said of the directory.
type Listing struct {
	Names []Name // as [Participants] returns them; the queue keeps the slice
	// Czxid and Pzxid are of the directory's Stat in the same answer: its incarnation,
	// and the last create or delete among its children. A directory that does not exist
	// is the zero Listing.
	Czxid, Pzxid int64
}

// A Watermark is how far a queue has come: everybody up to a number has gone from it, or
// is a member that has left and does nothing any more.
type Watermark struct {
	Seq   int32
	Token int64 // of the member that left; the watermark counts in one incarnation only
	// MetStranger: that member had waited for a participant of another process
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

	// directory is the incarnation, and since is set while a watch on it is pending.
	// Zero while since is not set.
	directory int64
	since     lapsing

	// settled: the server of that epoch has applied all that was seen before it. It is of
	// the latest epoch of which that is known.
	settled lapsing

	// last is the newest firm list, with what has become of those on it. absent are the
	// latest that were told to have gone and are not on it, in the order of that: a list
	// that is under way may show them. There are absentAtMost at most, and none from
	// before the list was asked for.
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
		r.Nested = func(Name) bool { return false }
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
func (q *Queue) member(n Name) *Member {
	for _, m := range q.members {
		if m.name == n {
			return m
		}
	}
	return nil
}
