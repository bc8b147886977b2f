package order

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// Decide judges m by the facts, with the cheapest source that suffices. now is the epoch,
// read before the call, after the watches on m's znode and on the directory were polled.
// It may be called at any time and any number of times. It remembers only how many are
// ahead, which users are shown, and that m has met somebody (Member.met), which the plan
// of the next create depends on. It allocates only for Reads.
//
// A grant is of the moment of the call: the driver reports it by [Queue.Held], and not if
// facts of m were reported in between. Decide of a held member repeats the grant.
func (q *Queue) Decide(m *Member, now Epoch) Decision {
	switch w := m.under; {
	case !m.lives():
		return Decision{Over: true}
	case m.state == stateHeld:
		return Decision{Granted: true, First: m.first}
	case w != nil && (w.state != stateHeld || w.session != m.session):
		// A reader under a writer lives from the writer's hold: without that, others may
		// have come in that its list does not show.
		return Decision{Over: true}
	}
	d, ok := q.judge(m, now)
	switch {
	case !ok:
		return Decision{Ask: List, Sync: !q.settled.isTrue(now)}
	case d.Ask != Nothing:
		return d
	case d.Behind.Text != "" && d.Local == nil:
		m.met = true
	}
	if q.members[0] == m {
		q.aheadOfFirst = d.Ahead
	}
	return d
}

// judge queries the sources, the cheapest first; false if none of them suffices.
func (q *Queue) judge(m *Member, now Epoch) (d Decision, ok bool) {
	if m.under != nil {
		return q.byWriter(m, now)
	}
	// Needs no fact from a server: what this process knows of itself.
	if d, ok = q.byNeighbour(m, now); ok {
		return d, true
	}
	// Needs the watch on the directory, which is set once for all members.
	if d, ok = q.byNumber(m, now); ok {
		return d, true
	}
	// Needs a list that somebody here has asked for before.
	return q.byList(m, now)
}

// byNeighbour puts m behind the nearest of this process that has to go first. That is
// enough to know for as long as that one is there.
func (q *Queue) byNeighbour(m *Member, now Epoch) (d Decision, ok bool) {
	if !q.uses(ByNeighbour) || m.orphans {
		return d, false
	}
	at := q.at(m)
	b := q.nearest(q.members[:at], m.name, m.session)
	if b == nil {
		return d, false
	}
	return Decision{
		Behind: b.name, Local: b, Ahead: q.aheadOfFirst + at,
		Next:    b.state == stateHeld,
		Confirm: m.token == 0 && !m.confirmed.isTrue(now), Useful: true, By: ByNeighbour,
	}, true
}

// byWriter judges a reader under a writer. A list must show both of them: if somebody had
// deleted the writer before m was created, and the event is late, another may have come
// in. From then on m keeps others out by itself.
func (q *Queue) byWriter(m *Member, now Epoch) (d Decision, ok bool) {
	if _, ok = q.shows(m, now); !ok {
		return d, false
	}
	at, ok := q.last.find(m.under.name)
	if !ok || q.last.entries[at].gone != 0 {
		return d, false
	}
	return Decision{Granted: true, By: ByList}, true
}

// byNumber judges by number whether it is m's turn: whether all between the watermark and
// m are members, and not in its way. All of them, and m, must have been created in the
// directory that is there now: then their tokens are greater than its czxid. That m's
// znode is there is not proven, but the watch on it notifies the holder. So numbers do
// not count for m once that is doubted.
func (q *Queue) byNumber(m *Member, now Epoch) (d Decision, ok bool) {
	switch {
	case !q.counts(m.name), m.orphans, m.doubted != 0:
		return d, false
	case !q.incarnationKnown.isTrue(now), q.mark.Token < q.incarnation:
		return d, false // numbers start over in another incarnation
	}
	ahead, isClear, ok := q.between(m)
	switch {
	case !ok:
		return d, false
	case m.token == 0:
		// It may be m's turn, but is m of this incarnation? Its token says so.
		return Decision{Ask: ConfirmOwn, Ahead: ahead}, true
	case m.token < q.incarnation, q.isListedBehind(m, now):
		return d, false
	}
	return Decision{Granted: true, First: isClear, Ahead: ahead, By: ByNumber}, true
}

// counts reports whether numbers count for one of that name.
func (q *Queue) counts(self seqname.Name) bool {
	return q.uses(ByNumber) && q.rules.Ordered && q.mark.Token != 0 &&
		!q.rules.Nested(self)
}

// isListedBehind reports whether the last list shows somebody in the way of m. Numbers
// that are made by hand, or given twice by servers that have diverged, prove nothing.
func (q *Queue) isListedBehind(m *Member, now Epoch) bool {
	self, ok := q.shows(m, now)
	return ok && predecessorsOf(q, m, self).blocker >= 0
}

// between goes through the members between the watermark and m, the nearest first. It
// returns how many are ahead, and whether all have handed over (isClear). ok is false
// if a number is missing, and so somebody else's; if one of them has to go before m; or
// if one is of a former directory.
func (q *Queue) between(m *Member) (ahead int, isClear, ok bool) {
	next, isClear := m.name.Seq, true
	for i := q.at(m) - 1; i >= 0 && q.members[i].name.Seq-q.mark.Seq >= 0; i-- {
		b := q.members[i]
		lets := b.letsPass(m)
		if !lets && q.rules.Excludes(b.name, m.name) {
			return 0, false, false
		}
		isClear = isClear && lets
		if b.under != nil || b.name.Seq == q.mark.Seq {
			// A reader under a writer has the writer's number, not one of its own. The
			// writer may have left, and be the watermark.
			continue
		}
		if next--; b.name.Seq != next || b.token < q.incarnation {
			return 0, false, false
		}
		ahead++
	}
	return ahead, isClear, next-1 == q.mark.Seq
}

// A read costs the servers, and this process, about as much as some hundred names of a
// list, but fewer bytes than four. So several are worth it instead of a list only if that
// is long, and so many at most are under way.
const (
	namesPerRead = 64
	readsAtMost  = 64
)

// byList judges m by the last list and by what was reported since.
func (q *Queue) byList(m *Member, now Epoch) (d Decision, ok bool) {
	self, ok := q.shows(m, now)
	if !ok {
		return d, false
	}
	p := predecessorsOf(q, m, self)
	nested := q.rules.Nested(m.name)
	// What happened after the list counts only if m's own znode is known to be there
	// still, and if nobody may have turned up ahead since.
	proves := !nested && q.rules.Ordered && m.confirmed.isTrue(now) && q.uses(ByKnownList)
	if p.blocker < 0 {
		// Nobody is left in the way. If nobody was when the list was made, the list
		// proves the grant by itself: it shows m.
		d = Decision{
			Granted: true, First: p.isClear, Ahead: p.ahead, By: p.source(),
		}
		return d, !p.altered || proves
	}
	blocker := &q.last.entries[p.blocker]
	// Stale: a nearer one has gone since the blocker was last seen. The blocker may have
	// gone before that one, and nobody have noticed, since nobody watched it. Not so if
	// both were asked about at the same moment (ReadAhead).
	stale := p.member == nil && p.gone > blocker.seen && p.asked != blocker.seen
	if p.altered && !q.uses(ByKnownList) || stale && !proves {
		return d, false
	}
	if stale {
		if d, ok = q.bySmallReads(m, p); d.Ask != Nothing || !ok {
			return d, ok
		}
	}
	// Whether what is known by then can grant once the blocker has gone.
	known := p.member == nil && !nested && q.rules.Ordered && q.uses(ByKnownList)
	d = Decision{
		Behind: blocker.Name, Local: p.member, Ahead: p.ahead, By: p.source(),
		Next:    p.more == 0,
		Confirm: !m.confirmed.isTrue(now) && (m.token == 0 || known && p.more == 0),
		// From this length on, small reads may take the place of the next list.
		Useful: len(q.last.entries) >= 2*namesPerRead,
	}
	// Worth watching only if its end saves a list, and for the first of this process
	// alone: one ahead of m may wait for the same event.
	if known && p.beyond >= 0 && !d.Useful && q.members[0] == m {
		d.Beyond = q.last.entries[p.beyond].Name
	}
	return d, true
}

// bySmallReads asks for those in the way, if reads are worth it instead of a list; false
// if they are not. It asks for nothing if the blocker is the only one.
func (q *Queue) bySmallReads(m *Member, p predecessors) (d Decision, ok bool) {
	inTheWay := 1 + p.more
	switch {
	case !q.uses(SmallReads):
		return d, false
	case inTheWay == 1:
		return d, true // it is read as the watch on it is set
	case inTheWay > min(len(q.last.entries)/namesPerRead, readsAtMost):
		return d, false
	}
	d = Decision{Ask: ReadAhead, Reads: make([]seqname.Name, 0, inTheWay), Ahead: p.ahead}
	for i := p.blocker; i >= 0 && len(d.Reads) < inTheWay; i-- {
		e := &q.last.entries[i]
		if e.gone != 0 || !q.rules.Excludes(e.Name, m.name) {
			continue
		}
		if own := q.member(e.Name); own == nil || !own.letsPass(m) {
			d.Reads = append(d.Reads, e.Name)
		}
	}
	return d, true
}

// shows returns the index at which the last list shows m, false if it says nothing of m's
// position.
func (q *Queue) shows(m *Member, now Epoch) (self int, ok bool) {
	switch s := &q.last; {
	case s.asked == 0, s.epoch != now:
		return 0, false // there is none, or a server made it that may have lagged behind
	case s.asked <= m.doubted, q.rules.Fresh && s.asked <= q.changed:
		return 0, false
	case m.orphans && s.told < m.joined:
		return 0, false // the driver has not looked for orphans in it
	default:
		return s.find(m.name)
	}
}

// Serves reports whether a list under way that was sent after the Stamp may serve m.
// It need not show m: it can have overtaken m's create.
func (q *Queue) Serves(stamp Stamp, m *Member, now Epoch) bool {
	return stamp.epoch == now && stamp.at > m.doubted && (stamp.firm || m.epoch == now) &&
		(!q.rules.Fresh || stamp.at > q.changed)
}

// Followed reports whether the last list that shows m shows a participant behind it that
// has to wait for it.
func (q *Queue) Followed(m *Member) bool {
	self, ok := q.last.find(m.name)
	return ok && slices.ContainsFunc(q.last.entries[self+1:], func(e entry) bool {
		return q.rules.Excludes(m.name, e.Name)
	})
}
