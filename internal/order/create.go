package order

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// A Plan is what to send with a create.
type Plan uint8

const (
	// WithList says to send a list right behind the create, without waiting for its
	// answer.
	WithList Plan = iota
	// WithDirectory says to send no list if the connection tells the czxid of each create
	// and the driver can watch the directory ([Queue.Directory]), which it begins now.
	// Otherwise it does as for WithList.
	WithDirectory
	// Alone says to send nothing with it. A member of this process goes first most
	// likely.
	Alone
)

// Creating says that a create of a znode of that kind, in that session, is about to be
// sent. Each call is followed by one of [Queue.Created] or [Queue.NotCreated]. The create
// of a reader under a writer is not announced.
func (q *Queue) Creating(kind string, session int64) Plan {
	next, led := seqname.Name{Kind: kind, Seq: 1}, false
	for _, c := range q.coming {
		led = led || q.rules.Excludes(seqname.Name{Kind: c.kind}, next)
	}
	q.expect(kind)
	if last := len(q.members) - 1; last >= 0 {
		next.Seq = q.members[last].name.Seq + 1
		led = led || q.nearest(q.members, next, session) != nil
	}
	switch {
	case led && q.uses(ByNeighbour):
		return Alone
	case q.counts(next) && !q.mark.MetStranger:
		return WithDirectory
	}
	return WithList
}

// NotCreated says that a create that was announced has made no znode, or none that is to
// be a member.
func (q *Queue) NotCreated(kind string) {
	for i := range q.coming {
		if c := &q.coming[i]; c.kind == kind {
			if c.count--; c.count == 0 {
				q.coming = slices.Delete(q.coming, i, i+1)
			}
			return
		}
	}
}

func (q *Queue) expect(kind string) {
	for i := range q.coming {
		if q.coming[i].kind == kind {
			q.coming[i].count++
			return
		}
	}
	q.coming = append(q.coming, arrivals{kind, 1})
}

// A Creation is what a create has made.
type Creation struct {
	Name    seqname.Name
	Session int64 // that the znode lives in
	// Czxid of the znode; zero if it is not known.
	Czxid int64
	// Epoch that was read before the request was sent whose answer told of the znode: the
	// create itself, or the search for a create of unknown outcome.
	Epoch Epoch
	// Orphans: an earlier create of the same owner had an unknown outcome. Its znode can
	// be in the directory as well, ahead or behind. The driver deletes orphans that it
	// sees in any list that it reports after Created; until one has shown the member,
	// nothing else decides.
	Orphans bool
	// Under is the held writer whose number the znode was created with. It has to be a
	// member of the same queue. Nil for all others.
	Under *Member
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
		q.NotCreated(c.Name.Kind)
	}
	m.met = q.isGap(m)
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
// it was not told yet that they are gone, can be so far away that there is no order of
// all: they go to the front, so that those of one directory are in order.
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
