package recipes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// An EventKind is a step of an acquisition.
type EventKind int

// The steps. Every acquisition comes to an end in EventTimedOut, EventFailed,
// EventReleased or EventLost; one that ended before it saw the queue was not queued. A
// release that was not confirmed can still turn out to be a loss: then EventLost follows.
// So a gauge of holds goes by ID and Node: up at their EventAcquired, down at the first
// of their EventReleased and EventLost, and an EventLost behind an EventReleased is no
// second end. Leases that are acquired together are told one by one. Re-entries and their
// releases are no steps. An owner that finds a cached queue entry held and free
// (WithCaching) is not queued.
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
	// The same in all events of one acquisition, and in those of no other in this
	// process. An acquisition is one call of Acquire, AcquireTimeout or AcquireN, and all
	// that it comes to: it keeps its ID if it has to rejoin the queue, and its release or
	// loss has it, too. Leases that are acquired together share one ID, and each has a
	// Node of its own. Owners that share a queue entry (WithCaching) share the Node, and
	// each has an ID of its own. Each member of a multi lock has its own ID, and another
	// one if it is acquired again since a member was lost meanwhile. In an election
	// each term has its own, from the moment when the candidate joins. It is never 0.
	ID uint64
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

// steps tells the observer of one lock, or of one acquisition of it: of its attempt, and
// then of its holds.
type steps struct {
	recipe, path string
	observer     func(context.Context, Event) // nil: there is none
	id           uint64                       // of the acquisition
}

// acquisitions counts those that were observed, in this process.
var acquisitions atomic.Uint64

// begin returns the steps of a new acquisition.
func (s *steps) begin() *steps {
	if s.observer == nil {
		return s
	}
	one := *s
	one.id = acquisitions.Add(1)
	return &one
}

func (s *steps) tell(ctx context.Context, e Event) {
	if s.observer == nil {
		return
	}
	e.Recipe, e.Path, e.ID = s.recipe, s.path, s.id
	s.observer(ctx, e)
}

// An attempt is an acquisition until it has succeeded or failed.
type attempt struct {
	steps *steps
	began time.Time
	node  string // with which it stood in the queue last
}

func newAttempt(steps *steps) *attempt {
	return &attempt{steps: steps, began: time.Now()}
}

// queued tells that the queue was joined.
func (a *attempt) queued(ctx context.Context, node string, ahead int) {
	a.node = node
	a.steps.tell(ctx, Event{Kind: EventQueued, Node: node, Ahead: ahead})
}

// failed tells how it has failed, if that is an error.
func (a *attempt) failed(ctx context.Context, err error) {
	e := Event{Kind: EventFailed, Node: a.node, Elapsed: time.Since(a.began), Err: err}
	if isBusy(err) {
		e.Kind, e.Err = EventTimedOut, nil
	}
	a.steps.tell(ctx, e)
}

// acquired tells of what was acquired. Where the observer panics, or ends the goroutine,
// so that the caller never returns, undo gives it back.
func (a *attempt) acquired(ctx context.Context, undo func(), holds ...*Hold) {
	waited := time.Since(a.began)
	tellOr(undo, func() {
		for _, h := range holds {
			h.tellAcquired(ctx, waited)
		}
	})
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
