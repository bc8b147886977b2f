package order

// An Ask is what the driver has to find out before it calls Decide again.
type Ask uint8

const (
	// Nothing is to be asked: the decision stands until a fact is told.
	Nothing Ask = iota
	// List says to list the directory, after a sync if Decision.Sync is set, and report
	// [Queue.Listed]. A list under way will do if [Queue.Serves] says so; so will the one
	// that was sent behind m's create, once it is reported after Created.
	List
	// ReadAhead says to read the znodes in Decision.Reads, all at once by one Question,
	// and report [Queue.There] or [Queue.Gone] of each.
	ReadAhead
	// ConfirmOwn says to read m's own znode with a watch, and report [Queue.Confirmed].
	// Only its token is missing.
	ConfirmOwn
)

// A Decision says what a member has to do. Exactly one of Granted, Over, Behind and Ask
// is set.
type Decision struct {
	// Granted: it is the member's turn. First: nobody at all is ahead, whether or not it
	// excludes the member. Only a grant has First. A reader does not count that was
	// created under a writer of this process, and whose Created was not told before that
	// writer ended: it is over. If the token is not known, the driver waits for Confirmed
	// before it calls Held.
	Granted, First bool

	// Over: the member has ended, or the writer that it reads under has. Its owner
	// rejoins, after Left or Lost if the member has not ended.
	Over bool

	// Behind is the blocker: wait until it has gone, by a watch on its znode, then report
	// [Queue.Gone]. Its Text is empty if there is none. It is none that was told to have
	// gone, from the same directory, after the request was sent that has shown it last,
	// unless very many were.
	Behind Name
	// Local is the blocker if it is a member that lives, of the same session. No watch is
	// set on it: call Decide again after its Left, Lost or Removed. The driver begins to
	// watch the directory ([Queue.Directory]) if it does not, so that numbers can tell
	// who is next.
	Local *Member
	// LocalOnly: the blocker is the nearest of this process, and nothing was asked about
	// others. Ahead is a guess then.
	LocalOnly bool
	// Confirm: confirm m's own znode now, by a read with a watch, besides waiting for
	// Behind. Either the token is not known, or Behind is the last in the way, and its
	// end grants only if m is confirmed by then.
	Confirm bool

	Ask   Ask
	Sync  bool   // of List: the server may lag behind what was seen before the reconnect
	Reads []Name // of ReadAhead, the nearest first; at least two

	// Ahead is how many participants are ahead, as far as is known, whether or not they
	// exclude the member. It counts members that have left, until their znodes are gone.
	Ahead int
	// By is the source of the decision; zero if there is a question to ask.
	By Sources
}

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

// uses reports whether a source may be used.
func (q *Queue) uses(s Sources) bool { return !q.rules.Fresh && q.rules.Without&s == 0 }

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
		Confirm: m.token == 0 && !m.confirmed.holds(now), By: ByNeighbour,
	}, true
}

// nearest returns the last of members that has to go before another of the same session;
// nil if there is none.
func (q *Queue) nearest(members []*Member, other Name, session int64) *Member {
	for i := len(members) - 1; i >= 0; i-- {
		if members[i].goesBefore(other, session, q.rules.Excludes) {
			return members[i]
		}
	}
	return nil
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
