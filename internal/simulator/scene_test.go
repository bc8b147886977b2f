package simulator_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/zktest"
)

// A scene is what makes the ensembles, the clients and the locks of seeds differ.
type scene struct {
	traced bool // see ofTrace
	// It tells how long a follower may be cut off from its leader.
	tick                  time.Duration
	slowClose, slowCommit time.Duration
	locks                 []simulator.Lock // a few, so that there is contention for them

	workers int
	owners  int           // in each worker
	lasts   time.Duration // for how long there are faults

	// What is more than usual. Some of it goes together.
	// sessions are below two ticks, and clients are told the tick
	short bool
	eager bool             // servers refuse by themselves, and owners ask for it
	bare  [simWorkers]bool // which workers know no session timeout: see of
	// All contend for a semaphore mutex, many through one value.
	shared bool

	election bool // all contend to be elected

	meddled bool // answers to creates are lost, and znodes are deleted by others

	longHolds bool
	removals  int // and fresh and cached: see simulator.Config
	fresh     int
	cached    int
	crowded   bool // many in each process share the place for one lock
	apart     bool // servers are cut off more often
	bounded   bool // see simulator.Config
	reaped    bool // a directory goes as soon as nobody stands in it

	// Drawn by unusual, on top of the above.
	late    [simWorkers]bool // whose events come late: see of
	lateBy  time.Duration    // at most
	mixed   bool             // see simulator.Config
	hard    bool             // half of the faults are hardFaults
	atATime int              // how many sequences of faults there are
	// No fault but the end of a holder's session: a holder must learn of that within
	// toldInCalm.
	calm bool

	// Drawn by slowly, on top of that. Half of the faults are slowFaults.
	slow bool

	// Drawn by keeper, on top of that. The servers are ClickHouse Keeper's.
	keeper  bool
	unknown []zktest.Op // to them

	// Drawn by deny, on top of that: the rights to delete are taken away now and then.
	denied bool
}

func newScene(seed uint64) scene {
	random := rand.New(rand.NewPCG(seed, 0))
	s := scene{workers: simWorkers, owners: simOwners, lasts: simFaults}
	s.tick = simSession / ticks[random.IntN(len(ticks))]
	if random.IntN(3) > 0 {
		s.slowClose = draw(random, simSession/2)
	}
	if random.IntN(3) > 0 {
		s.slowCommit = draw(random, simSession/20)
	}
	elections, locks := split(
		simulator.DefaultLocks("/locks"), simulator.Lock.IsElection,
	)
	random.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
	s.locks = locks[:1+random.IntN(3)]
	s.longHolds = random.IntN(4) == 0
	switch random.IntN(8) {
	case 0:
		s.short, s.tick = true, simSession*6/5
	case 1:
		s.eager, s.tick = true, simSession/2
	case 2:
		for n := range s.bare {
			s.bare[n] = random.IntN(2) == 0
		}
	case 3:
		s.shared, s.owners, s.longHolds = true, 2*simOwners, true
		s.locks = locks[slices.IndexFunc(locks, isSemaphoreMutex):][:1]
	case 4:
		s.meddled, s.removals, s.fresh = true, 15, 60
	case 5:
		s.election, s.longHolds = true, false
		s.locks = [][]simulator.Lock{
			elections, elections[:1], elections[1:],
		}[random.IntN(3)]
	}
	// Two holders are two for a moment only: nothing may make up for it.
	if s.short || s.eager {
		s.apart, s.longHolds, s.locks = true, true, locks[:1]
		s.slowClose, s.slowCommit = 0, 0
	}
	s.eager = s.eager || random.IntN(8) == 0
	s.cached = []int{0, 50, 90}[random.IntN(3)]
	special := s.short || s.eager || s.shared || s.election
	if s.cached == 90 && !special && random.IntN(2) == 0 {
		at := slices.IndexFunc(locks, func(l simulator.Lock) bool {
			return l.Recipe == simulator.Mutex || l.Recipe == simulator.ReadWriteLock
		})
		s.crowded, s.owners = true, 2*simOwners
		s.longHolds, s.locks = false, locks[at:][:1]
	}
	s.bounded = !s.short && !s.isBare() && random.IntN(3) == 0
	s.reaped = random.IntN(3) == 0
	if s.reaped && s.bounded { // to make one takes three commits: a hold may end first
		s.slowCommit = 0
	}
	if s.reaped && !special && s.cached == 0 { // so that nobody is there now and then
		s.owners, s.longHolds = 1, false
	}
	s.unusual(rand.New(rand.NewPCG(seed, 1)), locks, special)
	s.drawKeeper(rand.New(rand.NewPCG(seed, 2)))
	s.slowly(rand.New(rand.NewPCG(seed, 3)))
	s.deny(rand.New(rand.NewPCG(seed, 4)))
	return s
}

// deny has one seed in six take rights away, or all with SIM_DENIED.
func (s *scene) deny(random *rand.Rand) {
	s.denied = random.IntN(6) == 0 || os.Getenv("SIM_DENIED") != ""
	if s.eager || s.calm || s.short || s.traced {
		s.denied = false // what is refused there must be another's doing
	}
}

// drawKeeper has some seeds run on Keepers, or all with SIM_KEEPER. A bare connection
// asks an old one to set its watches again, and is hung up on, without end.
func (s *scene) drawKeeper(random *rand.Rand) {
	s.keeper = random.IntN(8) == 0 || os.Getenv("SIM_KEEPER") != ""
	if s.keeper && !s.isBare() && random.IntN(2) == 0 {
		s.unknown = []zktest.Op{zktest.OpSetWatches, zktest.OpCreateContainer}
	}
}

// slowly has some seeds play slow answers, or all with SIM_SLOW, but for those in which
// two holders would be two for a moment only, or a hold may end before it is known.
func (s *scene) slowly(random *rand.Rand) {
	s.slow = (random.IntN(6) == 0 || os.Getenv("SIM_SLOW") != "") &&
		!s.short && !s.eager && !s.bounded && !s.calm
}

// of tells whether something is so of a worker. Of more than simWorkers, each one is like
// one of the first.
func of(what [simWorkers]bool, worker int) bool { return what[worker%simWorkers] }

// isBare tells whether some workers know no session timeout.
func (s *scene) isBare() bool { return slices.Contains(s.bare[:], true) }

// unusual adds what only some seeds have.
func (s *scene) unusual(random *rand.Rand, locks []simulator.Lock, special bool) {
	if random.IntN(3) == 0 {
		for n := range s.late {
			s.late[n] = random.IntN(3) > 0
		}
		s.lateBy = []time.Duration{
			simSession / 200, simSession / 20, simSession / 4,
		}[random.IntN(3)]
		if !special && random.IntN(2) == 0 { // the event that matters most
			s.reaped, s.cached, s.owners, s.longHolds = true, 0, 1, false
			s.slowCommit = 0
		}
	}
	s.mixed = s.bounded && random.IntN(2) == 0
	s.hard = random.IntN(4) == 0
	s.atATime = []int{1, 2, 2, 2, 4}[random.IntN(5)]
	if s.apart { // several at a time would cost the quorum
		s.atATime = 1
	}
	if !special && random.IntN(12) == 0 {
		s.cached, s.owners, s.longHolds = 90, 3*simOwners, false
		s.removals, s.fresh = random.IntN(10), 30
		s.locks = slices.DeleteFunc(slices.Clone(locks), func(l simulator.Lock) bool {
			return l.Recipe != simulator.Mutex && l.Recipe != simulator.ReadWriteLock &&
				l.Recipe != simulator.MultiLock
		})[:1+random.IntN(2)]
	}
	if !special && random.IntN(16) == 0 {
		s.calm, s.removals, s.fresh = true, 20, 40
		s.slowClose, s.slowCommit, s.late = 0, 0, [simWorkers]bool{}
	}
}

// told is what a holder may need to learn that its session was ended by force, or its
// znode deleted. By the end of a session its clock has run out, at the latest. But if
// events come late, the library sees no more of a bare connection than its methods: where
// a server has refused to set a watch again, it is the holder's poll that tells.
func (s *scene) told() time.Duration {
	switch {
	case s.calm:
		return toldInCalm
	case s.isBare() && slices.Contains(s.late[:], true):
		return time.Minute + simSession
	}
	return simSession
}

// toldInCalm is longer than what a holder needs that has no watch on its znode yet. That
// is set 20 ms after the grant: its read is answered in the next session. Before that
// there are the event, the handshake that tells of the end, and that of the new session.
const toldInCalm = 60 * time.Millisecond

// split parts those that are from those that are not.
func split(
	all []simulator.Lock, is func(simulator.Lock) bool,
) (yes, no []simulator.Lock) {
	for _, l := range all {
		if is(l) {
			yes = append(yes, l)
		} else {
			no = append(no, l)
		}
	}
	return yes, no
}

// ticks are how many ticks there are in a session.
var ticks = []time.Duration{20, 8, 4, 2}

func isSemaphoreMutex(l simulator.Lock) bool {
	return l.Recipe == simulator.SemaphoreMutex
}

func (s scene) String() string {
	var all []string
	for what, is := range map[string]bool{
		"sessions below two ticks": s.short, "eager refusals": s.eager,
		"bare connections":   s.isBare(),
		"one value for many": s.shared,
		"meddled with":       s.meddled,
		"elections":          s.election,
		"places are kept":    s.cached > 0,
		"crowded":            s.crowded,
		"bounded holds":      s.bounded,
		"directories go":     s.reaped,
		"late events":        slices.Contains(s.late[:], true),
		"mixed bounds":       s.mixed,
		"hard faults":        s.hard,
		"slow answers":       s.slow,
		"many faults":        s.atATime > 2,
		"calm":               s.calm,
		"Keeper":             s.keeper,
		"rights are taken":   s.denied,
		"an old version":     len(s.unknown) > 0,
	} {
		if is {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(all, ", "), "plain")
}

// ensemble is what the servers are started with.
func (s scene) ensemble(seed uint64) []zktest.Option {
	opts := []zktest.Option{
		zktest.WithSeed(seed), zktest.WithServers(simServers),
		zktest.WithTick(s.tick), zktest.WithSlowClose(s.slowClose),
		zktest.WithSlowCommit(s.slowCommit), zktest.WithShuffle(),
	}
	if s.short || s.keeper {
		opts = append(opts, zktest.WithMinSessionTimeout(simSession))
	}
	if s.keeper {
		opts = append(opts, zktest.WithKeeper(s.unknown...))
	}
	if s.eager {
		opts = append(opts, zktest.WithEagerACLCheck())
	}
	if s.reaped {
		opts = append(opts, zktest.WithContainerCheck(time.Millisecond))
	}
	return opts
}

// client is what the workers' clients are told of the servers.
func (s scene) client() []recipes.ClientOption {
	if !s.short {
		return nil
	}
	return []recipes.ClientOption{recipes.WithClientServerTick(s.tick)}
}
