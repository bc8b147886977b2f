package order

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// A violation is what a model panics with if it finds one.
type violation struct{ text string }

// A setting is what is fixed in a history.
type setting struct {
	rule    string // a key of modelKinds
	late    bool   // the connection does not keep order
	czxids  bool   // it tells the czxid of each create
	watched bool   // the driver watches the directory
	lazy    bool   // members decide when they come to it, not after each fact
	first   int32  // the first number
	slots   int    // how many goroutines use the queue here

	// How many joins of others, faults, and creates of ours there are at most.
	strangers, faults, cycles int

	steps int // how many actions there are at most; 0: no bound

	without Sources
	fresh   bool
}

var modelKinds = map[string][]string{
	"exclusive": {"lock-"},
	"readwrite": {"write-", "read-"},
	"groups":    {"red-", "blue-"}, // those of one colour go together
}

func modelRules(rule string) Rules {
	switch rule {
	case "readwrite":
		return Rules{
			Excludes: func(a, b seqname.Name) bool {
				return a.Kind == "write-" || b.Kind == "write-"
			},
			Nested: func(self seqname.Name) bool { return self.Kind == "write-" },
		}
	case "groups":
		return Rules{Excludes: func(a, b seqname.Name) bool { return a.Kind != b.Kind }}
	}
	return Rules{Excludes: func(_, _ seqname.Name) bool { return true }}
}

// excludes is the model's own judgement, by what the recipes' pages say.
func excludes(rule string, a, b leaf) bool {
	switch rule {
	case "readwrite":
		return a.kind == "write-" || b.kind == "write-"
	case "groups":
		return a.kind != b.kind
	}
	return true
}

type stage string

const (
	idle     stage = "idle"
	creating stage = "creating" // or searching, if the outcome is unknown
	waiting  stage = "waiting"
	held     stage = "held"
	leaving  stage = "leaving"
)

// A slot is a goroutine of the process that joins, waits, holds and leaves.
type slot struct {
	id      int
	stage   stage
	kind    string
	prefix  string   // of the znode of the create under way, or the last
	orphans []string // the prefixes of its creates of unknown outcome
	under   *stake   // the writer that it reads under
	m       *Member
	own     *stake
	epoch   Epoch      // read before the create
	ownList *request   // sent behind the create
	outbox  []*request // not sent yet

	reads    int    // ReadAhead: so many are still to be answered
	watching string // Behind, if its watch was asked for

	confirming, syncing, searching bool

	dirty    bool // a fact has been told since it decided
	idleAsks int  // how often it has asked since somebody left
}

// A stake is what the model knows of a znode of ours that is a member's.
type stake struct {
	leaf    leaf
	slot    *slot
	under   *stake
	m       *Member
	ever    bool // held
	left    bool // by its owner's wish
	inUse   bool
	lost    bool
	turn    bool   // at some moment it was its turn
	first   bool   // at some moment nobody was ahead
	ended   bool   // the leader has it no more
	endedAt int64  // since then
	refused int64  // where our server was when its hold was refused last
	way     []leaf // who was in the way when it ended
	removed bool
}

// yields reports whether nothing is done under the znode any more.
func (s *stake) yields() bool {
	return s.left && !s.inUse || s.lost && !s.ever && !s.left
}

// A model is the world, with a driver of package order in it.
type model struct {
	set   setting
	pick  func(n int, what string) int // from 0 to n-1
	l     leader
	k     link
	q     queue
	fault *fault
	slots []*slot

	epoch          Epoch
	synced         Epoch // a sync was answered in it, if hasSynced
	hasSynced      bool
	lists          []*request // asked, not yet reported
	directory      string     // "", "asked" or "watched"
	stakes         map[string]*stake
	decided        map[int]Decision
	told           map[string]int // names told gone, and when that was asked
	shown          map[string]int // names that were there, and when that was asked
	questions      int
	facts          int
	serial         int
	joins, faults  int
	creates, steps int
	nextSession    int64
	calm           bool // no faults now
	quiet          bool // nor later

	hash    uint64 // of what the queue was told and asked
	tracing bool
	trace   []string
}

func (m *model) fail(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (m *model) say(format string, args ...any) {
	if m.tracing {
		m.trace = append(m.trace, fmt.Sprintf(format, args...))
	}
}

// fact is told: what the queue knows must be sound after it.
func (m *model) fact(format string, args ...any) {
	m.facts++
	m.say("  fact: "+format, args...)
	m.mix(format)
	for _, a := range args {
		m.mixAny(a)
	}
	if err := m.q.check(); err != nil {
		m.fail("check: %v", err)
	}
	for _, s := range m.slots {
		s.dirty = true
	}
}

// mix adds to the hash of all that the queue was told.
func (m *model) mix(text string) {
	for i := range len(text) {
		m.hash = (m.hash ^ uint64(text[i])) * 1099511628211
	}
}

func (m *model) mixAny(a any) {
	switch a := a.(type) {
	case string:
		m.mix(a)
	case int:
		m.mixNumber(uint64(a))
	case int64:
		m.mixNumber(uint64(a))
	case Epoch:
		m.mixNumber(uint64(a))
	default:
		m.mix(fmt.Sprint(a))
	}
}

func (m *model) mixNumber(n uint64) {
	for range 8 {
		m.hash = (m.hash ^ n&255) * 1099511628211
		n >>= 8
	}
}

func newModel(set setting, pick func(n int, what string) int, planted *fault) *model {
	m := &model{
		set: set, pick: pick, stakes: map[string]*stake{}, told: map[string]int{},
		shown: map[string]int{},
		hash:  14695981039346656037, nextSession: 2, decided: map[int]Decision{},
	}
	m.l.commit(tree{czxid: firstZxid, pzxid: firstZxid, next: set.first})
	m.k = link{
		l: &m.l, session: 1, late: set.late, up: true, at: firstZxid, seen: firstZxid,
		armed: map[string]bool{}, watches: map[string][]asked{},
	}
	m.fault = planted
	m.renewQueue()
	for i := range set.slots {
		m.slots = append(m.slots, &slot{id: i, stage: idle})
	}
	return m
}

func (m *model) renewQueue() {
	rules := modelRules(m.set.rule)
	rules.Ordered, rules.Without, rules.Fresh = !m.set.late, m.set.without, m.set.fresh
	if m.fault != nil && m.fault.rules != nil {
		m.fault.rules(&rules)
	}
	m.q = New(rules)
	if m.fault != nil && m.fault.plant != nil {
		m.q = m.fault.plant(m.q)
	}
}

// name is what package order calls a leaf.
func (m *model) name(text string) seqname.Name {
	n, ok := seqname.Parse(text, modelKinds[m.set.rule])
	if !ok {
		m.fail("%q is no name", text)
	}
	return n
}

func (m *model) asking() Stamp {
	m.questions++
	m.mix("asking")
	return m.q.Asking(m.epoch, m.hasSynced && m.synced == m.epoch)
}

func (m *model) request(s *slot, op op, name string) *request {
	return &request{
		op: op, by: s, life: s.own, name: name,
		ask: m.asking(), epoch: m.epoch, mark: m.questions,
	}
}

// begin is a goroutine about to create its znode.
func (m *model) begin(s *slot, kind string, under *stake) {
	m.creates++
	s.kind, s.under, s.stage = kind, under, creating
	s.orphans, s.dirty, s.idleAsks, s.own, s.m = nil, false, 0, nil, nil
	plan := NoList
	if under == nil {
		plan = m.q.Creating(kind, m.k.session)
		m.fact("Creating(%s) by %d = %d", kind, s.id, plan)
	}
	m.create(s, plan)
}

// create puts a create into the goroutine's hands, with what goes with it.
func (m *model) create(s *slot, plan Plan) {
	m.serial++
	s.prefix = fmt.Sprintf("%c%d", "qm"[m.serial%2], m.serial)
	s.searching, s.ownList = false, nil
	r := m.request(s, opCreate, s.prefix)
	r.kind = s.kind
	if s.under != nil {
		r.seq = &s.under.leaf.seq
	}
	s.epoch, s.outbox = m.epoch, append(s.outbox, r)
	byDirectory := m.set.czxids && m.set.watched && !m.set.late
	switch {
	case plan == WithList || plan == WithDirectory && !byDirectory:
		s.ownList = m.request(s, opList, "")
		m.lists = append(m.lists, s.ownList)
		s.outbox = append(s.outbox, s.ownList)
	case plan == WithDirectory:
		m.watchDirectory(s)
	}
}

func (m *model) watchDirectory(s *slot) {
	if m.set.watched && m.directory == "" {
		m.directory = "asked"
		s.outbox = append(s.outbox, m.request(s, opDirectory, theDirectory))
	}
}

// poll tells of the watches that have fired on the znode of s and on the directory: a
// driver does so before each decision, and of no other member.
func (m *model) poll(s *slot) {
	m.pollDirectory()
	for i := range m.k.fired {
		if e := &m.k.fired[i]; e.name == s.own.leaf.text && s.own.alive() && !e.polled {
			e.polled = true
			m.q.Unconfirmed(s.m)
			m.fact("Unconfirmed(%s)", e.name)
		}
	}
}

func (m *model) pollDirectory() {
	isDirectory := func(e event) bool { return e.name == theDirectory }
	if !slices.ContainsFunc(m.k.fired, isDirectory) {
		return
	}
	m.k.fired = slices.DeleteFunc(m.k.fired, isDirectory)
	if m.directory == "watched" {
		m.q.LearnIncarnation(m.epoch, 0)
		m.fact("LearnIncarnation(0)")
	}
	m.directory = "" // what was asked for is of no use: it fired
}

func (s *stake) alive() bool { return s.m != nil && !s.left && !s.lost && !s.removed }

// reportEvent tells of an event that has come.
func (m *model) reportEvent(i int) {
	e := m.k.fired[i]
	m.say("event %s", e.name)
	if e.name == theDirectory {
		m.pollDirectory()
		return
	}
	m.k.fired = slices.Delete(m.k.fired, i, i+1)
	st := m.stakes[e.name]
	if st != nil && st.alive() {
		m.end(st.slot, true)
		return
	}
	for _, ask := range e.asks {
		m.gone(ask.q, ask.mark, e.name)
	}
}

func (m *model) gone(ask Stamp, mark int, text string) {
	m.q.Gone(ask, m.name(text))
	m.told[text] = max(m.told[text], mark)
	m.fact("Gone(%s)", text)
}

// end is a member whose znode is gone, or else cannot be relied on.
func (m *model) end(s *slot, gone bool) {
	m.q.Lost(s.m)
	s.own.lost = true
	m.fact("Lost(%s)", s.own.leaf.text)
	m.judge()
	if gone {
		m.remove(s, true)
		return
	}
	s.stage = leaving
	s.outbox = append(s.outbox, m.request(s, opDelete, s.own.leaf.text))
}

func (m *model) remove(s *slot, gone bool) {
	m.q.Removed(s.m, gone)
	s.own.removed = true
	if gone {
		m.questions++
		m.told[s.own.leaf.text] = m.questions
	}
	m.fact("Removed(%s, gone %v)", s.own.leaf.text, gone)
	s.stage, s.reads, s.watching, s.under = idle, 0, "", nil
	s.confirming, s.syncing = false, false
	s.outbox = slices.DeleteFunc(s.outbox, func(r *request) bool {
		switch r.op {
		case opList:
			m.lists = slices.DeleteFunc(m.lists, func(l *request) bool { return l == r })
		case opDirectory:
			m.directory = ""
		}
		return r.op != opDelete
	})
}

// leave is the owner's wish.
func (m *model) leave(s *slot, inUse bool) {
	m.q.Left(s.m, inUse)
	if !s.own.left {
		s.own.left, s.own.inUse = true, inUse
	} else {
		s.own.inUse = s.own.inUse && inUse
	}
	m.fact("Left(%s, in use %v)", s.own.leaf.text, inUse)
	m.judge()
	if s.stage != leaving {
		s.stage = leaving
		s.outbox = append(s.outbox, m.request(s, opDelete, s.own.leaf.text))
	}
}

// Trace is the history so far, for people.
func (m *model) Trace() string {
	return fmt.Sprintf("%+v\n", m.set) + strings.Join(m.trace, "\n")
}
