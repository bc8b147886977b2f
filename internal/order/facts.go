package order

import "github.com/zkrecipes/recipes/internal/seqname"

// Asking is called before a request is sent whose answer is reported as a fact, and
// before a watch is used that is pending already: the answer or the event is reported
// with the Question. e is the epoch, read before the call. synced says that a sync of the
// directory was answered in this epoch before.
func (q *Queue) Asking(e Epoch, synced bool) Question {
	if synced {
		q.settle(e)
	}
	return Question{
		at: q.tick(), epoch: e, firm: q.settled.holds(e), directory: q.last.czxid,
	}
}

// settle takes note that the server of an epoch has caught up with this process: it has
// answered a create, or a sync.
func (q *Queue) settle(e Epoch) {
	q.settled = max(q.settled, in(e))
}

// Listed says what a list has shown that was sent after that Question. Lists may be
// reported late and in any order. It returns the members, waiting or held, that must have
// been in the list and are not: their znodes are gone, as far as a list can tell, and the
// driver ends them ([Queue.Lost], then [Queue.Removed]). A list that was asked for before
// a member's Created cannot prove that one gone, nor can one after a reconnect without a
// sync.
//
// It returns an error, and ignores the list, if the order in it is not certain
// ([seqname.CheckSpread]). A request that failed is not reported, nor is an answer that
// came in a later epoch than that of the Question: the request may have been sent in the
// later one.
func (q *Queue) Listed(a Question, l Listing) (missing []*Member, err error) {
	if err := seqname.CheckSpread(l.Names); err != nil {
		return nil, err
	}
	list := newSnapshot(a, l, q.tick())
	for _, m := range q.members {
		at, shown := list.find(m.name)
		if shown && at == len(l.Names)-1 {
			m.learnToken(l.Pzxid)
		}
		// Its server has applied the create, so all that came before that as well.
		a.firm = a.firm || shown && m.epoch == a.epoch
	}
	if !a.firm {
		return nil, nil
	}
	for _, m := range q.members {
		if !m.lives() || m.joined > a.at {
			continue
		}
		if _, shown := list.find(m.name); !shown {
			missing = append(missing, m)
		}
	}
	if q.last.isNewer(a, l) {
		q.show(list)
	}
	return missing, nil
}

// Gone says that the znode of a participant was seen to be gone: by the event of a watch
// that was pending after the Question, or by a read that was sent after it. Events may
// come late, also after a list that does not show the znode; they may not be reported
// before [Queue.Unconfirmed] of each member whose own watch has fired by then, and
// [Queue.Directory] of a directory's watch that has. The driver polls these first.
//
// It is for znodes of other processes, and for members that ended and whose znodes
// others wait for; a member that lives and whose znode is gone is [Queue.Lost] and then
// [Queue.Removed].
func (q *Queue) Gone(a Question, n seqname.Name) {
	directory := a.directory
	if m := q.member(n); m != nil {
		q.Lost(m)
		directory = 0
	}
	q.goes(n, q.change(), a.at, directory)
}

// There says that a read that was sent after the Question has found the znode of a
// participant. A driver that was asked for reads ([ReadAhead]) reports each of them by
// There or Gone. It also reports the read by which it sets a watch on [Decision.Behind].
func (q *Queue) There(a Question, n seqname.Name) {
	q.tick()
	if at, ok := q.last.find(n); ok && a.directory == q.last.czxid {
		e := &q.last.entries[at]
		e.seen = max(e.seen, a.at)
		if e.gone < a.at {
			e.gone, e.by = 0, 0
		}
	}
}

// Confirmed says that m's own znode was read, with a watch that is pending. e is the
// epoch, read before the request was sent; the confirmation lapses with it. czxid is the
// znode's. If the read does not find the znode, the driver ends m.
func (q *Queue) Confirmed(m *Member, e Epoch, czxid int64) {
	q.tick()
	if m.lives() {
		m.confirmed = in(e)
		m.learnToken(czxid)
	}
}

// Unconfirmed says that the watch on m's own znode has fired. A change of its data is
// followed by another read and Confirmed, a deletion by Lost and Removed.
func (q *Queue) Unconfirmed(m *Member) {
	q.change()
	m.confirmed = 0
}

// Doubt says that m has to be shown by a list that is asked for after this call, before
// anything grants it the turn: something happened that no fact expresses. That is, a
// watch fired with something else than a deletion, or a poll found a znode gone whose
// watch had not fired.
func (q *Queue) Doubt(m *Member) {
	m.doubted = q.change()
}

// Directory says that the directory was read, with a watch that is pending, and its
// czxid: its incarnation. e is the epoch, read before the request was sent; the knowledge
// lapses with it. czxid 0: the watch has fired, whatever the reason. The driver polls the
// watch before each call of [Queue.Decide] and of [Queue.Gone].
func (q *Queue) Directory(e Epoch, czxid int64) {
	if q.tick(); czxid == 0 {
		q.change()
	}
	q.directory, q.since = czxid, 0
	if czxid != 0 {
		q.since = in(e)
	}
}
