package order

import (
	"fmt"
	"slices"
)

// An action is one thing that can happen next.
type action struct {
	weight int // how often in random histories, by comparison
	do     func()
	format string
	args   []any
}

// progress returns what the driver, the connection and our server can do next.
func (m *model) progress() (found []action) {
	add := func(weight int, do func(), format string, args ...any) {
		found = append(found, action{weight, do, format, args})
	}
	k := &m.k
	for _, s := range m.slots {
		if len(s.outbox) > 0 && k.up {
			add(20, func() { m.sendAll(s) }, "send %d", s.id)
		}
		if s.stage == waiting && s.dirty {
			add(20, func() { m.decide(s) }, "decide %d", s.id)
		}
		if s.stage == waiting || s.stage == held {
			if k.up && s.own.alive() && !s.confirming && !m.guarded(s.own.leaf.text) {
				add(2, func() { m.guard(s) }, "guard %d", s.id)
			}
		}
	}
	if k.up && len(k.toServer) > 0 {
		add(20, k.serve, "serve %s", k.toServer[0].op)
	}
	if k.up && k.at < m.l.head() {
		add(6, func() { k.apply(k.at + 1) }, "apply %d", k.at+1)
	}
	if len(k.toClient) > 0 {
		add(20, k.receive, "receive")
	}
	if k.eventDue() {
		add(6, k.receiveEvent, "receive a late event")
	}
	for i, r := range k.inbox {
		if m.reportable(r) {
			add(12, func() { m.report(i) }, "report %d %s", r.by.id, r.op)
		}
	}
	for i, e := range k.fired {
		add(12, func() { m.reportEvent(i) }, "report event %s", e.name)
	}
	return found
}

// guarded reports whether a watch on the znode is pending, or its event is still to be
// told.
func (m *model) guarded(text string) bool {
	return m.k.watches[text] != nil ||
		slices.ContainsFunc(m.k.fired, func(e event) bool { return e.name == text })
}

// guard reads the own znode with a watch: the driver does so for each that stays a while.
func (m *model) guard(s *slot) {
	s.confirming = true
	s.outbox = append(s.outbox, m.request(s, opWatch, s.own.leaf.text))
}

// sendAll sends what a goroutine has in its hands, in its order.
func (m *model) sendAll(s *slot) {
	m.k.toServer = append(m.k.toServer, s.outbox...)
	s.outbox = nil
}

// owners returns what the goroutines may want.
func (m *model) owners() (found []action) {
	add := func(weight int, do func(), format string, args ...any) {
		found = append(found, action{weight, do, format, args})
	}
	kinds := modelKinds[m.set.rule]
	for _, s := range m.slots {
		switch {
		case s.stage == idle && m.creates < m.set.cycles:
			for _, kind := range kinds {
				add(8, func() { m.begin(s, kind, nil) }, "begin %d %s", s.id, kind)
			}
			for _, w := range m.slots {
				if w.stage == held && w.kind == "write-" && w.own.alive() {
					add(4, func() { m.begin(s, "read-", w.own) }, "nest %d", s.id)
				}
			}
		case s.stage == held:
			add(8, func() { m.leave(s, false) }, "leave %d", s.id)
			if m.mayFail() {
				add(4, func() { m.faults++; m.leave(s, true) }, "leave %d in use", s.id)
				add(3, func() { m.faults++; m.end(s, false) }, "lose %d", s.id)
			}
			if m.mayFail() && !m.isReadUnder(s.own) {
				add(3, func() { m.faults++; m.refuse(s) }, "refuse %d", s.id)
			}
		case s.stage == waiting && m.mayFail():
			add(1, func() { m.faults++; m.leave(s, false) }, "give up %d", s.id)
			add(1, func() { m.faults++; m.doubt(s) }, "doubt %d", s.id)
		case s.stage == leaving && s.own.left && s.own.inUse && !s.own.removed:
			add(6, func() { m.leave(s, false) }, "done %d", s.id)
		}
	}
	return found
}

// isReadUnder reports whether a reader of the same owner comes to st, or is there: then
// the owner has its hold.
func (m *model) isReadUnder(st *stake) bool {
	return slices.ContainsFunc(m.slots, func(s *slot) bool { return s.under == st })
}

// refuse is a session that cannot be relied on when somebody is about to hold: it waits
// again, as if it had held nothing.
func (m *model) refuse(s *slot) {
	m.q.NotHeld(s.m)
	s.own.ever, s.own.refused = false, m.k.at
	s.stage, s.dirty = waiting, true
	m.fact("NotHeld(%s)", s.own.leaf.text)
}

func (m *model) doubt(s *slot) {
	m.q.Doubt(s.m)
	m.fact("Doubt(%s)", s.own.leaf.text)
}

// mayFail reports whether another fault is in the bounds.
func (m *model) mayFail() bool { return !m.calm && m.faults < m.set.faults }

// others returns what other sessions may do, and what can go wrong.
func (m *model) others() (found []action) {
	add := func(weight int, fault bool, do func(), format string, args ...any) {
		if fault && !m.mayFail() {
			return
		}
		found = append(found, action{weight, func() {
			if fault {
				m.faults++
			}
			do()
		}, format, args})
	}
	t := m.l.now()
	for _, l := range t.leaves {
		own := m.stakes[l.text]
		stranger := l.session == 0
		weight := 3
		if !m.k.up || m.k.at < m.l.head() {
			weight = 8 // what we do not see at once
		}
		add(weight, !stranger, func() { m.take(l.text) }, "delete %s", l.text)
		if m.joins < m.set.strangers && l.kind == "write-" && own == nil {
			nest := func() { m.stranger("read-", &l.seq, true) }
			add(2, false, nest, "nest under %s", l.text)
		}
	}
	if m.joins < m.set.strangers {
		for _, kind := range modelKinds[m.set.rule] {
			add(5, false, func() { m.stranger(kind, nil, false) }, "stranger %s", kind)
		}
		add(1, true, m.forge, "forge")
	}
	if t.czxid != 0 && m.mayFail() {
		add(1, true, m.raze, "raze")
		add(1, true, m.remake, "remake")
	}
	if m.k.up {
		add(3, true, m.cut, "cut")
	} else {
		add(8, false, m.reconnect, "reconnect")
		add(1, true, m.renew, "new session")
		for _, s := range m.slots {
			d := m.decided[s.id]
			if s.stage == waiting && d.Behind.Text != "" && d.Local == nil {
				add(40, true, func() { m.behindOurBack(s, d.Behind.Text) }, "both go")
			}
		}
		if len(m.k.zombies) > 0 {
			add(6, false, m.k.zombie, "the old server does %s", m.k.zombies[0].op)
		}
	}
	if m.idle() {
		found = append(found, action{4, m.forget, "forget", nil})
	}
	return found
}

// raze deletes the directory, and before that what is in it: in one transaction or in
// many, one is gone after the other.
func (m *model) raze() {
	leaves := slices.Clone(m.l.now().leaves)
	if m.pick(2, "from the tail") == 1 {
		slices.Reverse(leaves)
	}
	for _, l := range leaves {
		m.take(l.text)
		m.judge()
	}
	m.l.commit(tree{})
}

// behindOurBack deletes a znode of ours, and then the one that it waits for.
func (m *model) behindOurBack(s *slot, behind string) {
	m.take(s.own.leaf.text)
	m.judge()
	m.take(behind)
}

// remake deletes the directory, and makes it again. Others have come and gone there
// since, and one is still there.
func (m *model) remake() {
	next := m.l.now().next - int32(m.pick(4, "numbers lower"))
	m.raze()
	zxid := m.l.head() + 1
	m.l.commit(tree{czxid: zxid, pzxid: zxid, next: next})
	kinds := modelKinds[m.set.rule]
	m.stranger(kinds[m.pick(len(kinds), "kind")], nil, false)
}

func (m *model) take(text string) {
	m.l.remove(func(l leaf) bool { return l.text == text })
}

func (m *model) stranger(kind string, seq *int32, nested bool) {
	m.joins++
	m.serial++
	prefix := fmt.Sprintf("%c%d", "ns"[m.serial%2], m.serial)
	if !nested && m.pick(3, "a bare name") == 0 {
		prefix = "bare" // which can have been there in an earlier directory
	}
	if _, ok := m.l.now().find(leafName(prefix, kind, m.l.now().next)); ok {
		return // forged; the server would refuse it
	}
	made := m.l.create(prefix, kind, 0, seq)
	if nested {
		t := &m.l.history[len(m.l.history)-1]
		i := slices.IndexFunc(t.leaves, func(l leaf) bool { return l.text == made.text })
		t.leaves[i].nested, t.leaves[i].forged = true, false
	}
}

// forge makes a znode with a number by hand, near or far; the name can have been there.
func (m *model) forge() {
	near := m.l.now().next
	by := []int32{-1, -2, 1, 3, 1<<30 - 1, 1 << 30, 1<<31 - 1, -1 << 31, -1 << 30}
	seq := near + by[m.pick(len(by), "forged by")]
	m.joins++
	kinds := modelKinds[m.set.rule]
	kind := kinds[m.pick(len(kinds), "kind")]
	if _, ok := m.l.now().find(leafName("bare", kind, seq)); !ok {
		m.l.create("bare", kind, 0, &seq)
	}
}

func (m *model) cut() {
	m.k.cut()
	m.epoch++
	m.directory = ""
	for _, s := range m.slots {
		s.dirty = true
	}
}

func (m *model) reconnect() {
	m.k.join(m.k.seen + int64(m.pick(int(m.l.head()-m.k.seen)+1, "server")))
}

// renew gives the session up, and begins another. Its znodes can live a while, as if of a
// stranger. That members end is told at once, with no decision before.
func (m *model) renew() {
	m.l.history = append(m.l.history, m.l.now()) // the session is made
	m.k.session = m.nextSession
	m.nextSession++
	m.k.watches, m.k.fired = map[string][]asked{}, nil
	m.k.join(m.l.head())
	m.k.seen = m.k.at
	gone := m.pick(2, "the old one has ended at the leader") == 0
	session := m.k.session
	if gone {
		m.l.remove(func(l leaf) bool { return l.session != 0 && l.session != session })
	} else {
		t := m.l.now()
		t.leaves = slices.Clone(t.leaves)
		for i := range t.leaves {
			if t.leaves[i].session != 0 {
				t.leaves[i].session = 0
			}
		}
		m.l.commit(t)
	}
	for _, s := range m.slots {
		if s.own != nil && !s.own.removed && s.stage != idle && s.stage != creating {
			if s.own.alive() {
				m.q.Lost(s.m)
				s.own.lost = true
				m.fact("Lost(%s)", s.own.leaf.text)
			}
			m.remove(s, false)
		}
	}
}

func (m *model) idle() bool {
	k := &m.k
	busy := len(k.inbox) + len(k.fired) + len(k.events)
	busy += len(k.toServer) + len(k.toClient)
	for _, s := range m.slots {
		busy += len(s.outbox)
		if s.stage != idle {
			return false
		}
	}
	return busy == 0 && m.facts > 0 && m.q.isIdle()
}

// forget drops the queue but for its watermark.
func (m *model) forget() {
	w, ok := m.q.Watermark()
	m.renewQueue()
	if ok {
		m.q.Remember(w)
	}
	m.fact("Remember(%+v, %v)", w, ok)
	m.facts = 0
	m.directory, m.told = "", map[string]int{}
	for name := range m.k.watches {
		m.k.watches[name] = []asked{}
	}
}

// step lets one of the actions happen.
func (m *model) step(actions []action) {
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	n := m.pick(total, "action")
	for _, a := range actions {
		if n -= a.weight; n < 0 {
			m.run(a)
			return
		}
	}
}

func (m *model) run(a action) {
	m.steps++
	m.say(a.format, a.args...)
	a.do()
	m.judge()
	for _, s := range m.slots {
		if !m.set.lazy && s.stage == waiting && s.dirty {
			m.decide(s)
		}
	}
}

// finish lets all come to rest, strangers leave, holders too: all who wait must have
// their turn.
func (m *model) finish() {
	m.quiet = true
	for _, s := range m.slots {
		s.idleAsks = 0
	}
	m.say("from here on no faults")
	if !m.k.up {
		m.run(action{1, m.reconnect, "reconnect", nil})
	}
	m.set.cycles, m.set.faults, m.set.strangers = 0, 0, 0
	for range 60 {
		m.settle()
		m.checkQuiet()
		if !m.goOn() {
			return
		}
	}
	m.fail("it does not end")
}

func (m *model) settle() {
	for range 2000 {
		actions := m.progress()
		if len(actions) == 0 {
			return
		}
		m.run(actions[m.pick(len(actions), "order")])
	}
	m.fail("it does not come to rest")
}

// goOn lets one holder leave, or else a stranger; false if there is none.
func (m *model) goOn() bool {
	for _, s := range m.slots {
		s.idleAsks = 0
		if s.stage == held || s.stage == leaving && s.own.inUse && !s.own.removed {
			m.run(action{1, func() { m.leave(s, false) }, "leave %d", []any{s.id}})
			return true
		}
	}
	for _, l := range m.l.now().leaves {
		own := m.stakes[l.text]
		if own == nil || own.m == nil || own.removed {
			m.run(action{1, func() { m.take(l.text) }, "delete %s", []any{l.text}})
			return true
		}
	}
	for _, s := range m.slots {
		if s.stage != idle {
			m.fail("nobody is left but %d, which is %s", s.id, s.stage)
		}
	}
	return false
}
