package order

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// A queue is a Queue, or one with a planted fault.
type queue interface {
	Creating(kind string, session int64) Plan
	Created(c Creation) *Member
	NotCreated(kind string)
	Asking(e Epoch, synced bool) Stamp
	Serves(a Stamp, m *Member, now Epoch) bool
	Listed(a Stamp, l Listing) ([]*Member, error)
	Gone(a Stamp, n seqname.Name)
	There(a Stamp, n seqname.Name)
	LearnToken(m *Member, token int64)
	Confirmed(m *Member, e Epoch)
	Unconfirmed(m *Member)
	Doubt(m *Member)
	LearnIncarnation(e Epoch, czxid int64)
	Held(m *Member, first bool)
	NotHeld(m *Member)
	Left(m *Member, isInUse bool)
	Lost(m *Member)
	Removed(m *Member, gone bool)
	Decide(m *Member, now Epoch) Decision
	isIdle() bool
	Watermark() (Watermark, bool)
	Remember(w Watermark)
	check() error
}

// inTheWay returns who has to go before st's turn, by the leader's list: all that are
// ahead and exclude it, and are not ours and done. Numbers made by hand after st's znode
// are outside the protocol: who makes them breaks every queue. Nested ones are not.
func (m *model) inTheWay(st *stake, t tree, all bool) (found []leaf) {
	for _, l := range t.leaves {
		switch own := m.stakes[l.text]; {
		case l.text == st.leaf.text || !ahead(l, st.leaf):
		case !all && !excludes(m.set.rule, l, st.leaf):
		case l.forged && !l.nested && own == nil && l.czxid > st.leaf.czxid:
		case own != nil && own.m != nil && own.yields():
		case all && own != nil && own.m == nil && own.leaf.nested && m.isOver(l):
		case st.under != nil && l.text == st.under.leaf.text:
		default:
			found = append(found, l)
		}
	}
	return found
}

// isOver reports whether the writer of ours under which a reader was created, of which
// was not told yet, has ended: then the reader is withdrawn.
func (m *model) isOver(nested leaf) bool {
	for _, w := range m.stakes {
		if w.m != nil && w.leaf.seq == nested.seq && w.leaf.kind != nested.kind &&
			w.yields() {
			return true
		}
	}
	return false
}

// judge keeps the account of our znodes after a change at the leader, or of our own.
func (m *model) judge() {
	t := m.l.now()
	for _, l := range t.leaves {
		if l.session != 0 && m.stakes[l.text] == nil {
			l.nested, l.forged = l.forged, false
			m.stakes[l.text] = &stake{leaf: l}
		}
	}
	for _, st := range m.stakes {
		if st.ended {
			continue
		}
		way := m.inTheWay(st, t, false)
		l, ok := t.find(st.leaf.text)
		if !ok || l.czxid != st.leaf.czxid {
			st.ended, st.endedAt, st.way = true, m.l.head(), way
			continue
		}
		st.turn = st.turn || len(way) == 0
		st.first = st.first || len(m.inTheWay(st, t, true)) == 0
	}
}

// checkGrant: by a list that is in step with the leader it would be a turn, too, or it
// was one before our znode was deleted. Else the grant is a hand-over in the process: who
// was ahead when our znode went has left since.
func (m *model) checkGrant(s *slot, d Decision) {
	st, t := s.own, m.l.now()
	way := m.inTheWay(st, t, false)
	if st.ended && d.By&(ByNeighbour|ByNumber) != 0 {
		way = nil // a hand-over, which does not look
	} else if st.ended {
		way = nil
		for _, l := range st.way {
			own := m.stakes[l.text]
			// What it is nested under is known only since its create was answered.
			isItsWriter := own != nil && own == st.under
			if !isItsWriter && (own == nil || own.m == nil || !own.yields()) {
				way = append(way, l)
			}
		}
	}
	way = byNumber(m, d, way)
	if !st.turn && len(way) > 0 {
		m.fail("%s is granted by %b, behind %s (deleted since: %v)", st.leaf.text, d.By,
			leafTexts(way), st.ended)
	}
	first := byNumber(m, d, m.inTheWay(st, t, true))
	if d.First && !st.first && !st.ended && len(first) > 0 {
		m.fail("%s is called first, behind %s", st.leaf.text, leafTexts(first))
	}
	if st.ended && st.endedAt <= st.refused {
		m.fail("%s is granted by %b, deleted at %d; a hold was refused at %d",
			st.leaf.text, d.By, st.endedAt, st.refused)
	}
	m.checkToken(s)
}

// byNumber leaves out numbers made by hand if the decision did not look at names.
func byNumber(m *model, d Decision, way []leaf) []leaf {
	if d.By&(ByNeighbour|ByNumber) == 0 {
		return way
	}
	return slices.DeleteFunc(slices.Clone(way), func(l leaf) bool {
		return l.forged && !l.nested && m.stakes[l.text] == nil
	})
}

// checkToken: between the tokens of those ahead and of those behind.
func (m *model) checkToken(s *slot) {
	token, st := s.m.Token(), s.own
	if st.under != nil {
		if token != st.under.m.Token() {
			m.fail("%s has not its writer's token", st.leaf.text)
		}
		return
	}
	if token == 0 {
		return
	}
	if token < st.leaf.czxid {
		m.fail("%s has the token %d, and was made at %d", st.leaf.text, token,
			st.leaf.czxid)
	}
	if token > m.l.head() {
		m.fail("%s has the token %d, and it is %d", st.leaf.text, token, m.l.head())
	}
	for _, l := range m.l.state(token).leaves {
		if !l.forged && l.czxid > st.leaf.czxid && ahead(st.leaf, l) {
			m.fail("%s has the token %d, and %s was made at %d",
				st.leaf.text, token, l.text, l.czxid)
		}
	}
}

// checkDecision looks at what must be true of every decision.
func (m *model) checkDecision(s *slot, d Decision) {
	kinds := 0
	for _, is := range []bool{d.Granted, d.Over, d.Behind.Text != "", d.Ask != Nothing} {
		if is {
			kinds++
		}
	}
	behind := d.Behind.Text
	if kinds != 1 && (kinds != 0 || !d.Confirm) {
		m.fail("a decision of %d kinds: %s", kinds, show(d))
	}
	if d.First && !d.Granted || d.Ask == ReadAhead && len(d.Reads) < 2 {
		m.fail("an impossible decision: %s", show(d))
	}
	if behind != "" && m.isGone(behind) {
		m.fail("%d is behind %s, which is told gone", s.id, behind)
	}
	if beyond := d.Beyond.Text; beyond != "" && (d.Local != nil || m.isGone(beyond) ||
		!d.Beyond.Before(d.Behind)) {
		m.fail("%d is behind %s, and %s is beyond", s.id, behind, beyond)
	}
	for _, n := range d.Reads {
		if m.isGone(n.Text) {
			m.fail("%d reads %s, which is told gone", s.id, n.Text)
		}
	}
	if own := m.stakes[behind]; own != nil && own.m != nil {
		if own.removed && d.Local != nil {
			m.fail("%d is behind %s of this process, which is removed", s.id, behind)
		}
		if d.Local != nil && d.Local != own.m {
			m.fail("%d is behind %s, and Local is another", s.id, behind)
		}
	}
	if d.Over && s.own.alive() && (s.own.under == nil || s.own.under.alive()) {
		m.fail("%d is over, and lives", s.id)
	}
	if d.Ahead < 0 || d.Ahead > 0 && d.By != ByNeighbour && d.Ahead > m.everAhead(s.own) {
		m.fail("%d are ahead of %s, and %d ever were", d.Ahead, s.own.leaf.text,
			m.everAhead(s.own))
	}
}

// isGone reports whether a name was told gone, and nothing that was asked for later has
// shown it. A bare name can be used again: what shows it may be newer than the news.
func (m *model) isGone(text string) bool {
	at, ok := m.told[text]
	return ok && m.shown[text] < at && !strings.HasPrefix(text, "bare")
}

// everAhead is how many stood ahead of a znode, at any time since shortly before it.
func (m *model) everAhead(st *stake) int {
	names := map[string]bool{}
	for _, t := range m.l.history {
		for _, l := range t.leaves {
			if l.text != st.leaf.text && ahead(l, st.leaf) {
				names[l.text] = true
			}
		}
	}
	return len(names)
}

// checkQuiet: all is told and all is asked, so who can have its turn has it.
func (m *model) checkQuiet() {
	t := m.l.now()
	for _, s := range m.slots {
		if s.stage != waiting {
			continue
		}
		d := m.decided[s.id]
		behind := m.stakes[d.Behind.Text]
		l, there := t.find(d.Behind.Text)
		keeps := there && (l.forged || behind != nil && behind.removed) // a failed delete
		if !keeps && len(m.inTheWay(s.own, t, false)) == 0 {
			m.fail("all is quiet, it is %s's turn, and it has not got it: %s",
				s.own.leaf.text, show(d))
		}
		if d.Behind.Text == "" {
			m.fail("all is quiet, and %d asks: %s", s.id, show(d))
		}
		if !there {
			m.fail("%d waits behind %s, which is gone", s.id, d.Behind.Text)
		}
		if !ahead(l, s.own.leaf) || !excludes(m.set.rule, l, s.own.leaf) {
			m.fail("%d waits behind %s without need", s.id, d.Behind.Text)
		}
		if own := m.stakes[l.text]; d.Local == nil && own != nil && own.alive() &&
			own.m != nil {
			m.fail("%d does not see that %s is of this process", s.id, l.text)
		}
	}
}

func leafTexts(leaves []leaf) string {
	var found []string
	for _, l := range leaves {
		found = append(found, l.text)
	}
	return strings.Join(found, ", ")
}

// show is a decision, for people.
func show(d Decision) string {
	switch {
	case d.Granted:
		return fmt.Sprintf("granted, first %v, by %b, ahead %d", d.First, d.By, d.Ahead)
	case d.Over:
		return "over"
	case d.Ask == List:
		return fmt.Sprintf("list, sync %v, ahead %d", d.Sync, d.Ahead)
	case d.Ask == ReadAhead:
		return fmt.Sprintf("read %v, ahead %d", d.Reads, d.Ahead)
	case d.Ask == ConfirmOwn:
		return "confirm own"
	}
	return fmt.Sprintf("behind %s, local %v, confirm %v, ahead %d, by %b",
		d.Behind.Text, d.Local != nil, d.Confirm, d.Ahead, d.By)
}
