package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/zkrecipes/recipes"
)

// A patience is how long an owner is willing to wait for a lock.
type patience int

const (
	forEver  patience = iota // Acquire
	once                     // AcquireTimeout of 0
	timeout                  // AcquireTimeout of step.wait
	canceled                 // Acquire, whose ctx is cancelled after step.wait
)

// A step is one thing that an owner does, decided before it begins. Times that are given
// to the step but not used by it keep the draws of one seed alike.
type step struct {
	number int
	think  time.Duration // before it begins

	lock      int  // which of the world's
	fresh     bool // through a value of its own
	shared    bool // of a read/write lock: read
	downgrade bool // of a read/write lock: downgrade from write to read
	upgrade   bool // of a read/write lock: try to upgrade, which is refused
	leases    int  // of a semaphore, from 1

	patience patience
	wait     time.Duration
	cause    error // of a ctx that the workload cancels

	reentries   int
	hold        time.Duration
	writes      int
	lag         time.Duration // what a write takes to reach the store
	ignoreLoss  bool          // goes on although the lock was lost
	closeClient bool          // closes the worker's client while it holds
	ctxDone     bool          // releases with a ctx that is done
	asks        bool          // asks the lock for its hold again at each write
	guarded     bool          // has ZooKeeper look at each write whether it holds
	do          bool          // acquires, holds and releases with Do
	byHold      bool          // acquires with Acquire, and releases by the hold
	asLock      bool          // of a semaphore: takes the leases as a lock

	inspect bool // looks at the queue before
	revoke  bool // asks the head of the queue to give up before
	remove  bool // deletes the znode of somebody in the queue before
	victim  int  // of whom, counted from the head, if there are so many

	cached bool // through a value that keeps its place in the queue

	trespass trespass // what it asks for without a right to it, before and while it holds
}

// A trespass is a request that must be refused.
type trespass int

const (
	none             trespass = iota
	asks                      // for a lock
	asksWithNonsense          // likewise, with an ACL that no server takes
	revokes                   // somebody's hold
)

// dice are the random choices of one step.
type dice struct{ *rand.Rand }

// dice are those of one step.
func (c Config) dice(worker, owner, number int) dice {
	//nolint:gosec // none is negative
	where := uint64(worker)<<48 | uint64(owner)<<32 | uint64(number)
	return dice{rand.New(rand.NewPCG(c.Seed, where))}
}

// mostPasses is how often a worker passes its place on while others wait.
const mostPasses = 4

// keeping draws how a worker's values for a lock keep their place: for a moment, or for
// so long that whoever wants the lock must be given it.
func (c Config) keeping(worker, lock int) recipes.Option {
	d := c.dice(worker, int(^uint16(0)), lock) // no owner has this number
	idle := d.upTo(c.Session / 4)
	if d.percent(50) {
		idle = time.Hour
	}
	return recipes.WithCaching(idle, 1+d.IntN(mostPasses))
}

// trespass is one of the kinds.
func (d dice) trespass() trespass { return asks + trespass(d.IntN(3)) }

// percent is true in so many of a hundred cases.
func (d dice) percent(n int) bool { return d.IntN(100) < n }

// upTo returns a time between 0 and most.
func (d dice) upTo(most time.Duration) time.Duration {
	return time.Duration(d.Int64N(int64(most) + 1))
}

// newStep decides what an owner does next. It depends on nothing but its arguments, so
// that a step is the same whatever became of those before it. Times are measured in the
// session timeout.
func newStep(c Config, worker, owner, number int) step {
	d, t := c.dice(worker, owner, number), c.Session
	s := step{
		number: number,
		think:  d.upTo(t / 4), lock: d.IntN(len(c.Locks) - len(c.Held)),
		fresh:  d.percent(c.Fresh),
		shared: d.percent(60), downgrade: d.percent(40), upgrade: d.percent(10),
		patience: d.patience(), lag: d.lag(t),
		hold: d.holdTime(t, c.LongHolds), writes: d.IntN(4), ignoreLoss: d.percent(20),
		closeClient: d.percent(c.Closes), ctxDone: d.percent(15),
		inspect: d.percent(8), revoke: d.percent(8), remove: d.percent(c.Removals),
		victim: d.IntN(3),
	}
	s.leases = 1 + d.IntN(max(c.Locks[s.lock].Leases, 1))
	s.wait = d.upTo(map[patience]time.Duration{timeout: t, canceled: t / 2}[s.patience])
	if s.patience == timeout && d.percent(50) {
		s.wait /= 20
	}
	if d.percent(20) {
		s.reentries = 1 + d.IntN(2)
	}
	s.asks, s.guarded, s.do = d.percent(50), d.percent(40), d.percent(15)
	if d.percent(40) {
		s.trespass = d.trespass()
	}
	s.cause = causes[d.IntN(len(causes))]
	s.cached = d.percent(c.Cached)
	s.byHold, s.asLock = d.percent(30), d.percent(50)
	return s
}

func (d dice) patience() patience {
	switch n := d.IntN(100); {
	case n < 45:
		return forEver
	case n < 58:
		return once
	case n < 83:
		return timeout
	}
	return canceled
}

// holdTime is mostly short, and now and then longer than a session; if long is wanted it
// mostly is.
func (d dice) holdTime(t time.Duration, long bool) time.Duration {
	n := d.IntN(100)
	if long {
		n += 60
	}
	switch {
	case n < 20:
		return 0
	case n < 75:
		return d.upTo(t / 10)
	case n < 90:
		return d.upTo(t / 2)
	}
	return d.upTo(3 * t)
}

func (d dice) lag(t time.Duration) time.Duration {
	if d.percent(80) {
		return 0
	}
	return d.upTo(t / 4)
}
