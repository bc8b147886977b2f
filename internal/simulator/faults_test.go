package simulator_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/zktest"
)

// A fault is one of the simulated ensemble: it begins, and the function that it returns
// ends it.
type fault struct {
	name  string
	begin func(sim *simulation, random *rand.Rand) (end func())
}

var faults = []fault{
	{"end a session", (*simulation).expire},
	{"cut a link", (*simulation).cut},
	{"stall a link", (*simulation).stall},
	{"slow down a link", (*simulation).slowDown},
	{"reset a link", (*simulation).reset},
	{"lose a request", (*simulation).loseRequest},
	{"lose a reply", (*simulation).loseReply},
	{"throttle a request", (*simulation).throttle},
	loseACreate,
	{"lose the reply to a create, and the session", (*simulation).loseReplyAndSession},
	{"stop a process", (*simulation).freezeWorker},
	{"stop a process", (*simulation).freezeWorker},
	{"kill a server", (*simulation).killServer},
	{"freeze a server", (*simulation).freezeServer},
	{"isolate a server", (*simulation).isolateServer},
	{"isolate a server", (*simulation).isolateServer},
	{"let a server lag", (*simulation).lagServer},
	{"kill the leader", (*simulation).killLeader},
	{"freeze the leader", (*simulation).freezeLeader},
	{"isolate the leader", (*simulation).isolateLeader},
	{"kill a server and cut off its client", (*simulation).failTogether},
}

// loseACreate leaves a znode behind of which the one who made it does not know.
var loseACreate = fault{
	"lose the reply to a create, and the other servers lag",
	(*simulation).loseReplyAndLag,
}

// endAHold has owners of one process follow each other, of whom the first may not know
// it.
var endAHold = fault{"end a holder's session", func(
	sim *simulation, random *rand.Rand,
) (end func()) {
	sim.endSession(sim.aHolder(random))
	return nothing
}}

// partitions are those that keep what a follower has heard from its leader.
var partitions = []fault{
	{"isolate a holder's server", func(sim *simulation, random *rand.Rand) (end func()) {
		return isolate(sim.home(sim.aHolder(random)))
	}},
	{"freeze a holder's server", func(sim *simulation, random *rand.Rand) (end func()) {
		return freeze(sim.home(sim.aHolder(random)))
	}},
	{"kill a holder's server and cut it off", func(
		sim *simulation, random *rand.Rand,
	) (end func()) {
		return sim.failBoth(sim.aHolder(random))
	}},
}

// hardFaults are what no single server does.
var hardFaults = []fault{
	{"let all servers lag", (*simulation).lagAll},
	{"refuse to set watches again", (*simulation).refuseWatches},
	{"reset a link again and again", (*simulation).resetOften},
}

// slowFaults are no faults to a plain client: each request is answered.
var slowFaults = []fault{
	{"answer slowly", (*simulation).answerSlowly},
	{"commit slowly", (*simulation).commitSlowly},
}

// denyDeletes takes the right to delete away from everybody, in one of the directories.
var denyDeletes = fault{"deny deletes", (*simulation).denyDeletes}

// calmFaults end the sessions of holders, now and then.
var calmFaults = []fault{endAHold, nothingAtAll, nothingAtAll}

var nothingAtAll = fault{"nothing", func(*simulation, *rand.Rand) (end func()) {
	return nothing
}}

// drawFault draws a fault, and how long it lasts.
func (sim *simulation) drawFault(random *rand.Rand) (f fault, last time.Duration) {
	from := faults
	switch {
	case sim.scene.calm:
		from = calmFaults
	case sim.scene.hard && random.IntN(2) == 0:
		from = hardFaults
	case sim.scene.slow && random.IntN(2) == 0:
		from = slowFaults
	}
	f = from[random.IntN(len(from))]
	last = draw(random, []time.Duration{
		simSession / 20, simSession / 2, simSession, 3 * simSession,
	}[random.IntN(4)])
	switch {
	case sim.scene.calm:
	case sim.scene.shared && random.IntN(2) > 0:
		f, last = endAHold, simSession/20
	case sim.scene.meddled && random.IntN(2) > 0:
		f = loseACreate
	case sim.scene.denied && random.IntN(2) > 0:
		f = denyDeletes
	case sim.scene.apart && random.IntN(4) > 0:
		f = partitions[random.IntN(len(partitions))]
		last = simSession*3/4 + draw(random, simSession/2)
		// Right before a report, most of what the follower knows is lost.
		time.Sleep(time.Until(sim.cluster.NextPing()) - draw(
			random, sim.scene.tick/10,
		))
	}
	return f, last
}

// injectFaults makes faults, one after the other in each of several sequences, as the
// seed tells.
func (sim *simulation) injectFaults() {
	var sequences sync.WaitGroup
	for n := range sim.scene.atATime {
		random := rand.New(rand.NewPCG(sim.seed, uint64(1000+n)))
		sequences.Go(func() {
			for ends := time.Now().Add(sim.scene.lasts); time.Now().Before(ends); {
				time.Sleep(draw(random, simSession/2))
				f, last := sim.drawFault(random)
				sim.world.Recorder.Notef("fault: %s for %v", f.name, last)
				end := f.begin(sim, random)
				time.Sleep(last)
				end()
				sim.world.Recorder.Notef("fault ends: %s", f.name)
			}
		})
	}
	sequences.Wait()
}

// heal ends all faults, also those that several have made to the same thing.
func (sim *simulation) heal() {
	for n := range sim.scene.workers {
		l := sim.link(n)
		l.Heal()
		l.Thaw()
		l.Spare()
		l.Delay(leastLatency, mostLatency)
		sim.world.Resume(n)
	}
	for _, s := range sim.cluster.Servers() {
		s.Lag(0)
		s.Start()
		s.Thaw()
		s.Rejoin()
	}
	sim.cluster.SlowCommit(sim.scene.slowCommit)
	sim.landlord.leave()
	if sim.scene.denied { // what was refused is tried again at once
		for n := range sim.scene.workers {
			sim.link(n).Reset()
		}
	}
	sim.world.Recorder.Notef("all is healed")
}

func draw(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

func nothing() {}

func (sim *simulation) aLink(random *rand.Rand) *zktest.Link {
	return sim.link(random.IntN(sim.scene.workers))
}

// aHolder is a worker that holds something, or any where nobody does.
func (sim *simulation) aHolder(random *rand.Rand) int {
	anybody, holders := random.IntN(sim.scene.workers), sim.world.Recorder.Holders()
	if len(holders) == 0 {
		return anybody
	}
	return holders[random.IntN(len(holders))]
}

func (sim *simulation) expire(random *rand.Rand) (end func()) {
	sim.endSession(random.IntN(sim.scene.workers))
	return nothing
}

// endSession ends a worker's session by force. Without a leader nobody can.
func (sim *simulation) endSession(worker int) {
	if id := sim.world.SessionID(worker); id != 0 && sim.cluster.Leader() != nil {
		sim.world.Expire(id)
		sim.cluster.ExpireSession(id)
	}
}

func (sim *simulation) cut(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	l.Cut()
	return l.Heal
}

func (sim *simulation) stall(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	l.Stall(
		[]zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both}[random.IntN(3)],
	)
	return l.Heal
}

func (sim *simulation) slowDown(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	l.Delay(leastLatency, draw(random, simSession/2))
	return func() { l.Delay(leastLatency, mostLatency) }
}

// answerSlowly has each answer take as long, up to what a hold survives.
func (sim *simulation) answerSlowly(random *rand.Rand) (end func()) {
	l, way := sim.aLink(random), draw(random, simSession/7)
	l.Delay(way, way)
	return func() { l.Delay(leastLatency, mostLatency) }
}

func (sim *simulation) commitSlowly(random *rand.Rand) (end func()) {
	sim.cluster.SlowCommit(draw(random, simSession/3))
	return func() { sim.cluster.SlowCommit(sim.scene.slowCommit) }
}

func (sim *simulation) reset(random *rand.Rand) (end func()) {
	sim.aLink(random).Reset()
	return nothing
}

// losable are the requests that the recipes make.
var losable = []zktest.Op{
	zktest.OpCreate, zktest.OpCreate, zktest.OpCreate, zktest.OpDelete, zktest.OpDelete,
	zktest.OpCreateContainer, zktest.OpGet,
	zktest.OpChildren, zktest.OpSync, zktest.Any,
}

func (sim *simulation) loseRequest(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	l.LoseRequest(losable[random.IntN(len(losable))])
	return l.Spare
}

func (sim *simulation) loseReply(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	l.LoseReply(losable[random.IntN(len(losable))])
	return l.Spare
}

func (sim *simulation) throttle(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	l.Throttle(losable[random.IntN(len(losable))])
	return l.Spare
}

// loseReplyAndLag lets a create take effect that the client does not hear of, and come
// back to a server that does not know of it yet.
func (sim *simulation) loseReplyAndLag(random *rand.Rand) (end func()) {
	n := random.IntN(sim.scene.workers)
	lag := draw(random, simSession/2)
	for _, s := range sim.cluster.Servers() {
		if s != sim.home(n) {
			s.Lag(lag)
		}
	}
	sim.link(n).LoseReply(zktest.OpCreate)
	return func() {
		sim.link(n).Spare()
		for _, s := range sim.cluster.Servers() {
			s.Lag(0)
		}
	}
}

// loseReplyAndSession lets a create take effect that the client does not hear of, and end
// its session before it is back, the znodes a little later.
func (sim *simulation) loseReplyAndSession(random *rand.Rand) (end func()) {
	n := random.IntN(sim.scene.workers)
	sim.doom(n, true)
	sim.link(n).LoseReply(zktest.OpCreate)
	return func() {
		sim.link(n).Spare()
		sim.doom(n, false)
	}
}

func (sim *simulation) doom(worker int, doomed bool) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.doomed[worker] = doomed
}

// failTogether is the end of a rack: the server cannot tell anybody any more that it has
// heard from its client.
func (sim *simulation) failTogether(random *rand.Rand) (end func()) {
	return sim.failBoth(random.IntN(sim.scene.workers))
}

func (sim *simulation) failBoth(worker int) (end func()) {
	l, s := sim.link(worker), sim.home(worker)
	s.Stop()
	l.Cut()
	return func() {
		s.Start()
		l.Heal()
	}
}

// freezeWorker stops a process: neither its owners nor its connections go on.
func (sim *simulation) freezeWorker(random *rand.Rand) (end func()) {
	n, connectionFirst := random.IntN(sim.scene.workers), random.IntN(2) == 0
	sim.world.Pause(n)
	sim.link(n).Freeze()
	return func() {
		if connectionFirst {
			sim.link(n).Thaw()
		}
		sim.world.Resume(n)
		sim.link(n).Thaw()
	}
}

// aServer is one that matters to somebody.
func (sim *simulation) aServer(random *rand.Rand) *zktest.Server {
	return sim.home(random.IntN(sim.scene.workers))
}

// theLeader is any server while there is no leader.
func (sim *simulation) theLeader(random *rand.Rand) *zktest.Server {
	other := sim.aServer(random)
	if l := sim.cluster.Leader(); l != nil {
		return l
	}
	return other
}

func (sim *simulation) killServer(random *rand.Rand) (end func()) {
	return kill(sim.aServer(random))
}

func (sim *simulation) freezeServer(random *rand.Rand) (end func()) {
	return freeze(sim.aServer(random))
}

func (sim *simulation) isolateServer(random *rand.Rand) (end func()) {
	return isolate(sim.aServer(random))
}

func (sim *simulation) killLeader(random *rand.Rand) (end func()) {
	return kill(sim.theLeader(random))
}

func (sim *simulation) freezeLeader(random *rand.Rand) (end func()) {
	return freeze(sim.theLeader(random))
}

func (sim *simulation) isolateLeader(random *rand.Rand) (end func()) {
	return isolate(sim.theLeader(random))
}

func kill(s *zktest.Server) (end func()) {
	s.Stop()
	return s.Start
}

func freeze(s *zktest.Server) (end func()) {
	s.Freeze()
	return s.Thaw
}

func isolate(s *zktest.Server) (end func()) {
	s.Isolate()
	return s.Rejoin
}

func (sim *simulation) lagServer(random *rand.Rand) (end func()) {
	s := sim.aServer(random)
	s.Lag(draw(random, simSession/2))
	return func() { s.Lag(0) }
}

func (sim *simulation) lagAll(random *rand.Rand) (end func()) {
	for _, s := range sim.cluster.Servers() {
		s.Lag(draw(random, simSession/3))
	}
	return func() {
		for _, s := range sim.cluster.Servers() {
			s.Lag(0)
		}
	}
}

// refuseWatches leaves a client with watches that no server has: it asks once.
func (sim *simulation) refuseWatches(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	l.Throttle(zktest.OpSetWatches)
	l.Reset()
	return l.Spare
}

func (sim *simulation) resetOften(random *rand.Rand) (end func()) {
	l := sim.aLink(random)
	for range 5 {
		l.Reset()
		time.Sleep(draw(random, 50*time.Millisecond))
	}
	return nothing
}
