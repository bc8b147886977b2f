package observe

import "sync/atomic"

// A Lint looks for what should not be in the directory of a queue, in the lists that are
// made anyway, and reports it once. All queues of one lock value share one. It is safe
// for concurrent use.
type Lint struct {
	// Find returns the name of such a child, "" if there is none. kinds are the queue's.
	// It is not called for a list that shows nothing but participants.
	Find func(children, kinds []string) string
	// Tell is called with the first, in the directory dir. It is called by the caller
	// that made the list, or waits for it, with nothing locked.
	Tell func(dir, found string)

	told atomic.Bool
}

// Foreign returns what the Lint finds among children, of whom so many stand in the
// queue.
func (l *Lint) Foreign(children, kinds []string, members int) string {
	if l == nil || members == len(children) {
		return ""
	}
	return l.Find(children, kinds)
}

// Report reports what was found in dir; "": nothing.
func (l *Lint) Report(dir, found string) {
	if found != "" && l != nil && !l.told.Swap(true) {
		l.Tell(dir, found)
	}
}
