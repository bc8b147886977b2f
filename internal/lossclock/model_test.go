package lossclock_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/lossclock"
	"pgregory.net/rapid"
)

// The model: a leader, two followers, and one client with a session. It goes on in steps
// of one unit, of which T has 600. A request takes some units to its server and back;
// what the servers tell each other takes none, but the leader may think for long.
const (
	modelT    = 600
	modelPing = modelT / 3
	modelSlow = modelT / 40 // the longest way to a server or back, in half of the slack
)

// TestMain tries more histories than a property's usual hundred.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func (m *model) at(unit int) time.Time {
	return epoch.Add(time.Duration(unit) * m.unit)
}

// A modelServer is a follower, or the leader.
type modelServer struct {
	inTouch bool // with the leader
	dead    bool
	heard   bool // of the session, since its last report
	owes    bool // a report: the leader's ping waits on the way to it
}

// A modelRequest is a write or a sync of the client's, and what has become of it.
type modelRequest struct {
	via             int // the server
	sent            int
	arrives, judged int // when
	back            int // when the answer arrives
	known           bool
}

type model struct {
	t          require.TestingT
	pick       func(lo, hi int, what string) int // from lo to hi
	clock      lossclock.Clock
	terms      lossclock.Terms
	unit       time.Duration
	knowsHands bool // the client tells of handshakes
	slow       int  // the longest way to a server or back

	stalled  bool // nothing gets to the client's server, or back
	now      int
	tick     int
	late     int // by which the leader pings later than half a tick, at most
	nextPing int // of the leader
	leader   int
	servers  [3]modelServer
	touched  int // when the leader heard of the session last
	ended    int // when it ended the session; 0: not yet
	via      int // the client's server, -1: none
	pinged   int // when the client's pings began, with the handshake
	pings    []modelRequest
	requests []modelRequest
	hands    time.Time // the last handshake
	contacts int       // how many were noted
	lastSent int       // when the last was sent
}

func (m *model) coin(what string) bool { return m.pick(0, 1, what) == 1 }

// touch is the leader hearing of the session.
func (m *model) touch() {
	if m.ended == 0 {
		m.touched = m.now
	}
}

// hears is a server hearing of the session from its client.
func (m *model) hears(server int) {
	if server == m.leader {
		m.touch()
	} else {
		m.servers[server].heard = true
	}
}

// connect is a handshake with a server that reaches the leader.
func (m *model) connect(server int) {
	s := &m.servers[server]
	if s.dead || !s.inTouch || m.ended != 0 {
		return
	}
	m.via, m.pinged = server, m.now
	began := max(0, m.now-m.pick(0, m.slow, "handshake"))
	m.touch()
	if m.knowsHands {
		m.hands = m.at(began)
	}
}

// disconnect loses what the client was about to send or to hear.
func (m *model) disconnect() {
	m.via, m.pings = -1, nil
	kept := m.requests[:0]
	for _, r := range m.requests {
		if r.arrives < m.now { // the leader may have judged it, or will; nobody is told
			r.known = true
			kept = append(kept, r)
		}
	}
	m.requests = kept
}

// contact sends a write or a sync.
func (m *model) contact() {
	if m.via < 0 {
		return
	}
	arrives := m.now + m.pick(0, m.slow, "way")
	if m.stalled {
		arrives = max(arrives, m.now+1)
	}
	if n := len(m.requests); n > 0 { // in order
		arrives = max(arrives, m.requests[n-1].arrives)
	}
	judged := max(m.now+1, arrives+m.pick(0, m.slow, "thinks"))
	if n := len(m.requests); n > 0 {
		judged = max(judged, m.requests[n-1].judged)
	}
	if arrives == m.now {
		m.hears(m.via)
	}
	m.clock.Ask(m.terms)
	m.lastSent = m.now
	m.requests = append(m.requests, modelRequest{
		via: m.via, sent: m.now, arrives: arrives, judged: judged,
		back: judged + m.pick(0, m.slow, "way back"),
	})
}

// kill ends a server, and the leader's term if it leads: the next leader gives every
// session its whole time.
func (m *model) kill(server int) {
	m.servers[server].dead = true
	m.servers[server].heard, m.servers[server].owes = false, false
	if m.via == server {
		m.disconnect()
	}
	if server != m.leader {
		return
	}
	for i, s := range m.servers {
		if !s.dead && s.inTouch {
			m.elect(i)
			return
		}
	}
	m.servers[server].dead = false // the last one stays
}

func (m *model) elect(server int) {
	m.leader = server
	m.disconnect() // servers drop their clients
	m.touch()
	for i := range m.servers {
		m.servers[i].heard, m.servers[i].owes = false, false
	}
}

// step is one unit of time, in which a fault may come before or after the leader's ping.
func (m *model) step(act func()) {
	m.now++
	early := act != nil && m.coin("before the ping")
	if early {
		act()
	}
	if m.stalled {
		m.holdUp()
	}
	m.arrivals()
	if m.now == m.nextPing {
		m.reports()
		m.nextPing += m.tick / 2
		if m.coin("a late ping") {
			m.nextPing += m.late
		}
	}
	m.answers()
	if act != nil && !early {
		act()
	}
	if m.ended == 0 && m.now-m.touched >= modelT {
		m.ended = m.now
	}
	m.check()
}

// holdUp makes a unit longer the way of what is on its way.
func (m *model) holdUp() {
	for i := range m.pings {
		if p := &m.pings[i]; p.arrives >= m.now {
			p.arrives++
		}
	}
	for i := range m.requests {
		r := &m.requests[i]
		r.back++
		if r.arrives >= m.now {
			r.arrives, r.judged = r.arrives+1, r.judged+1
		}
	}
}

// arrivals are the client's pings and requests reaching their server.
func (m *model) arrivals() {
	if m.via >= 0 && m.now > m.pinged && (m.now-m.pinged)%modelPing == 0 {
		held := 0
		if m.stalled {
			held = 1
		}
		m.pings = append(m.pings, modelRequest{
			arrives: m.now + held + m.pick(0, m.slow, "ping"),
		})
	}
	for _, p := range m.pings {
		if p.arrives == m.now && m.via >= 0 {
			m.hears(m.via)
		}
	}
	for _, r := range m.requests {
		if r.arrives == m.now && m.via == r.via {
			m.hears(r.via)
		}
	}
}

// pingsBy sets the servers' tick, by which the leader pings, and how late it may be:
// what lossclock presumes, in whole units.
func (m *model) pingsBy(tick, first int) {
	late := max(time.Duration(tick)*m.unit/20, 25*time.Millisecond)
	m.tick, m.late, m.nextPing = tick, int(late/m.unit), m.now+first
}

// reports is what followers answer to the leader's ping.
func (m *model) reports() {
	for i := range m.servers {
		m.servers[i].owes = true
		m.report(i)
	}
}

// report is a server answering the pings that have reached it.
func (m *model) report(server int) {
	s := &m.servers[server]
	if !s.owes || s.dead || !s.inTouch || server == m.leader {
		return
	}
	if s.heard {
		m.touch()
	}
	s.heard, s.owes = false, false
}

// rejoin ends a partition. What the servers had sent each other waits in their
// connection, and arrives in its order: the leader's pings before the answers that it
// gives from now on.
func (m *model) rejoin(server int) {
	m.servers[server].inTouch = true
	m.report(server)
}

// answers are the leader judging requests, and the client being told.
func (m *model) answers() {
	kept := m.requests[:0]
	for _, r := range m.requests {
		s := m.servers[r.via]
		if r.judged == m.now && !s.inTouch && !s.dead { // it waits on the way
			r.judged, r.back = r.judged+1, r.back+1
		} else if r.judged == m.now && (m.ended != 0 || s.dead) {
			continue // expired, or lost
		}
		if r.back == m.now {
			if !r.known && m.via == r.via {
				m.clock.Note(m.terms, 1, m.at(r.sent), m.at(r.back))
				m.contacts++
			}
			continue
		}
		kept = append(kept, r)
	}
	m.requests = kept
}

// check: what is relied on has not ended.
func (m *model) check() {
	until, ok := m.clock.GoodUntil(m.terms, 1, m.hands)
	if m.ended != 0 && ok {
		require.False(m.t, until.After(m.at(m.ended)),
			"relied on until %v after the leader ended it", until.Sub(m.at(m.ended)))
	}
}

// act is one thing that happens.
func (m *model) act() func() {
	server := m.pick(0, 2, "server")
	return map[int]func(){
		0: m.contact,
		1: m.contact,
		2: m.contact,
		3: func() { m.kill(server) },
		4: func() { m.servers[server].dead = false },
		5: func() {
			if server != m.leader {
				m.servers[server].inTouch = false
			}
		},
		6: func() { m.rejoin(server) },
		7: func() {
			if m.via < 0 {
				m.connect(server)
			}
		},
		8: func() { m.disconnect(); m.connect(server) },
		9: func() {
			if m.servers[server].inTouch && !m.servers[server].dead {
				m.elect(server)
			}
		},
	}[m.pick(0, 9, "act")]
}

// newModel has a client that has connected to the first server; the last one leads.
func newModel(t require.TestingT, pick func(lo, hi int, what string) int) *model {
	m := &model{t: t, pick: pick, leader: 2, via: -1, slow: modelSlow}
	m.unit = time.Second / 60 // T is ten seconds
	m.terms.Timeout = modelT * m.unit
	for i := range m.servers {
		m.servers[i].inTouch = true
	}
	return m
}

// set chooses what is fixed in a history.
func (m *model) set() {
	tick := modelT/2 - 2*m.pick(0, modelT/4-modelT/40, "ticks shorter than the longest")
	switch m.pick(0, 3, "terms") {
	case 2: // below two ticks
		tick = 2 * m.pick(modelT/4, modelT*2/3, "half a long tick")
	case 3: // the shortest T that may be unknown
		m.unit, m.terms.Timeout = 3*time.Second/modelT, 0
	}
	if tick > modelT/2 || m.coin("the tick is told") {
		m.terms.Tick = time.Duration(tick) * m.unit
	}
	m.pingsBy(tick, m.pick(1, tick/2, "the first ping"))
	m.knowsHands = m.coin("handshakes are told")
	if m.coin("a quick network") {
		m.slow = 0
	}
	m.connect(m.pick(0, 2, "the first server"))
}

// In no history is the session relied on after its leader has ended it.
func TestNeverReliedOnForTooLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, func(lo, hi int, what string) int {
			return rapid.IntRange(lo, hi).Draw(t, what)
		})
		m.set()
		m.scene()
		for range m.pick(0, 40, "acts") { // often none: the scene is all
			heartbeat := m.coin("heartbeat")
			for range m.pick(0, modelT/2, "pause") {
				if heartbeat && m.now%(modelT/10) == 0 {
					m.step(m.contact)
				} else {
					m.step(nil)
				}
			}
			m.step(m.act())
		}
		m.pass(2 * modelT)
	})
}

// In no history of times in which contacts are asked for, and of idle ones, is the
// session relied on for too long, if what stands still while they are asked for holds up
// pings.
func TestNeverReliedOnForTooLongOverStalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, func(lo, hi int, what string) int {
			return rapid.IntRange(lo, hi).Draw(t, what)
		})
		m.slow = 0
		half := m.pick(modelT/40, modelT/4, "half a tick")
		m.terms.Tick = time.Duration(2*half) * m.unit
		m.pingsBy(2*half, m.pick(1, half, "the first ping"))
		m.connect(0)
		for range m.pick(1, 3, "rounds") {
			m.pass(m.near(modelT, "idle"))
			m.busy()
		}
		m.beat(modelT/20, max(0, m.nextPing-4-m.now))
		m.step(m.contact)
		m.step(nil)
		m.step(func() { m.kill(0) })
		m.pass(modelT)
	})
}

// busy is a time in which contacts are asked for, and may be held up. It often begins
// just before a ping. What holds up pings when it ends holds up none that is due later.
func (m *model) busy() {
	if m.coin("as a ping is due") {
		m.pass(modelPing - 1 - (m.now-m.pinged)%modelPing)
	}
	m.clock.Wanted(m.at(m.now))
	for range m.pick(0, 3, "stalls") {
		m.beat(modelT/20, m.pick(0, 1, "gap")*m.pick(0, modelT/4, "beats"))
		m.stalled = true
		m.step(m.contact)
		m.beat(modelT/20, m.near(modelT/2, "stalled"))
		m.stalled = m.coin("still")
	}
	m.clock.Unwanted(m.at(m.now))
	if m.stalled {
		m.pass(m.near(modelPing-1-(m.now-m.pinged)%modelPing, "still stalled"))
	}
	m.stalled = false
}

// The worst that is known, all through: after an idle time two contacts come, the second
// when it proves the first or a little before, and their follower dies before its report,
// for which the leader asks as late as it may.
func TestAFollowerThatDiesBeforeItsReport(t *testing.T) {
	const steps = 15
	for _, half := range []int{modelT / 12, modelT / 4, modelT / 2} {
		for idle := 0; idle < modelPing; idle += modelPing / 5 {
			for after := 0; after < half; after += max(1, half/steps) {
				for gap := half * 6 / 5; gap > half/2; gap -= max(1, half/steps/2) {
					dies(t, half, idle, after, gap, 0)
					dies(t, half, idle, after, gap, modelSlow)
				}
			}
		}
	}
}

// dies has a first contact that takes some time to its server, and lets the follower die
// just before the leader's ping behind the second.
func dies(t *testing.T, half, idle, after, gap, way int) {
	late := false
	m := newModel(t, func(_, hi int, what string) int {
		switch {
		case what == "a late ping" && late:
			return hi
		case what == "a late ping":
			return 0
		}
		return min(way, hi)
	})
	m.pingsBy(2*half, half)
	if m.tick > modelT/2 {
		m.terms.Tick = time.Duration(m.tick) * m.unit
	}
	m.connect(0)
	m.pass(modelT + idle)
	m.pass(m.nextPing - 1 - m.now)
	late = true
	m.pass(1 + after)
	m.step(m.contact)
	m.pass(gap - 1)
	way = 0
	m.step(m.contact)
	m.pass(m.nextPing - 2 - m.now)
	m.step(func() { m.kill(0) })
	m.pass(modelT)
}

// What holds up contacts holds up the pings as well: the process is stopped, or its
// network stands still, and then the follower dies before it has reported what came
// behind.
func TestAStallAndThenAFollowerThatDies(t *testing.T) {
	for _, half := range []int{modelT / 12, modelT / 4} {
		for since := 0; since < modelT/2; since += modelT / 24 {
			for lasts := modelT / 5; lasts < modelT*3/4; lasts += modelT / 40 {
				stalls(t, half, since, lasts, false)
				stalls(t, half, since, lasts, true)
			}
		}
	}
}

// stalls asks for contacts for some time, of which some are held up in the end, or none
// is sent, and lets the follower die just before the leader's ping would have it report
// what came behind.
func stalls(t *testing.T, half, since, lasts int, stopped bool) {
	m := newModel(t, func(_, _ int, _ string) int { return 0 })
	m.pingsBy(2*half, half)
	m.connect(0)
	m.pass(2 * modelT)
	m.clock.Wanted(m.at(m.now))
	m.beat(modelT/10, since)
	m.stalled = true
	if stopped {
		m.pass(lasts)
	} else {
		m.beat(modelT/10, lasts)
	}
	m.stalled = false
	m.beat(modelT/10, m.nextPing-2-m.now)
	m.step(func() { m.kill(0) })
	m.pass(modelT)
}

// However short a stall is that begins as contacts are asked for again: a ping that was
// due just then does not count from when it was due.
func TestAStallAsContactsAreAskedFor(t *testing.T) {
	for _, half := range []int{modelT / 20, modelT / 12, modelT / 4} {
		for lasts := modelT / 40; lasts <= modelT/5; lasts += modelT / 40 {
			for phase := 0; phase < half; phase += modelT / 60 {
				resumes(t, half, lasts, phase)
			}
		}
	}
}

// resumes lets a client be idle until a ping is due, and then ask for contacts while
// nothing gets through for some time. The follower dies just before the leader's next
// ping; phase is by how much that one is earlier than it could be.
func resumes(t *testing.T, half, lasts, phase int) {
	m := newModel(t, func(_, _ int, _ string) int { return 0 })
	m.terms.Tick = time.Duration(2*half) * m.unit
	m.pingsBy(2*half, half)
	m.connect(0)
	m.pass(2*modelT - 1)
	m.clock.Wanted(m.at(m.now))
	last := m.now + lasts - phase // the leader's last ping that is answered
	m.nextPing = last - (last-m.now-1)/half*half
	if last <= m.now {
		m.nextPing = last + half
	}
	m.stalled = true
	m.step(m.contact)
	m.pass(lasts)
	m.stalled = false
	m.beat(modelT/20, m.nextPing-4-m.now)
	m.step(m.contact)
	m.step(nil)
	m.step(func() { m.kill(0) })
	m.pass(modelT)
}

// The process stands still while nobody asks for contacts, and so do its pings. That is
// noticed, and then contacts are asked for; the follower may die before it has reported
// what came behind.
func TestAProcessThatStandsStillWhileNobodyAsks(t *testing.T) {
	for _, half := range []int{modelT / 20, modelT / 12, modelT / 4} {
		for since := 0; since < modelPing; since += modelT / 24 {
			for lasts := modelT / 20; lasts < modelT; lasts += modelT / 40 {
				standsStill(t, half, since, lasts, false)
				standsStill(t, half, since, lasts, true)
			}
		}
	}
}

func standsStill(t *testing.T, half, since, lasts int, dies bool) {
	m := newModel(t, func(_, _ int, _ string) int { return 0 })
	m.terms.Tick = time.Duration(2*half) * m.unit
	m.pingsBy(2*half, half)
	m.connect(0)
	m.pass(2*modelT + since)
	m.stalled = true
	m.pass(lasts)
	m.stalled = false
	m.clock.Interrupt(m.at(m.now))
	m.clock.Wanted(m.at(m.now))
	m.step(m.contact)
	if dies {
		m.beat(modelT/20, max(0, m.nextPing-2-m.now))
		m.step(func() { m.kill(0) })
	}
	m.beat(modelT/20, modelT)
}

// beat lets some units pass, with a contact as soon as one is due.
func (m *model) beat(period, units int) {
	for range units {
		if len(m.requests) == 0 && m.now-m.lastSent >= period {
			m.step(m.contact)
		} else {
			m.step(nil)
		}
	}
}

// scene is what a draw of single acts seldom finds: the client is idle, contacts come
// about as far apart as the leader's pings, and then the follower dies.
func (m *model) scene() {
	half := m.tick / 2
	m.pass(m.near(2*modelT, "idle"))
	m.pass(m.nextPing - m.now)
	inStep := m.coin("two contacts, as far apart as pings")
	if inStep {
		m.step(m.contact)
		m.pass(half + m.pick(0, m.late, "before the second"))
		m.step(m.contact)
		m.pass(m.nextPing - 1 - m.now)
	} else {
		for range m.pick(0, 4, "contacts") {
			m.pass(m.near(half, "before the contact"))
			m.step(m.contact)
		}
		m.pass(m.pick(0, half, "then"))
	}
	if via := m.via; via != m.leader && (inStep || !m.coin("the follower lives")) {
		m.step(func() { m.kill(via) })
	}
	if inStep {
		m.pass(modelT)
	}
}

// near is a number up to most, which is often a little above 0 or a little below most.
func (m *model) near(most int, what string) int {
	off := m.pick(0, most, what)
	if m.coin("nearly all") {
		return most - off
	}
	return off
}

// pass lets some units pass.
func (m *model) pass(units int) {
	for range units {
		m.step(nil)
	}
}

// In no history in which answers are slow, and several contacts under way at a time, is
// the session relied on for too long. The network is fast again when the client is idle:
// pings that are late then are left to the fencing token.
func TestNeverReliedOnForTooLongWhereAnswersAreSlow(t *testing.T) {
	proved := 0
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, func(lo, hi int, what string) int {
			return rapid.IntRange(lo, hi).Draw(t, what)
		})
		m.slow = 0
		half := m.pick(modelT/40, modelT/4, "half a tick")
		m.terms.Tick = time.Duration(2*half) * m.unit
		m.pingsBy(2*half, m.pick(1, half, "the first ping"))
		m.connect(0)
		for range m.pick(1, 3, "rounds") {
			m.pass(m.near(modelT, "idle"))
			m.clock.Wanted(m.at(m.now))
			m.slow = m.pick(0, modelT/9, "slow")
			if m.coin("each as slow") {
				slow := m.slow
				m.pick = func(lo, hi int, what string) int {
					if strings.Contains(what, "way") ||
						what == "thinks" || what == "ping" {
						return slow
					}
					return rapid.IntRange(lo, hi).Draw(t, what)
				}
			}
			m.keepBeating(m.near(2*modelT, "busy"))
			if m.coin("the follower dies") {
				if m.coin("before a ping") {
					m.keepBeating(max(0, m.nextPing-2-m.now))
				}
				if via := m.via; via >= 0 {
					m.step(func() { m.kill(via) })
				}
				if m.coin("it comes back elsewhere") {
					m.connect(m.pick(0, 2, "server"))
				}
				m.keepBeating(modelT)
			}
			proved += m.contacts
			m.slow = 0
			m.pass(modelT / 2)
			m.clock.Unwanted(m.at(m.now))
			if m.via < 0 {
				m.connect(m.pick(0, 2, "server"))
			}
		}
		m.pass(modelT)
	})
	require.NotZero(t, proved)
}

// keepBeating lets some units pass, with a contact as soon as the clock wants it, whether
// the one before was answered or not.
func (m *model) keepBeating(units int) {
	for range units {
		sent := m.at(m.lastSent)
		due := m.clock.NextSync(m.terms, 1, m.hands, sent, true)
		if m.via >= 0 && !due.After(m.at(m.now)) {
			m.step(m.contact)
		} else {
			m.step(nil)
		}
	}
}
