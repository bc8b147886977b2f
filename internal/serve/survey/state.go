package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A State is what a Survey knows at a moment. What it has slices of is not to be changed.
type State struct {
	At       time.Time `json:"at"` // by the servers' clock
	Version  uint64    `json:"version"`
	Outdated time.Time `json:"outdatedSince,omitzero"` // zero: it is up to date
	Walked   time.Time `json:"walked,omitzero"`        // when the last walk ended
	Watched  int       `json:"watched"`                // directories
	Locks    []Lock    `json:"locks"`                  // by path
	// Registrations are by path, too.
	Registrations []Registration `json:"registrations"`
	Findings      []Finding      `json:"findings"`
}

// A Lock is what is known of a lock.
type Lock struct {
	Path      string        `json:"path"`
	Recipe    string        `json:"recipe"`
	Queue     []Participant `json:"queue"`
	More      int           `json:"more,omitempty"` // participants that are not in Queue
	Handovers uint64        `json:"handovers"`
	// Missed is how many participants came and left unseen. Each may have held.
	Missed   uint64    `json:"missed"`
	Changed  time.Time `json:"changed,omitzero"`
	Outdated time.Time `json:"outdatedSince,omitzero"`
}

// Holders are the participants that hold.
func (l Lock) Holders() []Participant {
	return slices.DeleteFunc(slices.Clone(l.Queue), func(p Participant) bool {
		return p.State != queues.Holds
	})
}

// Waiters is how many wait, as far as is known.
func (l Lock) Waiters() int { return len(l.Queue) - len(l.Holders()) + l.More }

// HeldSince is since when the oldest holder holds; zero if nobody does.
func (l Lock) HeldSince() time.Time { return l.oldest(queues.Holds).Held }

// WaitingSince is since when the first one waits; zero if nobody does.
func (l Lock) WaitingSince() time.Time { return l.oldest(queues.Waits).Since }

// oldest is who has been in that state for longest; the zero value if nobody has.
func (l Lock) oldest(state string) (first Participant) {
	for _, p := range l.Queue {
		at, than := p.Since, first.Since
		if state == queues.Holds {
			at, than = p.Held, first.Held
		}
		if p.State == state && !at.IsZero() && (than.IsZero() || at.Before(than)) {
			first = p
		}
	}
	return first
}

// A Finding is something that is wrong, as zklock doctor would say.
type Finding struct {
	Kind FindingKind `json:"kind"`
	Path string      `json:"path"` // of the lock, or of what was not looked at
	Text string      `json:"text"`
	// Others are more locks that a deadlock concerns.
	Others []string `json:"others,omitempty"`
	// Certain is false of what may be on purpose.
	Certain bool `json:"certain"`
}

// Concerns tells whether a finding is about what is at a path.
func (f Finding) Concerns(path string) bool {
	return f.Path == path || slices.Contains(f.Others, path)
}

// A FindingKind says what is wrong.
type FindingKind string

// Kinds of findings, the worst first.
const (
	Deadlock  FindingKind = "deadlock"
	Ownerless FindingKind = "ownerless"
	Apart     FindingKind = "far_apart"
	Counter   FindingKind = "counter"
	Old       FindingKind = "old_holder"
	Mixed     FindingKind = "several_recipes"
	Rights    FindingKind = "wide_rights"
	Unrelated FindingKind = "unrelated"
	Skipped   FindingKind = "skipped"
)

// FindingKinds are all, the worst first.
var FindingKinds = []FindingKind{
	Deadlock, Ownerless, Apart, Counter, Old, Mixed, Rights, Unrelated, Skipped,
}

// rank is lower for what is worse.
func (k FindingKind) rank() int { return slices.Index(FindingKinds, k) }

// quiet is for how long there may be no sign of life before what is known is outdated.
const quiet = 1750 * time.Millisecond

// State returns what is known now. It is for a page or a scrape, not for a loop: it costs
// some milliseconds for each thousand locks.
func (s *Survey) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.now()
	state := State{
		At: now, Version: s.version, Walked: s.walked, Watched: len(s.dirs),
		Outdated: s.outdatedLocked(), Locks: []Lock{},
		Registrations: s.registrationsLocked(), Findings: []Finding{},
	}
	crowd := queues.NewCrowd()
	for _, l := range s.locks {
		if l.recipe == "" {
			continue
		}
		one := s.lockLocked(l)
		if !one.Outdated.IsZero() {
			state.Outdated = earliest(state.Outdated, one.Outdated)
		}
		state.Locks = append(state.Locks, one)
		state.Findings = append(state.Findings, s.findingsLocked(l, one, now)...)
		crowd.Add(l.members)
	}
	state.Findings = append(state.Findings, deadlocks(crowd)...)
	state.Findings = append(state.Findings, s.elsewhereLocked()...)
	slices.SortFunc(state.Locks, func(a, b Lock) int {
		return cmp.Compare(a.Path, b.Path)
	})
	slices.SortFunc(state.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Kind.rank(), b.Kind.rank()),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Text, b.Text))
	})
	return state
}

// outdatedLocked is since when nothing was heard of ZooKeeper, if that is too long.
func (s *Survey) outdatedLocked() time.Time {
	if time.Since(s.contact) > quiet {
		return s.contact.Add(s.clock.offset())
	}
	return time.Time{}
}

// earliest returns the first of two times of which the zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (s *Survey) lockLocked(l *lock) Lock {
	one := Lock{
		Path: l.path, Recipe: l.recipe, Queue: s.locatedLocked(l.queue), More: l.more,
		Handovers: l.handovers, Missed: l.missed, Changed: l.changed,
	}
	for _, d := range l.dirs {
		if d != nil {
			one.Outdated = earliest(one.Outdated, d.stale)
		}
	}
	return one
}

// Detail returns a lock with the stays of those who have left, the oldest first.
func (s *Survey) Detail(path string) (l Lock, stays []Stay, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.locks[path]
	if of == nil || of.recipe == "" {
		return Lock{}, nil, false
	}
	return s.lockLocked(of), append([]Stay{}, of.stays...), true
}

// findingsLocked are what is wrong with a lock.
func (s *Survey) findingsLocked(l *lock, known Lock, now time.Time) (all []Finding) {
	find := func(kind FindingKind, certain bool, format string, args ...any) {
		all = append(all, Finding{
			Kind: kind, Path: l.path, Certain: certain,
			Text: fmt.Sprintf(format, args...),
		})
	}
	for _, m := range l.members {
		if m.Session == queues.NoSession && !m.Since.IsZero() {
			find(Ownerless, true, "%s belongs to no session: it blocks the queue until "+
				"somebody deletes it (zklock evict)", m.Node)
		}
	}
	for _, d := range l.dirs {
		if d == nil || d.stat == nil {
			continue
		}
		for _, two := range queues.Apart(d.sub, d.children) {
			find(Apart, true, "%s and %s: their numbers are too far apart, so nobody "+
				"acquires the lock; delete the one that no lock created", two[0], two[1])
		}
		if at, near := queues.Counter(d.stat); near {
			find(Counter, true, "the sequence counter of %s is at %d, near its limit of "+
				"%d: delete the path while nobody uses it", d.path, at,
				queues.CounterLimit)
		}
	}
	isElection := strings.HasPrefix(l.recipe, "leader")
	if p := known.oldest(queues.Holds); !isElection && p.Session != queues.NoSession &&
		!p.Held.IsZero() && now.Sub(p.Held) > s.config.Old {
		find(Old, false, "%s has held it since %s, for longer than %v", p.Who(),
			p.Held.Local().Format(time.DateTime), s.config.Old)
	}
	if l.recipe == mixed {
		find(Mixed, true, "several recipes use this path, which do not exclude each "+
			"other")
	}
	if l.rights != "" {
		find(Rights, true, "%s on the path, but not on the znodes in it: it can take "+
			"the lock from others", l.rights)
	}
	return all
}

// deadlocks are the circles of sessions that wait for each other.
func deadlocks(crowd *queues.Crowd) (all []Finding) {
	crowd.Settle()
	for _, circle := range crowd.Circles() {
		var others []string
		for _, w := range circle[1:] {
			others = append(others, w.Wanted.Path)
		}
		all = append(all, Finding{
			Kind: Deadlock, Path: circle[0].Wanted.Path, Others: others,
			Text: "possible: " + queues.CircleText(circle) + "; " + whoIsWho(circle),
		})
	}
	return all
}

// whoIsWho names the sessions of a circle.
func whoIsWho(circle []queues.Wait) string {
	all := make([]string, len(circle))
	for i, w := range circle {
		all[i] = fmt.Sprintf("%s is %s", w.Who, text.Shorten(w.Data, stayData))
	}
	return strings.Join(all, ", ")
}

// elsewhereLocked are what is wrong outside of locks.
func (s *Survey) elsewhereLocked() (all []Finding) {
	for path := range s.unrelated {
		all = append(all, Finding{
			Kind: Unrelated, Path: zkpath.Parent(path), Certain: true,
			Text: path + " is unrelated: no lock creates such a znode; it is safe, but " +
				"keeps the path from being deleted",
		})
	}
	for path, why := range s.skipped {
		all = append(all, Finding{
			Kind: Skipped, Path: path, Text: "it was not looked at: " + why.text,
		})
	}
	for limit := range s.exceeded {
		all = append(all, Finding{Kind: Skipped, Path: "/", Text: limit})
	}
	return all
}
