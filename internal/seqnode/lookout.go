package seqnode

import "sync/atomic"

// A Lookout looks, in the lists that are made anyhow, for what should not be in the
// directory of a queue, and tells of it once. All queues of one lock value have the same
// one; so it is also what a value is known by. It is safe for concurrent use.
type Lookout struct {
	// Find returns the name of such a child, "" where there is none. kinds are the
	// queue's. It is not called for a list that shows nothing but participants.
	Find func(children, kinds []string) string
	// Tell is told of the first, in the directory dir. It is called by whoever has made
	// the list, or waits for it, who has nothing locked.
	Tell func(dir, found string)

	told atomic.Bool
}

// foreign returns what the Lookout finds among children, of whom so many stand in the
// queue.
func (q *Queue) foreign(children []string, members int) string {
	if q.Lookout == nil || members == len(children) {
		return ""
	}
	return q.Lookout.Find(children, q.Kinds)
}

// tellForeign tells of what was found; "": nothing.
func (q *Queue) tellForeign(found string) {
	if found != "" && q.Lookout != nil && !q.Lookout.told.Swap(true) {
		q.Lookout.Tell(q.Dir, found)
	}
}

// members returns the participants among children, in the order of the queue.
func (q *Queue) members(children []string) []Name {
	names := participants(children, q.Kinds)
	q.tellForeign(q.foreign(children, len(names)))
	return names
}

// isOneWith tells whether two queues are of one lock value.
func (q *Queue) isOneWith(other *Queue) bool {
	return q == other || q.Lookout != nil && q.Lookout == other.Lookout
}
