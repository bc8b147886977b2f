package order

import "github.com/zkrecipes/recipes/internal/seqname"

// raise takes note that m, which had nobody ahead, has left and does nothing any more.
// Whoever has the next number has the turn then, without a request.
func (q *Queue) raise(m *Member) {
	q.Remember(Watermark{Seq: m.name.Seq, Token: m.token, MetStranger: m.met})
}

// counts reports whether numbers count for one of that name.
func (q *Queue) counts(self seqname.Name) bool {
	return q.uses(ByNumber) && q.rules.Ordered && q.mark.Token != 0 &&
		!q.rules.Nested(self)
}

// byNumber judges by number whether it is m's turn: whether all between the watermark and
// m are members, and not in its way. All of them, and m, have to be of the directory that
// is there now: their tokens are greater than its own then. That m's znode is there is
// not proven; the watch on it tells the holder. So it does not count for m once that is
// doubted.
func (q *Queue) byNumber(m *Member, now Epoch) (d Decision, ok bool) {
	if !q.counts(m.name) || m.orphans || m.doubted != 0 || !q.since.holds(now) ||
		q.mark.Token < q.directory {
		return d, false
	}
	ahead, isClear, ok := q.between(m)
	switch {
	case !ok:
		return d, false
	case m.token == 0:
		return Decision{Ask: ConfirmOwn, Ahead: ahead}, true
	case m.token < q.directory, q.isListedBehind(m, now):
		return d, false
	}
	return Decision{Granted: true, First: isClear, Ahead: ahead, By: ByNumber}, true
}

// isListedBehind reports whether the last list shows somebody in the way of m. Numbers
// that are made by hand, or twice by servers that have come to differ, do not tell.
func (q *Queue) isListedBehind(m *Member, now Epoch) bool {
	self, ok := q.shows(m, now)
	return ok && q.wayOf(m, self).blocker >= 0
}

// between goes through the members between the watermark and m, the nearest first. It
// returns how many are ahead, and whether all have handed over (isClear). ok is false
// if a number is missing, and so somebody else's; if one of them has to go before m; or
// if one is of a former directory. A reader under a writer has the writer's number, not
// one of its own; the writer may have left, and be the watermark.
func (q *Queue) between(m *Member) (ahead int, isClear, ok bool) {
	next, isClear := m.name.Seq, true
	for i := q.at(m) - 1; i >= 0 && q.members[i].name.Seq-q.mark.Seq >= 0; i-- {
		b := q.members[i]
		passed := b.mayPass(m)
		if !passed && q.rules.Excludes(b.name, m.name) {
			return 0, false, false
		}
		isClear = isClear && passed
		if b.under != nil || b.name.Seq == q.mark.Seq {
			continue
		}
		if next--; b.name.Seq != next || b.token < q.directory {
			return 0, false, false
		}
		ahead++
	}
	return ahead, isClear, next-1 == q.mark.Seq
}
