package order

import "github.com/zkrecipes/recipes/internal/seqname"

// A way is what a snapshot tells of those ahead of a member.
type way struct {
	ahead   int  // how many there are
	isClear bool // none of them counts: they have ended, and nobody was nested under one
	blocker int  // the index of the nearest that excludes the member; -1: none
	member  *Member
	more    int // how many others exclude it
	beyond  int // the index of the nearest of these, if it is not ours; -1: none
	// altered: one that excludes the member has gone, or ended, since the list was asked
	// for, so that the list alone proves nothing.
	altered bool
	// Of those that altered the way, are of other processes, and are nearer than blocker:
	// when the last of them was told to have gone, and when that was asked for.
	gone, by moment
}

// wayOf goes through those ahead of the one at self, the nearest first, and at the same
// time through the members ahead of m, which are in the same order.
func (q *Queue) wayOf(m *Member, self int) way {
	w := way{blocker: -1, beyond: -1, isClear: true}
	s, members := &q.last, q.members[:q.at(m)]
	for i := self - 1; i >= 0; i-- {
		e := &s.entries[i]
		for len(members) > 0 && e.Before(members[len(members)-1].name) {
			members = members[:len(members)-1]
		}
		var own *Member
		if k := len(members) - 1; k >= 0 && members[k].name == e.Name {
			own = members[k]
		}
		w.pass(q, m, i, own)
	}
	return w
}

// pass takes the next one into account.
func (w *way) pass(q *Queue, m *Member, i int, own *Member) {
	e := &q.last.entries[i]
	excludes := q.rules.Excludes(e.Name, m.name)
	if e.gone != 0 {
		w.altered = w.altered || excludes
		w.isClear = w.isClear && !q.rules.Nested(e.Name)
		if excludes && w.blocker < 0 && e.by != 0 && e.gone > w.gone {
			w.gone, w.by = e.gone, e.by
		}
		return
	}
	w.ahead++
	if own != nil && own.mayPass(m) && !q.rules.Fresh {
		since := own.ended > q.last.asked
		w.altered = w.altered || excludes && since
		w.isClear = w.isClear && (!since || !q.rules.Nested(e.Name))
		return
	}
	w.isClear = false
	switch {
	case !excludes:
	case w.blocker >= 0:
		if w.more++; w.more == 1 && own == nil {
			w.beyond = i
		}
	default:
		w.blocker = i
		if own != nil && own.lives() && own.session == m.session {
			w.member = own
		}
	}
}

// A read costs the servers, and this process, about as much as some hundred names of a
// list, but fewer bytes than four. So several are worth it instead of a list only if that
// is long, and so many at most are under way.
const (
	namesPerRead = 64
	readsAtMost  = 64
)

// byList judges m by the last list and by what has been told since.
func (q *Queue) byList(m *Member, now Epoch) (d Decision, ok bool) {
	self, ok := q.shows(m, now)
	if !ok {
		return d, false
	}
	w := q.wayOf(m, self)
	nested := q.rules.Nested(m.name)
	// What happened after the list counts only together with m's own znode, which was
	// there then. Nobody may have turned up ahead.
	proves := !nested && q.rules.Ordered && m.confirmed.holds(now) && q.uses(ByKnownList)
	if w.blocker < 0 {
		d = Decision{
			Granted: true, First: w.isClear, Ahead: w.ahead, By: w.source(),
		}
		return d, !w.altered || proves
	}
	blocker := &q.last.entries[w.blocker]
	stale := w.member == nil && w.gone > blocker.seen && w.by != blocker.seen
	if w.altered && !q.uses(ByKnownList) || stale && !proves {
		return d, false
	}
	if stale {
		if d, ok = q.bySmallReads(m, w); d.Ask != Nothing || !ok {
			return d, ok
		}
	}
	// Whether what is known by then can grant once the blocker has gone.
	known := w.member == nil && !nested && q.rules.Ordered && q.uses(ByKnownList)
	d = Decision{
		Behind: blocker.Name, Local: w.member, Ahead: w.ahead, By: w.source(),
		Confirm: !m.confirmed.holds(now) && (m.token == 0 || known && w.more == 0),
		Useful:  len(q.last.entries) >= 2*namesPerRead,
	}
	if known && w.beyond >= 0 && !d.Useful && q.members[0] == m {
		d.Beyond = q.last.entries[w.beyond].Name
	}
	return d, true
}

func (w *way) source() Sources {
	if w.altered {
		return ByKnownList
	}
	return ByList
}

// bySmallReads asks for those left in the way, if reads are worth it instead of a list.
// One that is left alone is read as the watch on it is set.
func (q *Queue) bySmallReads(m *Member, w way) (d Decision, ok bool) {
	left := 1 + w.more
	switch {
	case !q.uses(SmallReads):
		return d, false
	case left == 1:
		return d, true
	case left > min(len(q.last.entries)/namesPerRead, readsAtMost):
		return d, false
	}
	d = Decision{Ask: ReadAhead, Reads: make([]seqname.Name, 0, left), Ahead: w.ahead}
	for i := w.blocker; i >= 0; i-- {
		e := &q.last.entries[i]
		if e.gone == 0 && q.rules.Excludes(e.Name, m.name) && !q.isPassed(m, e.Name) {
			d.Reads = append(d.Reads, e.Name)
		}
	}
	return d, true
}

// isPassed reports whether n is a member that self need not wait for.
func (q *Queue) isPassed(self *Member, n seqname.Name) bool {
	own := q.member(n)
	return own != nil && own.mayPass(self)
}
