package order

// Decide judges m by the facts, with the cheapest source that suffices. now is the epoch,
// read before the call and after all facts that the decision may rest on were polled. It
// may be called at any time and any number of times; it remembers only what is told to
// users (the count ahead, and whether m has met a stranger). It allocates only for Reads.
//
// A grant is of the moment of the call: the driver tells it by [Queue.Held], and not if
// facts of m were told in between. Decide of a held member repeats the grant.
func (q *Queue) Decide(m *Member, now Epoch) Decision {
	switch w := m.under; {
	case !m.lives():
		return Decision{Over: true}
	case m.state == stateHeld:
		return Decision{Granted: true, First: m.first}
	case w != nil && (w.state != stateHeld || w.session != m.session):
		return Decision{Over: true}
	}
	d, ok := q.judge(m, now)
	switch {
	case !ok:
		return Decision{Ask: List, Sync: !q.settled.holds(now)}
	case d.Ask != Nothing:
		return d
	case d.Behind.Text != "" && d.Local == nil:
		m.met = true
	}
	if q.members[0] == m {
		q.others = d.Ahead
	}
	return d
}

// judge asks the sources, the cheapest first; false if none of them suffices.
func (q *Queue) judge(m *Member, now Epoch) (d Decision, ok bool) {
	if m.under != nil {
		return q.byWriter(m, now)
	}
	if d, ok = q.byNeighbour(m, now); ok {
		return d, true
	}
	if d, ok = q.byNumber(m, now); ok {
		return d, true
	}
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
		Behind: b.name, Local: b, LocalOnly: true, Ahead: q.others + at,
		Confirm: m.token == 0 && !m.confirmed.holds(now), Useful: true, By: ByNeighbour,
	}, true
}

// byWriter judges one that reads under a writer, which has to have been there when m was:
// if somebody had deleted it before, and the event is late, another may have come in.
// From then on m keeps others out by itself.
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

// Serves reports whether a list under way that was sent after the Question may serve m.
// It need not show m: it can have overtaken m's create.
func (q *Queue) Serves(a Question, m *Member, now Epoch) bool {
	return a.epoch == now && a.at > m.doubted && (a.firm || m.epoch == now) &&
		(!q.rules.Fresh || a.at > q.changed)
}
