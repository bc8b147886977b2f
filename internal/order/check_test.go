package order

import (
	"fmt"
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// isIdle reports whether there is no member and no create under way.
func (q *Queue) isIdle() bool { return len(q.members) == 0 && len(q.coming) == 0 }

// check verifies what the comments on the fields promise.
func (q *Queue) check() error {
	for i, m := range q.members {
		if err := m.check(q.now); err != nil {
			return fmt.Errorf("member %s: %w", m.name.Text, err)
		}
		before := q.members[max(i-1, 0)].name // itself, of the first
		if m.name.Before(before) && !m.name.Far(before) {
			return fmt.Errorf("member %s is out of order", m.name.Text)
		}
		if slices.Contains(q.members[:i], m) {
			return fmt.Errorf("member %s is there twice", m.name.Text)
		}
	}
	for kind, count := range q.coming {
		if count <= 0 {
			return fmt.Errorf("creates of %q: %v", kind, q.coming)
		}
	}
	if q.changed > q.now || q.aheadOfFirst < 0 {
		return fmt.Errorf(
			"changed %d, now %d, ahead %d", q.changed, q.now, q.aheadOfFirst)
	}
	if (q.incarnationKnown != 0) != (q.incarnation != 0) {
		return fmt.Errorf(
			"directory %d, watched %v", q.incarnation, q.incarnationKnown != 0)
	}
	for i, a := range q.absent {
		if i >= absentAtMost || a.gone < q.last.asked || a.gone > q.now ||
			i > 0 && a.gone < q.absent[i-1].gone {
			return fmt.Errorf("absent since %d: %v, asked at %d", a.gone, a, q.last.asked)
		}
	}
	if q.last.told != 0 && q.settled == 0 {
		return fmt.Errorf("a list was kept that is not firm")
	}
	return q.last.check(q.now)
}

func (m *Member) check(now moment) error {
	switch {
	case m.state >= stateRemoved:
		return fmt.Errorf("it is removed")
	case (m.ended != 0) != !m.lives():
		return fmt.Errorf("state %d, ended at %d", m.state, m.ended)
	case m.confirmed != 0 && !m.lives():
		return fmt.Errorf("it has ended and is confirmed")
	case m.first && m.state == stateWaiting:
		return fmt.Errorf("it waits and is first")
	case m.under != nil && m.under.name.Seq != m.name.Seq:
		return fmt.Errorf("its number is not its writer's, %s", m.under.name.Text)
	case max(m.joined, m.ended, m.doubted) > now || m.joined == 0:
		return fmt.Errorf("now is %d: %v", now, *m)
	}
	return nil
}

func (s *snapshot) check(now moment) error {
	if s.asked > s.told || s.told > now {
		return fmt.Errorf("the list of %d, told at %d, now %d", s.asked, s.told, now)
	}
	for i, e := range s.entries {
		switch {
		case i > 0 && !s.entries[i-1].Before(e.Name):
			return fmt.Errorf("entry %s is out of order", e.Text)
		case max(e.seen, e.gone, e.asked) > now || e.seen < s.asked:
			return fmt.Errorf("entry %v, asked at %d, now %d", e, s.asked, now)
		case e.asked > e.gone || e.gone != 0 && e.gone < s.asked:
			return fmt.Errorf("entry %s: gone at %d, by %d", e.Text, e.gone, e.asked)
		}
	}
	if n := len(s.entries); n > 0 {
		spread := s.entries[n-1].Seq - s.entries[0].Seq
		if uint32(spread) >= seqname.SpreadLimit {
			return fmt.Errorf("the numbers are %d apart", spread)
		}
	}
	return nil
}
