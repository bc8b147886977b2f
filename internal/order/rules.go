package order

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// Excludes reports whether a participant that is ahead must go before self may proceed.
// It depends on the two names alone. The nearest participant ahead that excludes self
// blocks it.
type Excludes func(ahead, self seqname.Name) bool

// Blocker returns the index of the one among those ahead that blocks self, -1 if there is
// none.
func (x Excludes) Blocker(ahead []seqname.Name, self seqname.Name) int {
	at := len(ahead) - 1
	for at >= 0 && !x(ahead[at], self) {
		at--
	}
	return at
}

// Follows reports whether one of those behind self has to wait for it.
func (x Excludes) Follows(self seqname.Name, behind []seqname.Name) bool {
	return slices.ContainsFunc(behind, func(n seqname.Name) bool { return x(self, n) })
}

// Sources is a set of the sources that [Queue.Decide] may use besides lists.
type Sources uint8

// The sources, the cheapest first. Decisions name theirs in [Decision.By], for tests.
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

// Rules are what a queue gets once. They do not change.
type Rules struct {
	Excludes Excludes
	// Nested reports whether readers under a writer may join ahead of self: such a reader
	// takes the number of its owner's held writer. It is also asked of one ahead: true
	// says that such readers may stand under that one. So it must be true for each kind
	// that they exclude, of a read/write lock for all but the readers. Nil: never.
	Nested func(self seqname.Name) bool
	// Ordered: the event of a watch is in its channel before the answer to any later
	// request. If not, confirmations and the directory's incarnation prove nothing, and
	// the queue ignores both.
	Ordered bool
	// Without is a set of sources not to use, to measure what they save.
	Without Sources
	// Fresh: only lists decide, each asked for after the last fact that can change the
	// queue or cast doubt on a member. It is slow, and the reference for tests: while
	// such facts are reported, each Decide asks for another list.
	Fresh bool
}
