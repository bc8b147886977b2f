package recipes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// An EventKind is a step of an acquisition.
type EventKind int

// The steps. Every acquisition ends in EventTimedOut, EventFailed, EventReleased or
// EventLost. Re-entries are no steps. Leases that are acquired together are reported one
// by one. See docs/appendix/observers.md.
const (
	EventQueued   EventKind = iota + 1 // the caller has joined the queue, or rejoined it
	EventAcquired                      // the lock is held
	EventTimedOut                      // the timeout ran out
	EventFailed                        // ctx was done, or ZooKeeper returned an error
	EventReleased                      // the owner has released the lock
	EventLost                          // the hold was lost, maybe during its release
)

// String returns the kind in words.
func (k EventKind) String() string {
	return word(int(k), "queued", "acquired", "timed out", "failed", "released", "lost")
}

// word returns that of a kind, which counts from 1.
func word(kind int, words ...string) string {
	if kind < 1 || kind > len(words) {
		return "unknown"
	}
	return words[kind-1]
}

// An Event is one step of one acquisition, for metrics, traces and logs.
type Event struct {
	Kind EventKind
	// The same, never 0, in all events of one acquisition, and in no others of this
	// process. An acquisition is one call of Acquire, AcquireTimeout or AcquireN, with
	// its rejoins and its release or loss. docs/appendix/observers.md has the details.
	ID uint64
	// "mutex", "read lock", "write lock", "semaphore", "semaphore mutex", "leader
	// selector", "leader latch" or "persistent node"
	Recipe  string
	Path    string        // the lock's
	Node    string        // the znode, "" if none was created
	Ahead   int           // EventQueued: how many are ahead, as far as is known
	Elapsed time.Duration // the wait; after EventAcquired the time held; EventQueued: 0
	Token   int64         // EventAcquired and EventLost: the fencing token
	Err     error         // why; EventReleased: why the delete is unconfirmed, if it is

	grant *grant // EventAcquired: what was acquired; else nil
}

// Until returns Hold.Until of what was acquired, of EventAcquired alone; else the zero
// time. Use it for a metric that shows how soon a hold will be lost: it can be called for
// as long as the hold lasts, and sends nothing.
func (e Event) Until() time.Time {
	if e.grant == nil {
		return time.Time{}
	}
	return e.grant.until()
}

// steps tells the observer of one lock, or of one acquisition of it: of its teller, and
// then of its holds.
type steps struct {
	recipe, path string
	conn         Conn
	observer     func(context.Context, Event) // nil: there is none

	*timing // of an acquisition that is observed, which has steps of its own; else nil
}

type timing struct {
	id             uint64
	began, granted time.Time
}

// acquisitions counts those that were observed, in this process.
var acquisitions atomic.Uint64

// noteGrant takes note of the time of a grant, if there is an observer. Otherwise it does
// not read the clock, which would show in the time that a cached lock takes.
func (s *steps) noteGrant() {
	if s.observer != nil {
		s.granted = time.Now()
	}
}

func (s *steps) emit(ctx context.Context, e Event) {
	if s.observer == nil {
		return
	}
	e.Recipe, e.Path, e.ID = s.recipe, s.path, s.id
	s.observer(ctx, e)
}

// A teller tells the observer of one acquisition, until that has succeeded or failed.
type teller struct {
	call  context.Context // that of the call, which the observer receives
	steps *steps
	node  string // with which it stood in the queue last
}

// newTeller begins an acquisition. An observed one has a copy of its lock's steps, with
// an id and times of its own.
func newTeller(call context.Context, lock *steps) teller {
	if lock.observer == nil {
		return teller{call: call, steps: lock}
	}
	one := *lock
	one.timing = &timing{id: acquisitions.Add(1), began: time.Now()}
	return teller{call: call, steps: &one}
}

// Queued implements seqnode.Listener.
func (t *teller) Queued(node string, ahead int) {
	t.node = node
	t.steps.emit(t.call, Event{Kind: EventQueued, Node: node, Ahead: ahead})
}

// DataChanged implements seqnode.Listener.
func (t *teller) DataChanged([]byte) {}

// failed tells how it has failed, if that is an error.
func (t *teller) failed(err error) {
	if t.steps.observer == nil {
		return
	}
	e := Event{
		Kind: EventFailed, Node: t.node, Elapsed: time.Since(t.steps.began),
		Err: explained(t.steps.path, err),
	}
	if endedByBound(err) {
		e.Kind, e.Err = EventTimedOut, nil
	}
	t.steps.emit(t.call, e)
}

// acquired tells of what was acquired. If the observer panics or ends the goroutine, so
// that the caller never returns, undo releases it.
func (t *teller) acquired(undo func(), grants ...*grant) {
	if t.steps.observer == nil {
		return
	}
	waited := time.Since(t.steps.began)
	callOrUndo(func() {
		for _, g := range grants {
			g.tellAcquired(t.call, waited)
		}
		for _, g := range grants {
			g.tellEnds(t.call)
		}
	}, undo)
}

// callOrUndo calls f, which calls code of the user's, such as an observer. If that panics
// or ends the goroutine, so that the caller never returns, undo leaves nothing behind
// that nobody would know of.
func callOrUndo(f, undo func()) {
	returned := false
	defer func() {
		if !returned {
			undo()
		}
	}()
	f()
	returned = true
}

// A line tells the observer of one hold, step by step. One goroutine has the line, and
// also tells the steps that others add meanwhile. So none of them waits for the observer,
// and an observer that releases the hold does not wait for itself. An observer that never
// returns keeps the line: no more steps follow. The goroutine that acquired the hold has
// the zero line, until it has reported EventAcquired (tellEnds).
type line struct {
	mu      sync.Mutex // guards what follows; not held while the observer is called
	free    bool       // no goroutine has it
	over    bool       // the last step waits, or was reported
	waiting []func()   // steps, in order
}

// tell tells of a step, or leaves that to the goroutine that has the line.
func (l *line) tell(step func(), last bool) {
	if l.join(step, last) {
		l.leave()
	}
}

// join lets a step wait. The line is the caller's then if it was free.
func (l *line) join(step func(), last bool) (mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.waiting, l.over = append(l.waiting, step), last
	mine, l.free = l.free, false
	return mine
}

// leave tells what waits, and leaves the line, which the caller has, to others.
func (l *line) leave() {
	for step := l.next(); step != nil; step = l.next() {
		step()
	}
}

func (l *line) next() (step func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free = len(l.waiting) == 0; l.free {
		return nil
	}
	step, l.waiting = l.waiting[0], l.waiting[1:]
	return step
}
