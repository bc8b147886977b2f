package order

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// report tells of the i-th answer that has come.
func (m *model) report(i int) {
	r := m.k.inbox[i]
	m.k.inbox = slices.Delete(m.k.inbox, i, i+1)
	m.say("answer to %d: %s %s lost=%v found=%v", r.by.id, r.op, r.name, r.lost, r.found)
	m.answers()[r.op](r)
}

func (m *model) answers() map[op]func(*request) {
	return map[op]func(*request){
		opCreate: m.created, opDelete: m.deleted, opList: m.listed, opSync: m.syncDone,
		opWatch: m.watchSet, opRead: m.read, opDirectory: m.directoryRead,
	}
}

// reportable reports whether an answer's goroutine can have come to it: its own create
// comes before all else of the goroutine's.
func (m *model) reportable(r *request) bool {
	return r.op != opList || r.by.stage != creating || r.by.ownList != r
}

func (m *model) created(r *request) {
	s := r.by
	switch {
	case s.stage != creating || s.prefix != r.name:
		return
	case r.lost: // the outcome is unknown
		m.search(s)
		return
	case !r.found:
		m.fail("a create that did nothing")
	}
	czxid := r.made.czxid
	if !m.set.czxids {
		czxid = 0
	}
	m.join(s, r.made, czxid, s.epoch)
}

// search begins to look for the znode of a create whose outcome is unknown.
func (m *model) search(s *slot) {
	s.searching = true
	s.outbox = append(s.outbox, m.request(s, opSync, ""))
}

// searched is the list of a search.
func (m *model) searched(s *slot, r *request) {
	i := slices.IndexFunc(r.dir.leaves, func(l leaf) bool {
		return l.text == leafName(s.prefix, s.kind, l.seq) && l.session == m.k.session
	})
	switch {
	case s.under != nil && !s.under.alive():
		s.stage, s.searching = idle, false
		s.orphans = append(s.orphans, s.prefix)
		m.orphan(s, r)
	case i >= 0:
		m.join(s, r.dir.leaves[i], 0, r.epoch)
	default:
		s.orphans = append(s.orphans, s.prefix)
		m.create(s, WithList)
	}
}

// orphan deletes what a list shows of creates of unknown outcome.
func (m *model) orphan(s *slot, r *request) {
	for _, l := range r.dir.leaves {
		for _, prefix := range s.orphans {
			if l.text == leafName(prefix, l.kind, l.seq) {
				s.outbox = append(s.outbox, m.request(s, opDelete, l.text))
			}
		}
	}
}

func (m *model) join(s *slot, made leaf, czxid int64, e Epoch) {
	if s.under != nil {
		made.nested, made.forged = true, false
	}
	c := Creation{
		Name: m.name(made.text), Session: made.session, Czxid: czxid, Epoch: e,
		Orphans: len(s.orphans) > 0,
	}
	st := m.stake(made, s)
	if s.under != nil {
		c.Under, st.under = s.under.m, s.under
		if !s.under.alive() { // too late: it is deleted
			s.stage = idle
			s.outbox = append(s.outbox, m.request(s, opDelete, made.text))
			delete(m.stakes, made.text)
			return
		}
	}
	s.m = m.q.Created(c)
	s.own, s.stage, st.m, s.searching = st, waiting, s.m, false
	delete(m.told, made.text) // somebody can have waited for it, and seen it gone
	m.fact("Created(%s, czxid %d, epoch %d, orphans %v) by %d",
		made.text, czxid, e, c.Orphans, s.id)
	m.judge()
	if made.session != m.k.session {
		m.end(s, false)
	}
}

// stake begins to keep an account of a znode of ours. It may be gone already.
func (m *model) stake(made leaf, s *slot) *stake {
	st := m.stakes[made.text]
	if st == nil {
		st = &stake{leaf: made}
		m.stakes[made.text] = st
	}
	st.slot = s
	return st
}

func (m *model) deleted(r *request) {
	s := r.by
	if s.own == nil || s.own.leaf.text != r.name || s.stage != leaving {
		return // an orphan's
	}
	if r.lost {
		if m.pick(2, "delete again") == 0 {
			s.outbox = append(s.outbox, m.request(s, opDelete, r.name))
			return
		}
		m.remove(s, false)
		m.cleanUp(s, r.name)
		return
	}
	m.remove(s, true)
}

// cleanUp is the background's delete, of which the queue is told nothing.
func (m *model) cleanUp(s *slot, text string) {
	s.outbox = append(s.outbox, m.request(s, opDelete, text))
}

func (m *model) syncDone(r *request) {
	s := r.by
	if !r.lost && r.epoch == m.epoch {
		m.synced, m.hasSynced = m.epoch, true
		m.say("  synced in epoch %d", m.epoch)
	}
	switch {
	case s.stage == creating && s.searching && r.lost:
		m.search(s)
	case s.stage == creating && s.searching:
		s.outbox = append(s.outbox, m.request(s, opList, ""))
	default:
		s.syncing, s.dirty = false, true
	}
}

func (m *model) directoryRead(r *request) {
	if m.directory != "asked" {
		return
	}
	m.directory = ""
	if !r.lost && r.found && m.k.watches[theDirectory] != nil {
		m.directory = "watched"
		m.q.LearnIncarnation(r.epoch, r.dir.czxid)
		m.fact("LearnIncarnation(epoch %d, %d)", r.epoch, r.dir.czxid)
	}
	r.by.dirty = true
}

func (m *model) watchSet(r *request) {
	s := r.by
	if s.own != nil && r.name == s.own.leaf.text {
		s.confirming = false
		switch {
		case !s.own.alive():
		case r.lost:
			s.dirty = true
		case !r.found:
			m.end(s, true)
		case m.k.watches[r.name] != nil:
			m.q.LearnToken(s.m, r.made.czxid)
			m.q.Confirmed(s.m, r.epoch)
			m.fact("Confirmed(%s, epoch %d, %d)", r.name, r.epoch, r.made.czxid)
		}
		return
	}
	if s.watching == r.name && r.life == s.own {
		s.watching = ""
	}
	m.read(r)
}

func (m *model) read(r *request) {
	s := r.by
	if r.op == opRead && s.reads > 0 && r.life == s.own {
		s.reads--
	}
	s.dirty = true
	st := m.stakes[r.name]
	switch {
	case r.lost, st != nil && st.alive():
	case r.found:
		m.q.There(r.ask, m.name(r.name))
		m.seen(r, r.name)
		m.fact("There(%s)", r.name)
	default:
		m.gone(r.ask, r.mark, r.name)
	}
}

// seen: a name was there at some time after it was asked for.
func (m *model) seen(r *request, text string) {
	m.shown[text] = max(m.shown[text], r.mark)
}

func (m *model) listed(r *request) {
	s := r.by
	m.lists = slices.DeleteFunc(m.lists, func(l *request) bool { return l == r })
	if s.ownList == r {
		s.ownList = nil
	}
	s.dirty = true
	if r.lost {
		if s.stage == creating && s.searching {
			m.search(s)
		}
		return
	}
	if s.stage == creating && s.searching {
		m.searched(s, r)
	}
	var children []string
	for _, l := range r.dir.leaves {
		children = append(children, l.text)
		m.seen(r, l.text)
	}
	names := seqname.Participants(children, modelKinds[m.set.rule])
	missing, err := m.q.Listed(r.ask, Listing{names, r.dir.czxid, r.dir.pzxid})
	m.fact("Listed(%v, czxid %d, pzxid %d) = %d missing, %v",
		children, r.dir.czxid, r.dir.pzxid, len(missing), err)
	if (err != nil) != tooWide(r.dir.leaves) {
		m.fail("error %v of a list whose spread is too wide: %v", err,
			tooWide(r.dir.leaves))
	}
	for _, member := range missing {
		i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.m == member })
		if i < 0 || !m.slots[i].own.alive() {
			m.fail("missing is one that has ended")
		}
		if _, ok := m.l.now().find(member.Name().Text); ok {
			m.fail("%s is missing, and there", member.Name().Text)
		}
		m.end(m.slots[i], true)
	}
	if len(s.orphans) > 0 && s.m != nil && s.stage != creating {
		m.orphan(s, r)
	}
	if err != nil && s.stage == waiting {
		m.leave(s, false)
	}
}

// tooWide reports whether the numbers fit into no arc shorter than 2^30.
func tooWide(leaves []leaf) bool {
	if len(leaves) < 2 {
		return false
	}
	var numbers []uint32
	for _, l := range leaves {
		numbers = append(numbers, uint32(l.seq))
	}
	slices.Sort(numbers)
	widest := uint64(1<<32) - uint64(numbers[len(numbers)-1]) + uint64(numbers[0])
	for i := 1; i < len(numbers); i++ {
		widest = max(widest, uint64(numbers[i]-numbers[i-1]))
	}
	return 1<<32-widest >= 1<<30
}

// decide is a waiting goroutine's turn to judge, and to do what the decision says.
func (m *model) decide(s *slot) {
	m.poll(s)
	d := m.q.Decide(s.m, m.epoch)
	m.mix("decide")
	m.mixNumber(uint64(s.id))
	if m.tracing {
		m.say("decide %d: %s", s.id, show(d))
	}
	m.decided[s.id] = d
	s.dirty = false
	m.checkDecision(s, d)
	switch {
	case d.Granted:
		m.checkGrant(s, d)
		m.q.Held(s.m, d.First)
		s.own.ever = true
		m.fact("Held(%s, first %v)", s.own.leaf.text, d.First)
		s.stage = held
	case d.Over:
		if s.own.alive() {
			m.leave(s, false)
		}
	default:
		m.ask(s, d)
	}
}

// ask sends what a decision asks for, unless it is on its way.
func (m *model) ask(s *slot, d Decision) {
	if d.Local != nil {
		m.watchDirectory(s)
	}
	if d.Behind.Text != "" && d.Local == nil && s.watching != d.Behind.Text {
		if asks := m.k.watches[d.Behind.Text]; asks != nil {
			if len(asks) < 4 {
				again := asked{m.asking(), m.questions}
				m.k.watches[d.Behind.Text] = append(slices.Clone(asks), again)
			}
		} else {
			s.watching = d.Behind.Text
			s.outbox = append(s.outbox, m.request(s, opWatch, d.Behind.Text))
		}
	}
	if (d.Confirm || d.Ask == ConfirmOwn) && !s.confirming {
		s.confirming = true
		m.count(s, d)
		s.outbox = append(s.outbox, m.request(s, opWatch, s.own.leaf.text))
	}
	switch {
	case d.Ask == ReadAhead && s.reads == 0:
		m.count(s, d)
		s.reads = len(d.Reads)
		for _, n := range d.Reads {
			s.outbox = append(s.outbox, m.request(s, opRead, n.Text))
		}
	case d.Ask == List:
		m.askList(s, d)
	}
}

func (m *model) askList(s *slot, d Decision) {
	serves := slices.ContainsFunc(m.lists, func(r *request) bool {
		return m.q.Serves(r.ask, s.m, m.epoch)
	})
	switch {
	case s.syncing, serves:
	case d.Sync && (!m.hasSynced || m.synced != m.epoch):
		s.syncing = true
		s.outbox = append(s.outbox, m.request(s, opSync, ""))
	default:
		m.count(s, d)
		r := m.request(s, opList, "")
		m.lists = append(m.lists, r)
		s.outbox = append(s.outbox, r)
	}
}

// count: in quiet, nobody asks forever.
func (m *model) count(s *slot, d Decision) {
	if s.idleAsks++; m.quiet && s.idleAsks > 12 {
		m.fail("%d asks again and again: %s", s.id, show(d))
	}
}
