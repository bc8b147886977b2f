package simulator_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	simWorkers = 3
	simOwners  = 2
	simServers = 3
	simSession = 4 * time.Second
	// What every packet takes, and what every call of the library takes before it is
	// made. In steps of a nanosecond hardly two things happen at the same time, so that
	// the order of events does not depend on which goroutine is scheduled first.
	leastLatency, mostLatency = 100 * time.Microsecond, 3 * time.Millisecond
	mostPace                  = 200 * time.Microsecond
	// simFaults is for how long there are faults.
	simFaults = 10 * simSession
	// simEnd bounds the time that it takes after the faults until everybody has had every
	// lock once more; for more than simWorkers it is longer in proportion.
	simEnd = 15 * simSession
	// simCalm is for how long there are no faults before the end, where places are kept:
	// whoever waits behind one then must not wait for too long.
	simCalm = 6 * simSession
	// simLeft is longer than the time until an empty directory is reaped, and with it the
	// watches on it: the servers look every minute.
	simLeft = 70 * time.Second
	// simForgets is longer than the library knows a connection that was closed.
	simForgets = time.Minute
)

// A simulation is one simulated ensemble with the workload on it, in a bubble with a time
// of its own.
type simulation struct {
	seed    uint64
	scene   scene
	cluster *zktest.Cluster
	world   *simulator.World
	tracer  *tracer // nil: nothing is traced
	// How often each worker has connected; a worker does so once at a time.
	dials []uint64

	landlord landlord // of a scene that is denied

	mu     sync.Mutex // guards what follows
	homes  []string   // the address that each worker's client has dialled last
	doomed []bool     // whose session ends when the client dials again
}

// A run is what came of a seed.
type run struct {
	seed    uint64
	history simulator.History
	err     error
}

// simulate runs one seed, in a bubble of its own, and asks the checkers.
func simulate(t *testing.T, seed uint64, verbose bool) run {
	t.Helper()
	return simulateIn(t, newScene(seed), seed, verbose)
}

// simulateIn runs one seed in a scene of another's choice.
func simulateIn(t *testing.T, in scene, seed uint64, verbose bool) run {
	t.Helper()
	r := run{seed: seed}
	var sim *simulation
	r.err = inBubble(t, func(t *testing.T) (err error) {
		if !raceDetector { // with it bubbles run beside each other
			seedGlobalRandom(t, seed)
		}
		if sim, err = newSimulation(in, seed, verbose); err != nil {
			return err
		}
		return sim.run()
	})
	if sim != nil {
		r.history = sim.world.History()
	}
	if r.err == nil {
		limits := sim.world.Limits()
		limits.Told = sim.scene.told()
		limits.Notice = simSession / 2
		if in.workers > simWorkers {
			limits.Linearize = -1
		}
		r.err = r.history.Check(limits)
	}
	return r
}

// inBubble runs f in a bubble, and returns its error. A goroutine that is left, or a
// deadlock, is an error too.
func inBubble(t *testing.T, f func(*testing.T) error) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	synctest.Test(t, func(t *testing.T) { err = f(t) })
	return err
}

// newSimulation makes what the seed says.
func newSimulation(
	in scene, seed uint64, verbose bool,
) (sim *simulation, err error) {
	sim = &simulation{
		seed: seed, scene: in, dials: make([]uint64, in.workers),
		homes: make([]string, in.workers), doomed: make([]bool, in.workers),
	}
	options := in.ensemble(seed)
	if in.traced {
		sim.tracer = &tracer{}
		options = append(options, zktest.WithLog(sim.tracer.committed))
	}
	if sim.cluster, err = zktest.New(options...); err != nil {
		return nil, err
	}
	for n := range in.workers {
		sim.link(n).Delay(leastLatency, mostLatency)
	}
	sim.world, err = simulator.New(simulator.Config{
		Dial: sim.dial, Seed: seed, Session: simSession,
		Workers: sim.scene.workers, Owners: sim.scene.owners, Locks: sim.scene.locks,
		Trespass: sim.scene.eager, LongHolds: sim.scene.longHolds,
		Removals: sim.scene.removals, Fresh: sim.scene.fresh,
		Cached: sim.scene.cached, Bounded: sim.scene.bounded, Mixed: sim.scene.mixed,
		Refusals: sim.scene.denied, Verbose: verbose, Left: sim.left, LeftFor: simLeft,
		Pace: sim.pace, Late: sim.late,
	})
	if err == nil && in.traced {
		sim.tracer.rec = sim.world.Recorder
	}
	if err == nil {
		sim.world.Recorder.Notef("scene: %v, tick %v", sim.scene, sim.scene.tick)
	}
	return sim, err
}

func (sim *simulation) link(worker int) *zktest.Link {
	return sim.cluster.Link(fmt.Sprint("worker ", worker))
}

func (sim *simulation) dial(ctx context.Context, worker int) (simulator.Client, error) {
	sim.dials[worker]++
	random := rand.New(rand.NewPCG(sim.seed, sim.dials[worker]<<8|uint64(worker)))
	link := zk.Dialer(sim.link(worker).Dial)
	if sim.tracer != nil {
		link = sim.tracer.tap(worker, sim.scene.kind(worker), link)
	}
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		sim.mu.Lock()
		doomed := sim.doomed[worker]
		sim.homes[worker], sim.doomed[worker] = address, false
		sim.mu.Unlock()
		if doomed {
			sim.endSession(worker)
		}
		return link(network, address, timeout)
	}
	hosts := &shuffledHosts{random: random}
	if of(sim.scene.bare, worker) {
		return openBare(ctx, sim.cluster.Names(), dial, hosts)
	}
	return recipes.Connect(ctx, strings.Join(sim.cluster.Names(), ","), simSession,
		append(
			sim.scene.client(), recipes.WithDialer(dial), recipes.WithHostProvider(hosts),
		)...)
}

// home returns the server that a worker is connected to.
func (sim *simulation) home(worker int) *zktest.Server {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, s := range sim.cluster.Servers() {
		if s.Addr() == sim.homes[worker] {
			return s
		}
	}
	return sim.cluster.Server(0)
}

// pace makes several calls that are made, or end, at the same moment come one after the
// other, in an order that does not depend on how their goroutines are scheduled.
func (sim *simulation) pace(worker int, call, path string) time.Duration {
	return time.Duration(sim.hash(worker, call, path) % uint64(mostPace))
}

// hash draws a number for something that happens just now.
func (sim *simulation) hash(worker int, what, path string) uint64 {
	h := fnv.New64a()
	// A hash takes everything.
	_, _ = fmt.Fprint(h, sim.seed, worker, what, path, time.Now().UnixNano())
	return h.Sum64()
}

// late is how late the events are that reach a worker.
func (sim *simulation) late(worker int) func(path string) time.Duration {
	if !of(sim.scene.late, worker) {
		return nil
	}
	return func(path string) time.Duration {
		return time.Duration(sim.hash(worker, "event", path) % uint64(sim.scene.lateBy))
	}
}

// left tells of the watches that nobody needs any more once all is released. Those on
// directories go with them. On a Keeper these may stay: a client that was hung up on as
// it made a container takes it that there are none.
func (sim *simulation) left() []string {
	if n := sim.cluster.Watches(); n > 0 && !sim.scene.keeper {
		return []string{fmt.Sprintf("%d watches", n)}
	}
	return nil
}

// run lets the nemesis do its work, heals, and waits for the end.
func (sim *simulation) run() error {
	defer sim.cluster.Close()
	if err := sim.openLandlord(); err != nil {
		return err
	}
	sim.world.Start()
	sim.injectFaults()
	sim.heal()
	if sim.scene.cached > 0 {
		time.Sleep(2 * simSession)
		sim.world.Calm()
		time.Sleep(simCalm)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sim.endWithin())
	defer cancel()
	znodes := context.AfterFunc(ctx, func() {
		sim.world.Recorder.Notef("znodes: %v", sim.cluster.Znodes())
	})
	defer znodes()
	if err := sim.world.Finish(ctx); err != nil {
		return err
	}
	err := sim.awaitNoSession(ctx)
	// The library's timers stop with the bubble: each seed would leave a megabyte.
	time.Sleep(simForgets)
	return err
}

// endWithin bounds the end. A bare connection does not tell of a short outage, in which a
// server may have refused to set a watch again: each waiter in a queue may depend on its
// safety poll, which comes within a minute.
func (sim *simulation) endWithin() time.Duration {
	within := simEnd * time.Duration(sim.scene.workers) / simWorkers
	if sim.scene.isBare() {
		within += time.Duration(sim.scene.workers*simOwners) * time.Minute
	}
	return within
}

// awaitNoSession waits for the end of all sessions. Of a client that was closed in an
// outage it comes by the timeout.
func (sim *simulation) awaitNoSession(ctx context.Context) error {
	for len(sim.cluster.Sessions()) > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("sessions are left: %x", sim.cluster.Sessions())
		}
		time.Sleep(simSession / 4)
	}
	return nil
}

// shuffledHosts is a host provider that starts anywhere.
type shuffledHosts struct {
	random  *rand.Rand
	servers []string
	next    int
	tried   int
}

var _ zk.HostProvider = (*shuffledHosts)(nil)

func (h *shuffledHosts) Init(servers []string) error {
	h.servers = append([]string(nil), servers...)
	h.random.Shuffle(len(h.servers), func(i, j int) {
		h.servers[i], h.servers[j] = h.servers[j], h.servers[i]
	})
	return nil
}

func (h *shuffledHosts) Len() int { return len(h.servers) }

func (h *shuffledHosts) Next() (server string, retryStart bool) {
	if h.tried == len(h.servers) {
		h.tried, retryStart = 0, true
	}
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	h.tried++
	return server, retryStart
}

func (h *shuffledHosts) Connected() { h.tried = 1 }
