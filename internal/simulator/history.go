package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Kind is what an Event tells.
type Kind string

// The kinds of events. Those from Called to Unsure are of one acquisition.
const (
	Called    Kind = "called"    // the call to acquire begins
	Queued    Kind = "queued"    // it stands in the queue; again after a loss
	Granted   Kind = "granted"   // it has returned with the lock
	Failed    Kind = "failed"    // it has returned without
	Lost      Kind = "lost"      // the channel of that name is closed
	Releasing Kind = "releasing" // the last call to release begins
	Released  Kind = "released"  // it has returned
	Writing   Kind = "writing"   // a fenced write is sent
	Written   Kind = "written"   // it was accepted
	Refused   Kind = "refused"   // it was refused
	Unsure    Kind = "unsure"    // nobody knows which: the answer was lost

	Paused  Kind = "paused"  // the process of a worker is stopped
	Resumed Kind = "resumed" // it goes on
	Expired Kind = "expired" // a session is about to be ended by force
	Closing Kind = "closing" // a worker is about to close its client
	// A znode is about to be deleted by somebody whose it is not.
	Removing Kind = "removing"
	Removed  Kind = "removed" // it was
	Cut      Kind = "cut"     // a worker has no line to any server any more
	Mended   Kind = "mended"  // it is about to have one again
	Calm     Kind = "calm"    // all faults have ended, and their effects
	Over     Kind = "over"    // the run has ended, and everything closes
	// Anything else that is worth knowing when a history is read.
	Note Kind = "note"
)

// The kinds of events that only a trace has besides: what the servers and the clients say
// to each other.
const (
	Committed Kind = "committed" // a transaction, by the leader
	Sent      Kind = "sent"      // a request, by a client
	Answered  Kind = "answered"  // it was, and the client has got that
	Notified  Kind = "notified"  // the client has got the event of a watch
)

// A Mode is what a holder is entitled to.
type Mode string

// The modes.
const (
	Exclusive Mode = "exclusive" // to be the only holder
	Shared    Mode = "shared"    // to be one of many, none of them exclusive
	Leased    Mode = "leased"    // to be one of at most Limits.Leases
)

// An Outcome is how a call has ended.
type Outcome string

// The outcomes.
const (
	OK       Outcome = "ok"
	TimedOut Outcome = "timed out" // AcquireTimeout's time ran out
	// Ctx was done; of a release: before it was confirmed.
	Cancelled  Outcome = "cancelled"
	Closed     Outcome = "closed"      // the client was closed
	LockLost   Outcome = "lock lost"   // the hold had ended before
	NotAllowed Outcome = "not allowed" // an upgrade was refused
	// None of these: a defect, of the library or of the workload.
	Unexpected  Outcome = "unexpected"
	Unreachable Outcome = "unreachable" // the connection could not be opened
)

// An ID names one acquisition of one path.
type ID struct {
	Worker int `json:"worker"`
	Owner  int `json:"owner"`
	Step   int `json:"step"` // counts what the owner acquires
	// Of what is acquired together: leases, the members of a multi lock, a read lock
	// under a write lock.
	Part int `json:"part,omitempty"`
}

func (id ID) String() string {
	return fmt.Sprintf(
		"worker %d, owner %d, step %d.%d", id.Worker, id.Owner, id.Step, id.Part,
	)
}

func (id ID) compare(other ID) int {
	return cmp.Or(
		cmp.Compare(id.Worker, other.Worker), cmp.Compare(id.Owner, other.Owner),
		cmp.Compare(id.Step, other.Step), cmp.Compare(id.Part, other.Part),
	)
}

// An Event is one line of a history.
type Event struct {
	At   time.Duration `json:"at"` // by the recorder's clock
	Kind Kind          `json:"kind"`
	ID
	Path string `json:"path,omitempty"` // of the lock
	Mode Mode   `json:"mode,omitempty"` // of Called and Granted
	// Of Called and Granted: a read lock under the owner's own write lock.
	Under bool `json:"under,omitempty"`
	// Of writes: ZooKeeper looked whether the lock was held; else the token alone counts.
	Guarded bool `json:"guarded,omitempty"`
	// Of Granted and of writes; 0: it was lost before it could be read.
	Token int64 `json:"token,omitempty"`
	// Of Queued, Granted, Removing and Removed; of Writing: by whose hold.
	Node    string `json:"node,omitempty"`
	Session int64  `json:"session,omitempty"` // of Granted, Expired and Closing
	// Of Granted: the owners of a process may share the znode, one after the other.
	Cached bool `json:"cached,omitempty"`
	// Of Granted: for which nobody else has the lock after a loss by silence, or by the
	// longest time to hold it.
	Margin time.Duration `json:"margin,omitempty"`
	// Of Written: its place among the writes that were accepted.
	Version int64 `json:"version,omitempty"`
	// Of Called and Releasing: when the call was to end, 0 for never; see CheckPrompt.
	Bound   time.Duration `json:"bound,omitempty"`
	Outcome Outcome       `json:"outcome,omitempty"` // of Failed, Lost, Released
	Wire
	Text string `json:"text,omitempty"` // an error, or a note
}

// A Wire is what an event of a trace tells besides.
type Wire struct {
	Client int    `json:"client,omitempty"` // counts the clients of all workers
	Op     string `json:"op,omitempty"`     // the request, or the type of the event
	Xid    int32  `json:"xid,omitempty"`    // of a request and its answer
	Watch  bool   `json:"watch,omitempty"`  // it sets a watch
	// The place in the servers' order: of a transaction its own, of an answer that of the
	// last transaction that its server has applied.
	Zxid int64 `json:"zxid,omitempty"`
	Code int32 `json:"code,omitempty"` // of an answer: 0, or the error's
}

func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12.6fs %-9s", e.At.Seconds(), e.Kind)
	switch e.Kind {
	case Paused, Resumed, Closing, Cut, Mended:
		fmt.Fprintf(&b, " worker %d", e.Worker)
	case Expired, Removing, Removed, Calm, Over, Note:
	case Committed, Sent, Answered, Notified:
		fmt.Fprintf(&b, " %s %+v", e.Path, e.Wire)
	default:
		fmt.Fprintf(&b, " %v %s", e.ID, e.Path)
	}
	field := func(name string, value any, zero bool) {
		if !zero {
			fmt.Fprintf(&b, " %s=%v", name, value)
		}
	}
	field("mode", e.Mode, e.Mode == "")
	field("under", e.Under, !e.Under)
	field("guarded", e.Guarded, !e.Guarded)
	field("token", e.Token, e.Token == 0)
	field("node", e.Node, e.Node == "")
	field("cached", e.Cached, !e.Cached)
	field("margin", e.Margin, e.Margin == 0)
	field("session", fmt.Sprintf("%#x", e.Session), e.Session == 0)
	field("version", e.Version, e.Version == 0)
	field("bound", e.Bound, e.Bound == 0)
	field("outcome", e.Outcome, e.Outcome == "")
	if e.Text != "" {
		b.WriteString(" " + e.Text)
	}
	return b.String()
}

// A History is what was recorded, in order.
type History []Event

// Merge puts together the histories of several processes, whose recorders had the same
// clock.
func Merge(histories ...History) History {
	all := slices.Concat(histories...)
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return all
}

// tailLines is how much of a history a failure shows.
const tailLines = 60

// Tail returns the last lines up to and with a time, of those that concern a path ("" for
// all of them).
func (h History) Tail(path string, until time.Duration) string {
	var lines []string
	for _, e := range h {
		if e.At <= until && (path == "" || e.Path == path || e.Path == "") {
			lines = append(lines, e.String())
		}
	}
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// A Recorder takes the events of one process. It is safe for concurrent use.
type Recorder struct {
	clock    func() time.Duration
	tell     func(Event) (taken <-chan struct{}) // see Config.Tell; may be nil
	watchers sync.WaitGroup

	mu     sync.Mutex // guards what follows
	events History
	held   map[ID]*held
}

// A held acquisition was granted, and its loss not recorded nor its release ended.
type held struct {
	path string
	hold Holding
	over chan struct{} // closed when it is not held any more
}

// A Holding is what can be lost: a [recipes.Hold], a [recipes.Lease].
type Holding interface {
	Lost() <-chan struct{}
	Err() error
}

// NewRecorder returns a Recorder whose events have the times that clock tells; nil is the
// time since now.
func NewRecorder(clock func() time.Duration) *Recorder {
	if clock == nil {
		began := time.Now()
		clock = func() time.Duration { return time.Since(began) }
	}
	return &Recorder{clock: clock, held: map[ID]*held{}}
}

// Record takes an event, at the time that it is now.
func (r *Recorder) Record(e Event) {
	taken := r.record(e)
	if taken != nil && e.begins() {
		<-taken
	}
}

func (r *Recorder) record(e Event) (taken <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken = r.recordLocked(e)
	if e.Kind == Released {
		r.endLocked(e.ID)
	}
	return taken
}

// begins tells whether something begins behind the event. A judge must have it before
// that can have an effect elsewhere.
func (e Event) begins() bool {
	switch e.Kind {
	case Called, Writing, Releasing, Removing, Closing, Expired:
		return true
	}
	return false
}

// Grant takes the event of an acquisition that was granted, and waits beside the caller
// for its loss.
func (r *Recorder) Grant(e Event, hold Holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Kind = Granted
	r.recordLocked(e)
	h := &held{path: e.Path, hold: hold, over: make(chan struct{})}
	r.held[e.ID] = h
	r.watchers.Go(func() {
		select {
		case <-hold.Lost():
		case <-h.over:
			return
		}
		at := r.clock()
		// What is lost at the same moment is noted in order, whatever order it was told
		// in.
		time.Sleep(time.Nanosecond)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sweepLocked(at)
	})
}

// recordLocked first records the losses that were told before this event, but whose
// watchers have not run yet: the order of a history must not depend on which goroutine
// came first.
func (r *Recorder) recordLocked(e Event) (taken <-chan struct{}) {
	e.At = r.clock()
	r.sweepLocked(e.At)
	return r.appendLocked(e)
}

func (r *Recorder) appendLocked(e Event) (taken <-chan struct{}) {
	r.events = append(r.events, e)
	if r.tell == nil {
		return nil
	}
	return r.tell(e)
}

// sweepLocked records what is lost by now, and was at a time.
func (r *Recorder) sweepLocked(at time.Duration) {
	var lost []ID
	for id, h := range r.held {
		if isClosed(h.hold.Lost()) {
			lost = append(lost, id)
		}
	}
	slices.SortFunc(lost, ID.compare) // a seed gives the same history each time
	for _, id := range lost {
		h := r.held[id]
		e := Event{At: at, Kind: Lost, ID: id, Path: h.path}
		if errors.Is(h.hold.Err(), zk.ErrConnectionClosed) {
			e.Outcome = Closed
		}
		r.appendLocked(e)
		r.endLocked(id)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (r *Recorder) endLocked(id ID) {
	if h := r.held[id]; h != nil {
		close(h.over)
		delete(r.held, id)
	}
}

// Holders returns the workers that hold something at this moment, sorted.
func (r *Recorder) Holders() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var workers []int
	for id := range r.held {
		workers = append(workers, id.Worker)
	}
	slices.Sort(workers)
	return slices.Compact(workers)
}

// Notef records a remark.
func (r *Recorder) Notef(format string, args ...any) {
	r.Record(Event{Kind: Note, Text: fmt.Sprintf(format, args...)})
}

// Close stops to wait for losses.
func (r *Recorder) Close() {
	r.mu.Lock()
	for id := range r.held {
		r.endLocked(id)
	}
	r.mu.Unlock()
	r.watchers.Wait()
}

// History returns what was recorded so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
