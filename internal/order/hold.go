package order

import "slices"

// Held says that m, which was granted, is about to be relied on; first is
// [Decision.First]. The driver calls it before anybody relies on m, and [Queue.Refused]
// if nobody may. It is ignored of a member that has ended.
func (q *Queue) Held(m *Member, first bool) {
	q.tick()
	if m.state != stateWaiting {
		return
	}
	m.state, m.first = stateHeld, first
	if first {
		q.others = 0
	}
}

// Refused takes [Queue.Held] back: the session could not be relied on, so nobody has the
// hold, and m waits again. What granted it is of a time that can be long past at the next
// try, and its znode can be gone since. So only a list counts for m that is asked for
// after this call. It is ignored of a member that has ended.
func (q *Queue) Refused(m *Member) {
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
		q.end(m, stateInUse)
	case m.lives() || m.state == stateInUse && !inUse:
		q.end(m, stateHandedOver)
		if m.first {
			q.raise(m)
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
		q.end(m, stateHandedOver)
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
// servers can still show for a while: whoever is behind then waits as for a znode of
// another process.
func (q *Queue) Removed(m *Member, gone bool) {
	if at := q.at(m); at >= 0 {
		q.members = slices.Delete(q.members, at, at+1)
	}
	q.end(m, stateRemoved)
	if gone {
		q.goes(m.name, q.now, 0, 0)
	}
}
