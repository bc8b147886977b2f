package order

import (
	"cmp"
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// A Watermark is how far a queue has come: everybody up to a number has gone from it, or
// is a member that has left and does nothing any more.
type Watermark struct {
	Seq   int32
	Token int64 // of the member that left; the watermark counts in one incarnation only
	// MetStranger is Member.met of that member
	MetStranger bool
}

// A Queue is what one connection knows of one queue: a value that facts change and
// [Queue.Decide] judges. It is not safe for concurrent use. One Queue serves all members
// that the process has in the queue by that connection, and lives on from one session of
// the connection to the next.
type Queue struct {
	rules Rules

	// now is the last moment; no moment that is kept anywhere is later. changed is that
	// of the last fact that can change a decision.
	now, changed moment

	// members are in the order of the queue, each until it is removed, none twice. Those
	// of a former directory can stand anywhere. coming counts the creates under way by
	// their kinds, none with a count of zero.
	members []*Member
	coming  map[string]int

	// aheadOfFirst is how many were ahead of the first member when that was decided last.
	// Nothing but the count that users are shown depends on it.
	aheadOfFirst int

	// mark is the watermark; its token is zero while there is none. A raised one has a
	// larger token.
	mark Watermark

	// incarnation is that of the directory, by the last call of LearnIncarnation; zero if
	// it is not known. incarnationKnown is the epoch of that, and set if and only if that
	// is.
	incarnation      int64
	incarnationKnown lapsing

	// settled is the latest epoch whose server is known to have applied all that this
	// process had seen before that epoch.
	settled lapsing

	// last is the newest firm list, with what has become of those on it. absent are those
	// that were reported gone and are not on it, the oldest first: a list under way may
	// show them. There are absentAtMost at most, all reported after last was asked for.
	last   snapshot
	absent []absence
}

// New returns a queue of which nothing is known.
func New(r Rules) *Queue {
	if r.Nested == nil {
		r.Nested = func(seqname.Name) bool { return false }
	}
	return &Queue{rules: r, coming: map[string]int{}}
}

// Watermark returns how far the queue has come, false if that is not known. It is what is
// worth keeping of a queue without members and creates under way, which may be forgotten.
func (q *Queue) Watermark() (Watermark, bool) { return q.mark, q.mark.Token != 0 }

// Remember raises the watermark, unless a newer one is known: a new queue's to that of an
// earlier one of the same connection and directory.
func (q *Queue) Remember(w Watermark) {
	if w.Token > q.mark.Token {
		q.mark = w
	}
}

// Creating says that a create of a znode of that kind, in that session, is about to be
// sent. Each call is followed by one of [Queue.Created] or [Queue.NotCreated]. The create
// of a reader under a writer is not announced.
func (q *Queue) Creating(kind string, session int64) Plan {
	// A guess, before there is a name: led if a member goes first most likely, or a
	// create under way whose number will be lower. A wrong guess costs a request, no
	// more.
	next, led := seqname.Name{Kind: kind, Seq: 1}, false
	for other := range q.coming {
		led = led || q.rules.Excludes(seqname.Name{Kind: other}, next)
	}
	q.coming[kind]++
	if last := len(q.members) - 1; last >= 0 {
		next.Seq = q.members[last].name.Seq + 1
		led = led || q.nearest(q.members, next, session) != nil
	}
	switch {
	case led && q.uses(ByNeighbour):
		return NoList
	case q.counts(next) && !q.mark.MetStranger:
		// Nobody else came lately, so the number will do, and saves the list.
		return WithDirectory
	}
	return WithList
}

// NotCreated says that a create that was announced has made no znode, or none that is to
// be a member.
func (q *Queue) NotCreated(kind string) { q.came(kind) }

// came ends an announcement: the create of that kind is not under way any more.
func (q *Queue) came(kind string) {
	if q.coming[kind]--; q.coming[kind] <= 0 {
		delete(q.coming, kind)
	}
}

// Created says what a create has made, and returns the new member, which waits. It ends
// the announcement by [Queue.Creating], if Under is nil. If the znode was deleted or its
// session ended meanwhile, the driver calls it all the same, then [Queue.Lost] and
// [Queue.Removed].
func (q *Queue) Created(c Creation) *Member {
	m := &Member{
		name: c.Name, session: c.Session, under: c.Under, orphans: c.Orphans,
		epoch: c.Epoch, token: c.Czxid, joined: q.change(),
	}
	if c.Under == nil {
		q.came(c.Name.Kind)
	}
	m.met = q.isGap(m) // before m is a member
	// Another member's list may have shown m before its create was reported. If m is the
	// last on it, the directory's pzxid is of m's create, or of a later delete.
	if n := len(q.last.entries); n > 0 && q.last.entries[n-1].Name == m.name {
		m.learnToken(q.last.pzxid)
	}
	q.insert(m)
	q.settle(c.Epoch)
	return m
}

// isGap reports whether others have joined between the watermark and m, the only member.
func (q *Queue) isGap(m *Member) bool {
	return m.under == nil && len(q.members) == 0 && q.counts(m.name) &&
		m.name.Seq != q.mark.Seq+1
}

// insert puts m where it belongs among the members. Those of a former directory, of which
// it was not reported yet that they are gone, can be so far away that there is no order
// of all: they go to the front, so that those of one directory are in order.
func (q *Queue) insert(m *Member) {
	at := len(q.members)
	if at > 0 && (m.name.Far(q.members[0].name) || m.name.Far(q.members[at-1].name)) {
		slices.SortStableFunc(q.members, func(a, b *Member) int {
			switch far := m.name.Far(a.name); {
			case far == m.name.Far(b.name):
				return 0
			case far:
				return -1
			}
			return 1
		})
	}
	for ; at > 0; at-- {
		b := q.members[at-1].name
		if !m.name.Before(b) || m.name.Far(b) {
			break
		}
	}
	q.members = slices.Insert(q.members, at, m)
}

// Asking is called before a request is sent whose answer is reported as a fact, and
// before a watch is used that is pending already: the answer or the event is reported
// with the Stamp. e is the epoch, read before the call. synced says that a sync of the
// directory was answered in this epoch before.
func (q *Queue) Asking(e Epoch, synced bool) Stamp {
	if synced {
		q.settle(e)
	}
	return Stamp{
		at: q.tick(), epoch: e, firm: q.settled.isTrue(e), incarnation: q.last.czxid,
	}
}

// settle takes note that the server of an epoch has caught up with this process: it has
// answered a create, or a sync.
func (q *Queue) settle(e Epoch) {
	q.settled = max(q.settled, in(e))
}

// Listed says what a list has shown that was sent after the Stamp. Lists may be reported
// late and in any order. It returns the members, waiting or held, that must have been in
// the list and are not: their znodes are gone, as far as a list can tell, and the driver
// ends them ([Queue.Lost], then [Queue.Removed]). A list that was asked for before a
// member's Created cannot prove that one gone, nor can one after a reconnect without a
// sync.
//
// It returns an error, and ignores the list, if the order in it is not certain
// ([seqname.CheckSpread]). A request that failed is not reported, nor is an answer that
// came in a later epoch than the Stamp's: the request may have been sent in that one.
func (q *Queue) Listed(stamp Stamp, l Listing) (missing []*Member, err error) {
	if err := seqname.CheckSpread(l.Names); err != nil {
		return nil, err
	}
	list := newSnapshot(stamp, l, q.tick())
	// Each member that it shows says something about it, so all are gone through before
	// the list is judged.
	for _, m := range q.members {
		at, shown := list.find(m.name)
		if shown && at == len(l.Names)-1 {
			m.learnToken(l.Pzxid)
		}
		// Its server has applied the create, so all that came before that as well.
		stamp.firm = stamp.firm || shown && m.epoch == stamp.epoch
	}
	if !stamp.firm {
		return nil, nil // the server may lag behind: what is missing may be there
	}
	for _, m := range q.members {
		if !m.lives() || m.joined > stamp.at {
			continue // it may have been created after the list
		}
		if _, shown := list.find(m.name); !shown {
			missing = append(missing, m)
		}
	}
	if q.last.isNewer(stamp, l) {
		q.replaceLast(list)
	}
	return missing, nil
}

// Gone says that the znode of a participant was seen to be gone: by the event of a watch
// that was pending after the Stamp, or by a read that was sent after it. Events may
// come late, also after a list that does not show the znode.
//
// It is for znodes of other processes, and for members that ended and whose znodes
// others wait for; a member that lives and whose znode is gone is [Queue.Lost] and then
// [Queue.Removed].
func (q *Queue) Gone(stamp Stamp, n seqname.Name) {
	incarnation := stamp.incarnation
	if m := q.member(n); m != nil {
		q.Lost(m)
		incarnation = 0 // the name of a member is known to be that member's
	}
	q.noteGone(n, q.change(), stamp.at, incarnation)
}

// There says that a read that was sent after the Stamp has found the znode of a
// participant. A driver that was asked for reads ([ReadAhead]) reports each of them by
// There or Gone. It also reports the read by which it sets a watch on [Decision.Behind].
func (q *Queue) There(stamp Stamp, n seqname.Name) {
	q.tick()
	if at, ok := q.last.find(n); ok && stamp.incarnation == q.last.czxid {
		e := &q.last.entries[at]
		e.seen = max(e.seen, stamp.at)
		// A report from before the read was wrong, or of another incarnation. One from
		// after it is newer than what the read saw.
		if e.gone < stamp.at {
			e.gone, e.asked = 0, 0
		}
	}
}

// LearnToken says what m's token is; 0: that is not known yet. It is ignored of a member
// that has ended, and if the token is known.
func (q *Queue) LearnToken(m *Member, token int64) {
	if m.lives() {
		m.learnToken(token)
	}
}

// Confirmed says that m's own znode was read, with a watch that is pending. e is the
// epoch, read before the request was sent; the confirmation lapses with it. If the read
// does not find the znode, the driver ends m.
func (q *Queue) Confirmed(m *Member, e Epoch) {
	q.tick()
	if m.lives() {
		m.confirmed = in(e)
	}
}

// Unconfirmed says that no watch on m's own znode is pending: it has fired, or was never
// set. A change of its data is followed by another read and Confirmed, a deletion by Lost
// and Removed.
func (q *Queue) Unconfirmed(m *Member) {
	q.change()
	m.confirmed = 0
}

// Doubt says that a list that is asked for after this call has to show m, before
// anything grants it the turn: something happened that no fact expresses. That is, a
// watch fired with something else than a deletion, or a poll found a znode gone whose
// watch had not fired.
func (q *Queue) Doubt(m *Member) {
	m.doubted = q.change()
}

// LearnIncarnation says that the directory was read, with a watch that is pending, and
// its czxid: its incarnation. e is the epoch, read before the request was sent; the
// knowledge lapses with it. czxid 0: no watch is pending. It has fired, whatever the
// reason, or was never set. The driver polls the watch before each call of
// [Queue.Decide].
func (q *Queue) LearnIncarnation(e Epoch, czxid int64) {
	if q.tick(); czxid == 0 {
		q.change() // somebody may have come or gone, or the directory itself
	}
	q.incarnation, q.incarnationKnown = czxid, 0
	if czxid != 0 {
		q.incarnationKnown = in(e)
	}
}

// Held says that m, which was granted, is about to be relied on; first is
// [Decision.First]. The driver calls it before anybody relies on m, and [Queue.NotHeld]
// if nobody may. It is ignored of a member that has ended.
func (q *Queue) Held(m *Member, first bool) {
	q.tick()
	if m.state != stateWaiting {
		return
	}
	m.state, m.first = stateHeld, first
	if first {
		q.aheadOfFirst = 0 // so the count for those behind m is right until the next list
	}
}

// NotHeld takes [Queue.Held] back: the session could not be relied on, so nobody has the
// hold, and m waits again. What granted it is of a time that can be long past at the next
// try, and its znode can be gone since. So only a list counts for m that is asked for
// after this call. It is ignored of a member that has ended.
func (q *Queue) NotHeld(m *Member) {
	if m.state != stateHeld {
		return
	}
	m.state, m.first = stateWaiting, false
	m.doubted = q.change()
}

// Left says that m ended by its owner's wish, before the delete of its znode is sent.
// inUse: something may be done under the znode yet, such as a transaction whose outcome
// is open; others wait until the znode is gone then. A second call with false says that
// nothing can be done any more.
func (q *Queue) Left(m *Member, inUse bool) {
	switch {
	case m.lives() && inUse:
		q.end(m, stateInUse) // those behind wait for the znode, as other processes do
	case m.lives() || m.state == stateInUse && !inUse:
		q.end(m, stateHandedOver)
		if m.first {
			// All up to m's number have left, and do nothing any more. So the next number
			// has its turn without a request. Its create may be answered before m's
			// delete.
			q.Remember(Watermark{Seq: m.name.Seq, Token: m.token, MetStranger: m.met})
		}
	}
}

// Lost says that m ended otherwise: its znode is gone or is about to be deleted, its
// session has ended, or it cannot be relied on. If it was held, others wait until the
// znode is gone: its owner may not have heard of the loss yet. It is ignored of a member
// that has ended.
func (q *Queue) Lost(m *Member) {
	switch m.state {
	case stateWaiting:
		q.end(m, stateHandedOver) // nobody ever relied on it
	case stateHeld:
		q.end(m, stateLost)
	}
}

func (q *Queue) end(m *Member, s state) {
	m.state, m.ended, m.confirmed = s, q.change(), 0
}

// Removed says that m is no member any more; no call with m may follow but Decide. It is
// called once, after [Queue.Left] or [Queue.Lost]. gone: an answer or an event said that
// the znode is gone. If not, the delete failed, or the session ended, whose znodes the
// servers can still show for a while: those behind then wait as for a znode of
// another process.
func (q *Queue) Removed(m *Member, gone bool) {
	if at := q.at(m); at >= 0 {
		q.members = slices.Delete(q.members, at, at+1)
	}
	q.end(m, stateRemoved)
	if gone {
		// asked is zero: nobody was asked about it. So it makes no blocker stale.
		q.noteGone(m.name, q.now, 0, 0)
	}
}

// noteGone takes note that n has gone. incarnation is zero of a member.
func (q *Queue) noteGone(n seqname.Name, gone, asked moment, incarnation int64) {
	if at, ok := q.last.find(n); ok && (incarnation == q.last.czxid || incarnation == 0) {
		q.last.entries[at].gone, q.last.entries[at].asked = gone, asked
		return
	}
	// A list under way, sent before, may still show it.
	if len(q.absent) == absentAtMost {
		q.absent = slices.Delete(q.absent, 0, 1)
	}
	q.absent = append(q.absent, absence{n, gone, asked, incarnation})
}

// replaceLast makes s the last list.
func (q *Queue) replaceLast(s snapshot) {
	s.keep(&q.last)
	if q.last.czxid != s.czxid {
		q.keepAbsent(s.asked)
	}
	q.last = s
	// What was reported before s was asked for, s shows by itself: who is not on it has
	// gone, and who is on it is there.
	q.absent = slices.DeleteFunc(q.absent, func(a absence) bool {
		return a.gone < s.asked
	})
	for _, a := range q.absent {
		at, ok := s.find(a.Name)
		if ok && (a.incarnation == s.czxid || a.incarnation == 0) {
			s.entries[at].gone, s.entries[at].asked = a.gone, a.asked
		}
	}
}

// keepAbsent keeps who has gone from the last list, of another incarnation: a list of
// that one may be under way.
func (q *Queue) keepAbsent(asked moment) {
	for _, e := range q.last.entries {
		if e.gone > asked {
			q.absent = append(q.absent, absence{e.Name, e.gone, e.asked, q.last.czxid})
		}
	}
	slices.SortFunc(q.absent, func(a, b absence) int {
		return cmp.Compare(a.gone, b.gone)
	})
	q.absent = slices.Delete(q.absent, 0, max(0, len(q.absent)-absentAtMost))
}

// tick begins a new moment.
func (q *Queue) tick() moment {
	q.now++
	return q.now
}

// change is tick for a fact that can change a decision.
func (q *Queue) change() moment {
	q.changed = q.tick()
	return q.changed
}

// at returns the place of m among the members.
func (q *Queue) at(m *Member) int { return slices.Index(q.members, m) }

// member returns the member of that name, nil if there is none.
func (q *Queue) member(n seqname.Name) *Member {
	for _, m := range q.members {
		if m.name == n {
			return m
		}
	}
	return nil
}

// uses reports whether a source may be used.
func (q *Queue) uses(s Sources) bool { return !q.rules.Fresh && q.rules.Without&s == 0 }

// nearest returns the last of members that lives, is of that session, and has to go
// before another one; nil if there is none.
func (q *Queue) nearest(members []*Member, other seqname.Name, session int64) *Member {
	for _, m := range slices.Backward(members) {
		if m.lives() && m.session == session && m.name.Before(other) &&
			q.rules.Excludes(m.name, other) {
			return m
		}
	}
	return nil
}
