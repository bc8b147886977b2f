package recipes

import (
	"context"
	"sync"
	"time"
)

// An EventKind is a step of an acquisition.
type EventKind int

// The steps. Every acquisition comes to an end in EventTimedOut, EventFailed,
// EventReleased or EventLost; one that ended before it saw the queue was not queued. A
// release that was not confirmed can still turn out to be a loss: then EventLost follows.
// So a gauge of holds goes by Node: up at its EventAcquired, down at the first of its
// EventReleased and EventLost, and an EventLost behind an EventReleased is no second end.
// Leases that are acquired together are told one by one. Re-entries and their releases
// are no steps. With WithCaching the holds that share a Node are told one by one, too,
// and end one by one: a gauge of those counts events. Who finds the place held and free
// is not queued.
const (
	// EventQueued: the caller has joined the queue; again after each loss of its place.
	EventQueued EventKind = iota + 1
	// EventAcquired: the lock is held.
	EventAcquired
	// EventTimedOut: AcquireTimeout gave up.
	EventTimedOut
	// EventFailed: the acquisition failed, since ctx was done or ZooKeeper refused.
	EventFailed
	// EventReleased: the owner has released the lock.
	EventReleased
	// EventLost: the hold has ended under its owner.
	EventLost
)

// String returns the kind in words.
func (k EventKind) String() string {
	switch k {
	case EventQueued:
		return "queued"
	case EventAcquired:
		return "acquired"
	case EventTimedOut:
		return "timed out"
	case EventFailed:
		return "failed"
	case EventReleased:
		return "released"
	case EventLost:
		return "lost"
	}
	return "unknown"
}

// An Event is one step of one acquisition, for metrics, traces and logs.
type Event struct {
	Kind EventKind
	// "mutex", "read lock", "write lock", "semaphore", "semaphore mutex", "leader
	// selector" or "leader latch"
	Recipe string
	Path   string // the lock's
	Node   string // the znode, "" where none was made

	// EventQueued: how many are ahead in the queue. Behind another owner of this process
	// nobody asks: it is how many of this process are, and how many others were ahead of
	// the first of them when that one has looked last.
	Ahead int
	// EventAcquired, EventTimedOut, EventFailed: the wait; EventReleased, EventLost: the
	// time held
	Elapsed time.Duration
	Token   int64 // EventAcquired: the fencing token
	// EventFailed, EventLost: why; EventReleased: why the znode is not known to be
	// deleted, nil as a rule
	Err error
}

// steps tells the observer of one lock.
type steps struct {
	recipe, path string
	observer     func(context.Context, Event) // nil: there is none
}

func (s *steps) tell(ctx context.Context, e Event) {
	if s.observer == nil {
		return
	}
	e.Recipe, e.Path = s.recipe, s.path
	s.observer(ctx, e)
}

// tellOr calls tell, which calls an observer. Where that panics or ends the goroutine, so
// that the caller never returns, undo leaves nothing behind that nobody would know of.
func tellOr(undo, tell func()) {
	told := false
	defer func() {
		if !told {
			undo()
		}
	}()
	tell()
	told = true
}

// An ending keeps in order what is told of the end of a hold, on two goroutines: a loss
// may follow a release that was not confirmed, and comes behind it. The zero ending is
// ready.
type ending struct {
	mu     sync.Mutex    // guards what follows; not held while anything is told
	loss   bool          // it is told, or about to be
	told   chan struct{} // closed when the release was told; nil: it was not
	silent bool          // the observer has not returned; set before told is closed
}

// released begins to tell a release; false: the loss is told. told ends it, and says
// whether the observer has returned.
func (e *ending) released() (told func(returned bool), ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loss || e.told != nil {
		return nil, false
	}
	e.told = make(chan struct{})
	return func(returned bool) {
		e.silent = !returned
		close(e.told)
	}, true
}

// lost waits until nothing else is told; false: nobody listens any more.
func (e *ending) lost() bool {
	e.mu.Lock()
	e.loss = true
	told := e.told
	e.mu.Unlock()
	if told == nil {
		return true
	}
	<-told
	return !e.silent
}
