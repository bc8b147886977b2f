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
	EventReleased                      // the owner has released the lock; see Err
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
	// Err is why. Of EventReleased it is why the delete is unconfirmed, if it is: then
	// EventLost may follow.
	Err error

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

// A reporter calls the observer of a lock with events that are complete: recipe, path and
// id are its own. A lock has one, and each acquisition that is observed has a copy, with
// its timing. The grant keeps it, and knows from it what lock it is of.
type reporter struct {
	recipe, path string
	conn         Conn
	observer     func(context.Context, Event) // nil: there is none

	*timing // of an acquisition that is observed; else nil
}

// A timing tells one acquisition that is observed from all others, and keeps its times.
type timing struct {
	id             uint64
	began, granted time.Time
}

// lastID counts the acquisitions that were observed, in this process.
var lastID atomic.Uint64

// noteGrant takes note of the time of a grant, if there is an observer. Otherwise it does
// not read the clock, which would show in the time that a cached lock takes.
func (r *reporter) noteGrant() {
	if r.observer != nil {
		r.granted = time.Now()
	}
}

func (r *reporter) report(ctx context.Context, e Event) {
	if r.observer == nil {
		return
	}
	e.Recipe, e.Path, e.ID = r.recipe, r.path, r.id
	r.observer(ctx, e)
}

// A teller makes the events of one acquisition's wait: it was queued, and has succeeded
// or failed. What follows a success, the grants tell.
type teller struct {
	call     context.Context // that of the call, which the observer receives
	reporter *reporter
	node     string // with which it stood in the queue last
}

// newTeller begins an acquisition of the lock that has the reporter.
func newTeller(call context.Context, lock *reporter) teller {
	if lock.observer == nil {
		return teller{call: call, reporter: lock}
	}
	one := *lock
	one.timing = &timing{id: lastID.Add(1), began: time.Now()}
	return teller{call: call, reporter: &one}
}

// Queued implements seqnode.Listener.
func (t *teller) Queued(node string, ahead int) {
	t.node = node
	t.reporter.report(t.call, Event{Kind: EventQueued, Node: node, Ahead: ahead})
}

// DataChanged implements seqnode.Listener.
func (t *teller) DataChanged([]byte) {}

// failed tells how the wait has ended without success: by an error, or since its time ran
// out.
func (t *teller) failed(err error) {
	if t.reporter.observer == nil {
		return
	}
	e := Event{
		Kind: EventFailed, Node: t.node, Elapsed: time.Since(t.reporter.began),
		Err: explained(t.reporter.path, err),
	}
	if endedByBound(err) {
		e.Kind, e.Err = EventTimedOut, nil
	}
	t.reporter.report(t.call, e)
}

// acquired tells of what was acquired. If the observer panics or ends the goroutine, so
// that the caller never returns, undo releases it.
func (t *teller) acquired(undo func(), grants ...*grant) {
	if t.reporter.observer == nil {
		return
	}
	waited := time.Since(t.reporter.began)
	callOrElse(func() {
		for _, g := range grants {
			g.tellAcquired(t.call, waited)
		}
		for _, g := range grants {
			g.openLine(t.call)
		}
	}, undo)
}

// callOrElse calls f, which calls code of the user's, such as an observer. If that panics
// or ends the goroutine, so that the caller never returns, otherwise is called, to leave
// nothing behind that nobody would know of.
func callOrElse(f, otherwise func()) {
	returned := false
	defer func() {
		if !returned {
			otherwise()
		}
	}()
	f()
	returned = true
}

// A line puts the reports of one hold in order: each is a call of the observer. One
// goroutine has the line, and also makes the reports that others add meanwhile. So none
// of them waits for the observer, and an observer that releases the hold does not wait
// for itself. An observer that never returns keeps the line: no more reports follow. The
// goroutine that acquired the hold has the zero line, until it has reported EventAcquired
// (grant.openLine).
type line struct {
	mu      sync.Mutex // guards what follows; not held while the observer is called
	free    bool       // no goroutine has it
	closed  bool       // EventLost waits, or was made: nothing follows it
	waiting []func()   // reports, in order
}

// add makes a report, or leaves that to the goroutine that has the line.
func (l *line) add(report func(), last bool) {
	if l.join(report, last) {
		l.leave()
	}
}

// join lets a report wait. The line is the caller's then if it was free.
func (l *line) join(report func(), last bool) (mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.waiting, l.closed = append(l.waiting, report), last
	mine, l.free = l.free, false
	return mine
}

// leave makes the reports that wait, and leaves the line, which the caller has, to
// others.
func (l *line) leave() {
	for report := l.next(); report != nil; report = l.next() {
		report()
	}
}

func (l *line) next() (report func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free = len(l.waiting) == 0; l.free {
		return nil
	}
	report, l.waiting = l.waiting[0], l.waiting[1:]
	return report
}
