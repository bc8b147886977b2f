package order

// predecessors are what the last list shows of those ahead of a member.
type predecessors struct {
	ahead   int  // how many there are
	isClear bool // none of them counts: they have ended, and nobody was nested under one
	blocker int  // the index of the nearest that excludes the member; -1: none
	member  *Member
	more    int // how many others exclude it
	beyond  int // the index of the nearest of these, if it is not ours; -1: none
	// altered: one that excludes the member has gone, or ended, since the list was asked
	// for, so that the list alone proves nothing.
	altered bool
	// Of those that altered it, are of other processes, and are nearer than blocker: when
	// the last of them was reported gone, and when that was asked for.
	gone, asked moment
}

// predecessorsOf goes through those ahead of the one at self, the nearest first, and at
// the same time through the members ahead of m, which are in the same order.
func predecessorsOf(q *Queue, m *Member, self int) predecessors {
	p := predecessors{blocker: -1, beyond: -1, isClear: true}
	s, members := &q.last, q.members[:q.at(m)]
	for i := self - 1; i >= 0; i-- {
		e := &s.entries[i]
		for len(members) > 0 && e.Before(members[len(members)-1].name) {
			members = members[:len(members)-1] // the list does not show it
		}
		var own *Member
		if k := len(members) - 1; k >= 0 && members[k].name == e.Name {
			own = members[k]
		}
		p.add(q, m, i, own)
	}
	return p
}

// add takes the next one into account: the entry at i, which is own if it is a member.
func (p *predecessors) add(q *Queue, m *Member, i int, own *Member) {
	e := &q.last.entries[i]
	excludes := q.rules.Excludes(e.Name, m.name)
	if e.gone != 0 {
		// It is out of the way. But readers may have come under it, if it was a writer.
		p.altered = p.altered || excludes
		p.isClear = p.isClear && !q.rules.Nested(e.Name)
		if excludes && p.blocker < 0 && e.asked != 0 && e.gone > p.gone {
			p.gone, p.asked = e.gone, e.asked
		}
		return
	}
	p.ahead++
	if own != nil && own.letsPass(m) && !q.rules.Fresh {
		// Its znode is there, but does not count. If it ended before the list was asked
		// for, the list shows those nested under it.
		endedSince := own.ended > q.last.asked
		p.altered = p.altered || excludes && endedSince
		p.isClear = p.isClear && (!endedSince || !q.rules.Nested(e.Name))
		return
	}
	p.isClear = false
	switch {
	case !excludes:
	case p.blocker >= 0:
		if p.more++; p.more == 1 && own == nil {
			p.beyond = i
		}
	default:
		p.blocker = i
		if own != nil && own.lives() && own.session == m.session {
			p.member = own // it reports its end itself, so no watch is needed
		}
	}
}

func (p *predecessors) source() Sources {
	if p.altered {
		return ByKnownList
	}
	return ByList
}
