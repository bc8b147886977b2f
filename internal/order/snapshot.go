package order

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// An entry is a participant that a list has shown.
type entry struct {
	seqname.Name
	seen moment // when the list, or the read, was asked for that has shown it last
	// When it was reported that the entry has gone; zero while it is there. And when that
	// was asked for; zero of a member, whose removal is reported without a question.
	gone, asked moment
}

// A snapshot is a list, and what has become of those on it. Nobody joins ahead of
// another, so a list that shows a member has all who can ever be ahead of it, but for
// those who are nested.
type snapshot struct {
	// entries are in order, and no two are seqname.SpreadLimit apart.
	entries []entry

	// The list was asked for, and reported later. The zero moment: there was none.
	asked, told moment
	epoch       Epoch

	czxid, pzxid int64 // of the directory
}

// find returns the index of a name, and whether it is there.
func (s *snapshot) find(n seqname.Name) (int, bool) {
	return slices.BinarySearchFunc(s.entries, n, func(e entry, n seqname.Name) int {
		return seqname.Compare(e.Name, n)
	})
}

// isNewer reports whether a firm list shows a later time than s.
func (s *snapshot) isNewer(stamp Stamp, l Listing) bool {
	switch {
	case s.asked == 0 || stamp.epoch > s.epoch:
		return true
	case stamp.epoch < s.epoch:
		return false
	case l.Pzxid == s.pzxid:
		// The same children. The later one lets more that was reported be dropped.
		return stamp.at > s.asked
	}
	// The pzxid grows within an incarnation. A smaller one is newer if its request was
	// sent once s was here: then the directory was recreated, or restored.
	return l.Pzxid > s.pzxid || stamp.at > s.told
}

// newSnapshot makes one of a list.
func newSnapshot(stamp Stamp, l Listing, told moment) snapshot {
	s := snapshot{
		entries: make([]entry, len(l.Names)),
		asked:   stamp.at, told: told, epoch: stamp.epoch, czxid: l.Czxid, pzxid: l.Pzxid,
	}
	for i, n := range l.Names {
		s.entries[i] = entry{Name: n, seen: stamp.at}
	}
	return s
}

// keep takes over from an older snapshot what was reported after s was asked for. It
// takes nothing from another incarnation: there the same name is another znode. What was
// reported before s was asked for, and is in s, was wrong.
func (s *snapshot) keep(old *snapshot) {
	if old.czxid != s.czxid {
		return
	}
	for _, was := range old.entries {
		if was.gone < s.asked && was.seen < s.asked {
			continue // s is newer than all that was known of it
		}
		if i, ok := s.find(was.Name); ok {
			is := &s.entries[i]
			is.seen = max(is.seen, was.seen)
			if was.gone > s.asked {
				is.gone, is.asked = was.gone, was.asked
			}
		}
	}
}

// An absence is what was reported of a participant that the last list does not show.
type absence struct {
	seqname.Name
	gone, asked moment // see entry
	incarnation int64  // zero of a member, whose name no other has
}

// absentAtMost bounds what is remembered. One that is forgotten costs a read.
const absentAtMost = 32
