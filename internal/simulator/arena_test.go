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
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	virtualWorkers = 3
	virtualOwners  = 2
	virtualServers = 3
	virtualSession = 4 * time.Second
	// What every packet takes, and what every call of the library takes before it is made. In steps of a nanosecond hardly two
	// things happen at the same time, so that the order of events does not depend on which goroutine is scheduled first.
	leastLatency, mostLatency = 100 * time.Microsecond, 3 * time.Millisecond
	mostPace                  = 200 * time.Microsecond
	// virtualEnd bounds the time that it takes after the faults until everybody has had every lock once more.
	virtualEnd = 15 * virtualSession
)

// A virtual is one simulated ensemble with the workload on it, in a bubble with a time of its own.
type virtual struct {
	seed    uint64
	scene   scene
	cluster *zktest.Cluster
	world   *simulator.World
	dials   [virtualWorkers]uint64 // how often each worker has connected; a worker does so once at a time

	mu     sync.Mutex             // guards what follows
	homes  [virtualWorkers]string // the address that each worker's client has dialled last
	doomed [virtualWorkers]bool   // whose session ends when the client dials again
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
	r := run{seed: seed}
	var v *virtual
	r.err = inBubble(t, func(t *testing.T) (err error) {
		if !raceDetector { // with it bubbles run beside each other
			cryptotest.SetGlobalRandom(t, seed)
		}
		if v, err = newVirtual(seed, verbose); err != nil {
			return err
		}
		return v.run()
	})
	if v != nil {
		r.history = v.world.History()
	}
	if r.err == nil {
		limits := v.world.Limits()
		limits.Told = virtualSession // by then its clock has run out, at the latest
		r.err = r.history.Check(limits)
	}
	return r
}

// inBubble runs f in a bubble, and returns its error. A goroutine that is left, or a deadlock, is an error too.
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

// newVirtual makes what the seed says.
func newVirtual(seed uint64, verbose bool) (v *virtual, err error) {
	v = &virtual{seed: seed, scene: newScene(seed)}
	if v.cluster, err = zktest.New(v.scene.ensemble(seed)...); err != nil {
		return nil, err
	}
	for n := range virtualWorkers {
		v.link(n).Delay(leastLatency, mostLatency)
	}
	v.world, err = simulator.New(simulator.Config{
		Dial: v.dial, Seed: seed, Session: virtualSession, Workers: virtualWorkers, Owners: v.scene.owners,
		Locks: v.scene.locks, Trespass: v.scene.eager, LongHolds: v.scene.longHolds,
		Removals: v.scene.removals, Fresh: v.scene.fresh,
		Verbose: verbose, Left: v.left, Pace: v.pace,
	})
	if err == nil {
		v.world.Recorder.Notef("scene: %v, tick %v", v.scene, v.scene.tick)
	}
	return v, err
}

func (v *virtual) link(worker int) *zktest.Link { return v.cluster.Link(fmt.Sprint("worker ", worker)) }

func (v *virtual) dial(ctx context.Context, worker int) (simulator.Client, error) {
	v.dials[worker]++
	random := rand.New(rand.NewPCG(v.seed, v.dials[worker]<<8|uint64(worker)))
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		v.mu.Lock()
		doomed := v.doomed[worker]
		v.homes[worker], v.doomed[worker] = address, false
		v.mu.Unlock()
		if doomed {
			v.endSession(worker)
		}
		return v.link(worker).Dial(network, address, timeout)
	}
	hosts := &shuffledHosts{random: random}
	if v.scene.bare[worker] {
		return openBare(ctx, v.cluster.Names(), dial, hosts)
	}
	return recipes.Connect(ctx, strings.Join(v.cluster.Names(), ","), virtualSession,
		append(v.scene.client(), recipes.WithDialer(dial), recipes.WithHostProvider(hosts))...)
}

// home returns the server that a worker is connected to.
func (v *virtual) home(worker int) *zktest.Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.cluster.Servers() {
		if s.Addr() == v.homes[worker] {
			return s
		}
	}
	return v.cluster.Server(0)
}

// pace makes several calls that are made, or end, at the same moment come one after the other, in an order that does not depend on how
// their goroutines are scheduled.
func (v *virtual) pace(worker int, call, path string) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, v.seed, worker, call, path, time.Now().UnixNano()) // a hash takes everything
	return time.Duration(h.Sum64() % uint64(mostPace))
}

// left tells of the watches that nobody needs any more once all is released.
func (v *virtual) left() []string {
	if n := v.cluster.Watches(); n > 0 {
		return []string{fmt.Sprintf("%d watches", n)}
	}
	return nil
}

// run lets the nemesis do its work, heals, and waits for the end.
func (v *virtual) run() error {
	defer v.cluster.Close()
	v.world.Start()
	v.plague()
	v.heal()
	ctx, cancel := context.WithTimeout(context.Background(), virtualEnd)
	defer cancel()
	znodes := context.AfterFunc(ctx, func() { v.world.Recorder.Notef("znodes: %v", v.cluster.Znodes()) })
	defer znodes()
	if err := v.world.Finish(ctx); err != nil {
		return err
	}
	return v.awaitNoSession(ctx)
}

// awaitNoSession waits for the end of all sessions. Of a client that was closed in an outage it comes by the timeout.
func (v *virtual) awaitNoSession(ctx context.Context) error {
	for len(v.cluster.Sessions()) > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("sessions are left: %x", v.cluster.Sessions())
		}
		time.Sleep(virtualSession / 4)
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
	h.random.Shuffle(len(h.servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
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
