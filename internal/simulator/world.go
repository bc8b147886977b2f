package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Config says what a World is made of.
type Config struct {
	// Dial opens a session for a worker. It returns when ctx is done at the latest.
	Dial func(ctx context.Context, worker int) (Client, error)

	Seed    uint64
	Session time.Duration // the session timeout: the measure of all waits and holds
	Workers int           // how many; default 3
	First   int           // the number of the first; others may be in other processes
	Owners  int           // in each worker; default 2
	Root    string        // above the paths of the default locks, "" or a path
	Locks   []Lock        // default: DefaultLocks(Root)
	// Trespass makes owners ask for what they have no right to, and each worker has one
	// more owner who does nothing else.
	Trespass  bool
	LongHolds bool // locks are held for longer than else
	// Held are further locks, which nobody uses but one more owner of each worker each,
	// who holds it for HoldFor, and up to as much again, unless it is lost.
	Held    []Lock
	HoldFor time.Duration
	// In how many of a hundred steps a znode of others is deleted, the worker's client is
	// closed, and a lock value is new, and so not revocable; by default 3, 3 and 15.
	Removals, Closes, Fresh int
	// In how many of a hundred steps a lock value keeps its place in the queue
	// ([recipes.WithCaching]), if the lock can; the others stand in the same queues.
	Cached int

	// Bounded lets most lock values leave a loss margin ([recipes.WithLossMargin]), or
	// end holds by themselves ([recipes.WithMaxHold]).
	Bounded bool
	// Mixed draws the bounds of each lock value anew, where Bounded says that there are
	// any: owners who share a kept queue entry then have different ones.
	Mixed bool

	// Refusals: the rights to delete are taken away now and then. A release whose delete
	// is refused has its error; it counts as one whose outcome was not waited for.
	Refusals bool

	// ACL is of all that is created; by default anybody may do anything.
	ACL []zk.ACL
	// Guarded makes each write of an exclusive holder a transaction that checks the hold.
	Guarded bool

	// Looks is how often an owner looks, a millisecond apart, whether its ctx tells of a
	// loss: default once, by when, in virtual time, all has run that could. In real time
	// others may be the first for long.
	Looks int

	Clock    func() time.Duration // default: the time since New
	Register Register             // default: a new one in memory
	// Tell passes each event on, in the order of the history, to a judge in another
	// process. What the event begins does not begin before the channel that it returns is
	// closed. It must not block. May be nil.
	Tell func(Event) (taken <-chan struct{})
	// Pace is what passes before the library's calls to ZooKeeper are made, and before
	// their ends are seen. May be nil.
	Pace func(worker int, call, path string) time.Duration
	// Late returns how late the events of watches are that reach a worker, by the path.
	// If it, or what it returns, is nil, they are not late, and the worker's connection
	// stands in for its Client ([zkconn.StandIn]).
	Late    func(worker int) func(path string) time.Duration
	Verbose bool // the history has the library's own events, as notes
	// What else Finish waits for to be gone before it closes the clients; may be nil. It
	// does so for up to LeftFor, if its ctx ends before that.
	Left    func() []string
	LeftFor time.Duration
	// Stuck tells more of a run that does not end, before everything is closed; may be
	// nil.
	Stuck func() string
}

// A World is a workload and the record of what came of it.
type World struct {
	Config
	Recorder *Recorder

	workers  []*worker
	prepared atomic.Bool // what is besides the locks is there
	owners   sync.WaitGroup
	stopping chan struct{} // closed by Finish: no owner begins anything new
	ctx      context.Context
	abort    context.CancelFunc // ends everything at once
}

// New returns a World in which nothing happens before Start.
func New(c Config) (*World, error) {
	if c.Dial == nil || c.Session <= 0 {
		return nil, errors.New("simulator: New: Dial and Session are needed")
	}
	c.Workers, c.Owners = cmp.Or(c.Workers, 3), cmp.Or(c.Owners, 2)
	c.Removals, c.Closes = cmp.Or(c.Removals, 3), cmp.Or(c.Closes, 3)
	c.Fresh = cmp.Or(c.Fresh, 15)
	if len(c.Locks) == 0 {
		c.Locks = DefaultLocks(c.Root)
	}
	c.Locks = slices.Concat(c.Locks, c.Held)
	if c.Register == nil {
		c.Register = NewRegister()
	}
	if len(c.ACL) == 0 {
		c.ACL = zk.WorldACL(zk.PermAll)
	}
	w := &World{Config: c, Recorder: NewRecorder(c.Clock), stopping: make(chan struct{})}
	w.Recorder.tell = c.Tell
	w.ctx, w.abort = context.WithCancel(context.Background())
	for i := range c.Workers {
		w.workers = append(w.workers, newWorker(w, c.First+i))
	}
	return w, nil
}

// Start lets all owners begin.
func (w *World) Start() {
	for _, worker := range w.workers {
		for n := range w.Owners {
			w.owners.Go(func() { newOwner(worker, n).run() })
		}
		if w.Trespass {
			w.owners.Go(func() { newOwner(worker, w.Owners).trespassAlways() })
		}
		for i := range w.Held {
			w.owners.Go(func() {
				newOwner(worker, w.Owners+1+i).holdAlways(len(w.Locks) - len(w.Held) + i)
			})
		}
	}
}

// Pause stops a worker's owners before their next step, as if the process was stopped,
// until Resume.
func (w *World) Pause(worker int) {
	w.Recorder.Record(Event{Kind: Paused, ID: ID{Worker: worker}})
	w.worker(worker).gate.shut()
}

// Resume lets a worker that was paused go on. Others are not affected.
func (w *World) Resume(worker int) {
	if p := w.worker(worker); p.gate.isShut() {
		w.Recorder.Record(Event{Kind: Resumed, ID: ID{Worker: worker}})
		p.gate.open()
	}
}

func (w *World) worker(n int) *worker { return w.workers[n-w.First] }

// Expire takes note that a session is about to be ended by force.
func (w *World) Expire(session int64) {
	w.Recorder.Record(Event{Kind: Expired, Session: session})
}

// Calm takes note that all faults have ended, and that nobody can miss anything any more
// because of them.
func (w *World) Calm() { w.Recorder.Record(Event{Kind: Calm}) }

// SessionID returns the id of a worker's present session, 0 where it has none.
func (w *World) SessionID(worker int) int64 {
	if s := w.worker(worker).current(); s != nil {
		return s.client.SessionID()
	}
	return 0
}

// History returns what was recorded so far.
func (w *World) History() History { return w.Recorder.History() }

// Limits returns the limits that this world's history is to be checked against; the
// caller adds what its faults need.
func (w *World) Limits() Limits {
	l := Limits{Leases: map[string]int{}, Passes: mostPasses}
	for _, lock := range w.Locks {
		if lock.Recipe == Semaphore {
			l.Leases[lock.Paths[0]] = lock.Leases
		}
	}
	return l
}

// Finish ends the run, in the time that ctx gives, after the faults have ended. All
// owners come to the end of what they do; then each worker must get each lock once more;
// then no znode may be left of any lock. At last everything is closed, also where it
// fails. Of what took too long the error shows who waits for what.
func (w *World) Finish(ctx context.Context) error {
	close(w.stopping)
	err := w.await(ctx, "the owners do not come to an end", &w.owners)
	if err == nil {
		w.Recorder.Notef("all owners have ended; now everybody gets every lock again")
		err = w.acquireAll(ctx)
	}
	if err == nil {
		err = w.awaitNothingLeft(ctx)
	}
	w.end()
	w.owners.Wait()
	w.Recorder.Close()
	if err != nil {
		return fmt.Errorf(
			"seed %d: %w\n%s", w.Seed, err, w.History().Tail("", w.Recorder.clock()),
		)
	}
	return nil
}

// acquireAll lets each worker get each lock, all at the same time.
func (w *World) acquireAll(ctx context.Context) error {
	var all sync.WaitGroup
	failures := make(chan error, len(w.workers)*len(w.Locks))
	for _, worker := range w.workers {
		all.Go(func() {
			o := newOwner(worker, w.Owners)
			for i, lock := range w.Locks {
				s := step{number: i, lock: i, leases: max(lock.Leases, 1), writes: 1}
				if held := o.do(s); !held {
					failures <- fmt.Errorf(
						"worker %d did not get the %v after the faults", worker.n, lock,
					)
				}
			}
		})
	}
	const failed = "not everybody gets every lock after the faults"
	if err := w.await(ctx, failed, &all); err != nil {
		return err
	}
	close(failures)
	return <-failures
}

// await waits for a group until ctx is done. Then it ends everything.
func (w *World) await(ctx context.Context, what string, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	err := fmt.Errorf(
		"%s: %w\n%s\n%s", what, context.Cause(ctx), w.History().Pending(), w.stuck(),
	)
	w.end()
	<-done
	return err
}

func (w *World) stuck() string {
	if w.Stuck == nil {
		return ""
	}
	return w.Stuck()
}

// end ends everything at once.
func (w *World) end() {
	w.Recorder.Record(Event{Kind: Over})
	w.abort()
	for _, worker := range w.workers {
		worker.close()
	}
}

// awaitNothingLeft looks whether a znode is left of a lock. What is deleted in the
// background may take a moment.
func (w *World) awaitNothingLeft(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < w.LeftFor {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), w.LeftFor)
		defer cancel()
	}
	for {
		left, err := w.listLeft(ctx)
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(w.Session / 20):
		case <-ctx.Done():
			return fmt.Errorf(
				"left after all was released: %v (%w)\n%s", left,
				errors.Join(err, context.Cause(ctx)), w.stuck(),
			)
		}
	}
}

func (w *World) listLeft(ctx context.Context) (left []string, err error) {
	s := w.workers[0].open(ctx)
	if s == nil {
		return nil, errors.New("simulator: cannot connect")
	}
	for _, lock := range w.Locks {
		for _, dir := range lock.directories() {
			children, _, err := s.gated.Children(dir)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				return left, fmt.Errorf("list %s: %w", dir, err)
			}
			for _, child := range children {
				left = append(left, dir+"/"+child)
			}
		}
	}
	if w.Left != nil {
		left = append(left, w.Left()...)
	}
	return left, nil
}

// Pending tells, line by line, which acquisitions are under way at the end of a history,
// and who holds what.
func (h History) Pending() string {
	open := map[ID]Event{}
	for _, e := range h {
		switch e.Kind {
		case Called, Granted, Lost, Releasing:
			open[e.ID] = e
		case Failed, Released:
			delete(open, e.ID)
		}
	}
	var lines []string
	for _, e := range open {
		lines = append(lines, e.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
