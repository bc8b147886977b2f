package order

import (
	"cmp"
	"slices"
)

// A snapshot is a list, and what has become of those on it. Nobody joins ahead of
// another, so a list that shows a member has all who can ever be ahead of it, but for
// those who are nested.
type snapshot struct {
	// entries are in order, and no two are spreadLimit apart.
	entries []entry

	// The list was asked for, and told later. The zero moment: there was none.
	asked, told moment
	epoch       Epoch

	czxid, pzxid int64 // of the directory
}

// An entry is a participant that a list has shown.
type entry struct {
	Name
	seen moment // when it was asked for that has shown it last
	// When it was told that the entry has gone, and when that was asked for. The first is
	// zero while the entry is there, the second if a member of this process has gone.
	gone, by moment
}

// find returns the index of a name, and whether it is there.
func (s *snapshot) find(n Name) (int, bool) {
	return slices.BinarySearchFunc(s.entries, n, func(e entry, n Name) int {
		return Compare(e.Name, n)
	})
}

// isNewer reports whether a firm list shows a later time than s.
func (s *snapshot) isNewer(a Question, l Listing) bool {
	switch {
	case s.asked == 0 || a.epoch > s.epoch:
		return true
	case a.epoch < s.epoch:
		return false
	case l.Pzxid == s.pzxid:
		return a.at > s.asked
	}
	return l.Pzxid > s.pzxid || a.at > s.told
}

// newSnapshot makes one of a list.
func newSnapshot(a Question, l Listing, told moment) snapshot {
	s := snapshot{
		entries: make([]entry, len(l.Names)),
		asked:   a.at, told: told, epoch: a.epoch, czxid: l.Czxid, pzxid: l.Pzxid,
	}
	for i, n := range l.Names {
		s.entries[i] = entry{Name: n, seen: a.at}
	}
	return s
}

// keep takes over what was told of those in an older snapshot after s was asked for. A
// recreated directory can have the same name for another znode. A list that was asked for
// later, and shows what had been gone, proves that wrong.
func (s *snapshot) keep(old *snapshot) {
	if old.czxid != s.czxid {
		return
	}
	for _, was := range old.entries {
		if was.gone < s.asked && was.seen < s.asked {
			continue
		}
		if i, ok := s.find(was.Name); ok {
			is := &s.entries[i]
			is.seen = max(is.seen, was.seen)
			if was.gone > s.asked {
				is.gone, is.by = was.gone, was.by
			}
		}
	}
}

// An absence is what was told of a participant that the last list does not show.
type absence struct {
	Name
	gone, by  moment // see entry
	directory int64  // the incarnation; zero of a member, whose name no other has
}

// absentAtMost bounds what is remembered. One that is forgotten costs a read.
const absentAtMost = 32

// goes takes note that n has gone. directory is zero of a member.
func (q *Queue) goes(n Name, told, by moment, directory int64) {
	if at, ok := q.last.find(n); ok && (directory == q.last.czxid || directory == 0) {
		q.last.goneAt(at, told, by)
		return
	}
	if len(q.absent) == absentAtMost {
		q.absent = slices.Delete(q.absent, 0, 1)
	}
	q.absent = append(q.absent, absence{n, told, by, directory})
}

// show replaces the last list.
func (q *Queue) show(s snapshot) {
	s.keep(&q.last)
	if q.last.czxid != s.czxid {
		q.remember(s.asked)
	}
	q.last = s
	q.absent = slices.DeleteFunc(q.absent, func(a absence) bool {
		return a.gone < s.asked
	})
	for _, a := range q.absent {
		at, ok := s.find(a.Name)
		if ok && (a.directory == s.czxid || a.directory == 0) {
			s.goneAt(at, a.gone, a.by)
		}
	}
}

// remember keeps who has gone from the last list, of another incarnation: a list of that
// one may be under way.
func (q *Queue) remember(asked moment) {
	for _, e := range q.last.entries {
		if e.gone > asked {
			q.absent = append(q.absent, absence{e.Name, e.gone, e.by, q.last.czxid})
		}
	}
	slices.SortFunc(q.absent, func(a, b absence) int {
		return cmp.Compare(a.gone, b.gone)
	})
	q.absent = slices.Delete(q.absent, 0, max(0, len(q.absent)-absentAtMost))
}

// goneAt takes note that the entry at an index has gone, told again or not.
func (s *snapshot) goneAt(at int, told, by moment) {
	e := &s.entries[at]
	e.gone, e.by = told, by
}

// shows returns the index at which the snapshot shows m, false if it tells nothing of m's
// place.
func (q *Queue) shows(m *Member, now Epoch) (self int, ok bool) {
	s := &q.last
	if s.asked == 0 || s.epoch != now || s.asked <= m.doubted ||
		m.orphans && s.told < m.joined || q.rules.Fresh && s.asked <= q.changed {
		return 0, false
	}
	return s.find(m.name)
}

// Followed reports whether the last list that shows m shows a participant behind it that
// has to wait for it.
func (q *Queue) Followed(m *Member) bool {
	self, ok := q.last.find(m.name)
	if !ok {
		return false
	}
	for i := range q.last.entries[self+1:] {
		if q.rules.Excludes(m.name, q.last.entries[self+1+i].Name) {
			return true
		}
	}
	return false
}
