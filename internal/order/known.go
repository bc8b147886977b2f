package order

import (
	"cmp"
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// goes takes note that n has gone. directory is zero of a member.
func (q *Queue) goes(n seqname.Name, told, by moment, directory int64) {
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
