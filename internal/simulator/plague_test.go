package simulator_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/zktest"
)

const (
	plagueFor = 10 * virtualSession
	atATime   = 2 // faults
)

// A mishap is a fault of the simulated ensemble: it begins, and the function that it returns ends it.
type mishap struct {
	name  string
	begin func(v *virtual, random *rand.Rand) (end func())
}

var mishaps = []mishap{
	{"end a session", (*virtual).expire},
	{"cut a link", (*virtual).cut},
	{"stall a link", (*virtual).stall},
	{"slow down a link", (*virtual).slowDown},
	{"reset a link", (*virtual).reset},
	{"lose a request", (*virtual).loseRequest},
	{"lose a reply", (*virtual).loseReply},
	{"throttle a request", (*virtual).throttle},
	loseACreate,
	{"lose the reply to a create, and the session", (*virtual).loseReplyAndSession},
	{"stop a process", (*virtual).freezeWorker},
	{"stop a process", (*virtual).freezeWorker},
	{"kill a server", (*virtual).killServer},
	{"freeze a server", (*virtual).freezeServer},
	{"isolate a server", (*virtual).isolateServer},
	{"isolate a server", (*virtual).isolateServer},
	{"let a server lag", (*virtual).lagServer},
	{"kill the leader", (*virtual).killLeader},
	{"freeze the leader", (*virtual).freezeLeader},
	{"isolate the leader", (*virtual).isolateLeader},
	{"kill a server and cut off its client", (*virtual).failTogether},
}

// loseACreate leaves a znode behind of which the one who made it does not know.
var loseACreate = mishap{
	"lose the reply to a create, and the other servers lag", (*virtual).loseReplyAndLag,
}

// endAHold has owners of one process follow each other, of whom the first may not know it.
var endAHold = mishap{"end a holder's session", func(v *virtual, random *rand.Rand) (end func()) {
	v.endSession(v.aHolder(random))
	return nothing
}}

// partitions are those that keep what a follower has heard from its leader.
var partitions = []mishap{
	{"isolate a holder's server", func(v *virtual, random *rand.Rand) (end func()) {
		return isolate(v.home(v.aHolder(random)))
	}},
	{"freeze a holder's server", func(v *virtual, random *rand.Rand) (end func()) {
		return freeze(v.home(v.aHolder(random)))
	}},
	{"kill a holder's server and cut it off", func(v *virtual, random *rand.Rand) (end func()) {
		return v.failBoth(v.aHolder(random))
	}},
}

// plague makes faults, one after the other in each of several sequences, as the seed tells.
func (v *virtual) plague() {
	var sequences sync.WaitGroup
	faults := atATime
	if v.scene.apart { // several at a time would cost the quorum, without which nothing is granted
		faults = 1
	}
	for n := range faults {
		random := rand.New(rand.NewPCG(v.seed, uint64(1000+n)))
		sequences.Go(func() {
			for ends := time.Now().Add(plagueFor); time.Now().Before(ends); {
				time.Sleep(draw(random, virtualSession/2))
				m := mishaps[random.IntN(len(mishaps))]
				last := draw(random, []time.Duration{virtualSession / 20, virtualSession / 2, virtualSession, 3 * virtualSession}[random.IntN(4)])
				switch {
				case v.scene.shared && random.IntN(2) > 0:
					m, last = endAHold, virtualSession/20
				case v.scene.meddled && random.IntN(2) > 0:
					m = loseACreate
				case v.scene.apart && random.IntN(4) > 0:
					m = partitions[random.IntN(len(partitions))]
					last = virtualSession*3/4 + draw(random, virtualSession/2)
					// Right before a report, most of what the follower knows is lost.
					time.Sleep(time.Until(v.cluster.NextPing()) - draw(random, v.scene.tick/10))
				}
				v.world.Recorder.Notef("fault: %s for %v", m.name, last)
				end := m.begin(v, random)
				time.Sleep(last)
				end()
				v.world.Recorder.Notef("fault ends: %s", m.name)
			}
		})
	}
	sequences.Wait()
}

// heal ends all faults, also those that several have made to the same thing.
func (v *virtual) heal() {
	for n := range virtualWorkers {
		l := v.link(n)
		l.Heal()
		l.Thaw()
		l.Spare()
		l.Delay(leastLatency, mostLatency)
		v.world.Resume(n)
	}
	for _, s := range v.cluster.Servers() {
		s.Lag(0)
		s.Start()
		s.Thaw()
		s.Rejoin()
	}
	v.world.Recorder.Notef("all is healed")
}

func draw(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

func nothing() {}

func (v *virtual) aLink(random *rand.Rand) *zktest.Link { return v.link(random.IntN(virtualWorkers)) }

// aHolder is a worker that holds something, or any where nobody does.
func (v *virtual) aHolder(random *rand.Rand) int {
	anybody, holders := random.IntN(virtualWorkers), v.world.Recorder.Holders()
	if len(holders) == 0 {
		return anybody
	}
	return holders[random.IntN(len(holders))]
}

func (v *virtual) expire(random *rand.Rand) (end func()) {
	v.endSession(random.IntN(virtualWorkers))
	return nothing
}

// endSession ends a worker's session by force. Without a leader nobody can.
func (v *virtual) endSession(worker int) {
	if id := v.world.SessionID(worker); id != 0 && v.cluster.Leader() != nil {
		v.world.Expire(id)
		v.cluster.ExpireSession(id)
	}
}

func (v *virtual) cut(random *rand.Rand) (end func()) {
	l := v.aLink(random)
	l.Cut()
	return l.Heal
}

func (v *virtual) stall(random *rand.Rand) (end func()) {
	l := v.aLink(random)
	l.Stall([]zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both}[random.IntN(3)])
	return l.Heal
}

func (v *virtual) slowDown(random *rand.Rand) (end func()) {
	l := v.aLink(random)
	l.Delay(leastLatency, draw(random, virtualSession/2))
	return func() { l.Delay(leastLatency, mostLatency) }
}

func (v *virtual) reset(random *rand.Rand) (end func()) {
	v.aLink(random).Reset()
	return nothing
}

// losable are the requests that the recipes make.
var losable = []zktest.Op{
	zktest.OpCreate, zktest.OpCreate, zktest.OpCreate, zktest.OpDelete, zktest.OpDelete, zktest.OpCreateContainer, zktest.OpGet,
	zktest.OpChildren, zktest.OpSync, zktest.Any,
}

func (v *virtual) loseRequest(random *rand.Rand) (end func()) {
	l := v.aLink(random)
	l.LoseRequest(losable[random.IntN(len(losable))])
	return l.Spare
}

func (v *virtual) loseReply(random *rand.Rand) (end func()) {
	l := v.aLink(random)
	l.LoseReply(losable[random.IntN(len(losable))])
	return l.Spare
}

func (v *virtual) throttle(random *rand.Rand) (end func()) {
	l := v.aLink(random)
	l.Throttle(losable[random.IntN(len(losable))])
	return l.Spare
}

// loseReplyAndLag lets a create take effect that the client does not hear of, and come back to a server that does not know of it yet.
func (v *virtual) loseReplyAndLag(random *rand.Rand) (end func()) {
	n := random.IntN(virtualWorkers)
	lag := draw(random, virtualSession/2)
	for _, s := range v.cluster.Servers() {
		if s != v.home(n) {
			s.Lag(lag)
		}
	}
	v.link(n).LoseReply(zktest.OpCreate)
	return func() {
		v.link(n).Spare()
		for _, s := range v.cluster.Servers() {
			s.Lag(0)
		}
	}
}

// loseReplyAndSession lets a create take effect that the client does not hear of, and end its session before it is back, the znodes
// a little later.
func (v *virtual) loseReplyAndSession(random *rand.Rand) (end func()) {
	n := random.IntN(virtualWorkers)
	v.doom(n, true)
	v.link(n).LoseReply(zktest.OpCreate)
	return func() {
		v.link(n).Spare()
		v.doom(n, false)
	}
}

func (v *virtual) doom(worker int, doomed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doomed[worker] = doomed
}

// failTogether is the end of a rack: the server cannot tell anybody any more that it has heard from its client.
func (v *virtual) failTogether(random *rand.Rand) (end func()) {
	return v.failBoth(random.IntN(virtualWorkers))
}

func (v *virtual) failBoth(worker int) (end func()) {
	l, s := v.link(worker), v.home(worker)
	s.Stop()
	l.Cut()
	return func() {
		s.Start()
		l.Heal()
	}
}

// freezeWorker stops a process: neither its owners nor its connections go on.
func (v *virtual) freezeWorker(random *rand.Rand) (end func()) {
	n, connectionFirst := random.IntN(virtualWorkers), random.IntN(2) == 0
	v.world.Pause(n)
	v.link(n).Freeze()
	return func() {
		if connectionFirst {
			v.link(n).Thaw()
		}
		v.world.Resume(n)
		v.link(n).Thaw()
	}
}

// aServer is one that matters to somebody.
func (v *virtual) aServer(random *rand.Rand) *zktest.Server {
	return v.home(random.IntN(virtualWorkers))
}

// theLeader is any server while there is no leader.
func (v *virtual) theLeader(random *rand.Rand) *zktest.Server {
	other := v.aServer(random)
	if l := v.cluster.Leader(); l != nil {
		return l
	}
	return other
}

func (v *virtual) killServer(random *rand.Rand) (end func())    { return kill(v.aServer(random)) }
func (v *virtual) freezeServer(random *rand.Rand) (end func())  { return freeze(v.aServer(random)) }
func (v *virtual) isolateServer(random *rand.Rand) (end func()) { return isolate(v.aServer(random)) }
func (v *virtual) killLeader(random *rand.Rand) (end func())    { return kill(v.theLeader(random)) }
func (v *virtual) freezeLeader(random *rand.Rand) (end func())  { return freeze(v.theLeader(random)) }

func (v *virtual) isolateLeader(random *rand.Rand) (end func()) { return isolate(v.theLeader(random)) }

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

func (v *virtual) lagServer(random *rand.Rand) (end func()) {
	s := v.aServer(random)
	s.Lag(draw(random, virtualSession/2))
	return func() { s.Lag(0) }
}
