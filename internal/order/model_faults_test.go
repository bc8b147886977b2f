package order

import (
	"slices"
	"testing"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// A fault is a wrong variant of the core, made at its door: the facts that it would
// ignore are not told, or told as if it did not look at them. The model has to refute
// each, so that it shows what it can see; what is wrong inside is left to tests of
// mutants.
type fault struct {
	name  string
	seed  uint64 // the first that showed it, when it was last searched for
	rules func(*Rules)
	plant func(queue) queue
}

// A faulty tells a queue something else than what it was told, where a function is set.
type faulty struct {
	queue
	epoch  Epoch // the newest that it was told
	asking func(e Epoch, synced bool) (Epoch, bool)
	list   func(f *faulty, a *Stamp, l *Listing)
	err    bool // Listed returns none
	lost   func(f *faulty, m *Member)
	gone   func(f *faulty, a Stamp, n seqname.Name)
	fired  func(m *Member)
	decide func(q *Queue, m *Member, now Epoch) Decision
	dir    func(f *faulty, e Epoch, czxid int64)
	first  bool // each hold is the first
	stale  bool // what was known grants what was refused
	done   bool // nothing is in use
	frozen bool // the epoch never grows
}

func (f *faulty) at(e Epoch) Epoch {
	f.epoch = max(f.epoch, e)
	if f.frozen {
		return 0
	}
	return e
}

func (f *faulty) Asking(e Epoch, synced bool) Stamp {
	e = f.at(e)
	if f.asking != nil {
		e, synced = f.asking(e, synced)
	}
	return f.queue.Asking(e, synced)
}

func (f *faulty) Serves(a Stamp, m *Member, now Epoch) bool {
	return f.queue.Serves(a, m, f.at(now))
}

func (f *faulty) Decide(m *Member, now Epoch) Decision {
	if f.decide != nil {
		return f.decide(f.queue.(*Queue), m, f.at(now))
	}
	return f.queue.Decide(m, f.at(now))
}

func (f *faulty) Confirmed(m *Member, e Epoch) { f.queue.Confirmed(m, f.at(e)) }

func (f *faulty) Created(c Creation) *Member {
	c.Epoch = f.at(c.Epoch)
	return f.queue.Created(c)
}

func (f *faulty) Listed(a Stamp, l Listing) ([]*Member, error) {
	if f.list != nil {
		f.list(f, &a, &l)
	}
	missing, err := f.queue.Listed(a, l)
	if f.err {
		err = nil
	}
	return missing, err
}

func (f *faulty) Lost(m *Member) {
	if f.lost != nil {
		f.lost(f, m)
		return
	}
	f.queue.Lost(m)
}

func (f *faulty) Gone(a Stamp, n seqname.Name) {
	if f.gone != nil {
		f.gone(f, a, n)
		return
	}
	f.queue.Gone(a, n)
}

func (f *faulty) Unconfirmed(m *Member) {
	if f.fired == nil {
		f.queue.Unconfirmed(m)
	}
}

func (f *faulty) LearnIncarnation(e Epoch, czxid int64) {
	e = f.at(e)
	if f.dir != nil {
		f.dir(f, e, czxid)
		return
	}
	f.queue.LearnIncarnation(e, czxid)
}

func (f *faulty) Held(m *Member, first bool) { f.queue.Held(m, first || f.first) }

func (f *faulty) NotHeld(m *Member) {
	doubted := m.doubted
	f.queue.NotHeld(m)
	if f.stale {
		m.doubted = doubted
	}
}

func (f *faulty) Left(m *Member, isInUse bool) { f.queue.Left(m, isInUse && !f.done) }

// planted returns a fault that is made of a faulty.
func planted(seed uint64, name string, f faulty) fault {
	return fault{name: name, seed: seed, plant: func(q queue) queue {
		wrong := f
		wrong.queue = q
		return &wrong
	}}
}

// Not here is what 20,000 histories do not show. That orphans are forgotten. That what
// was removed is gone, though its delete failed: it fails with the connection, and then a
// list is asked for anyway. That a create is told with the newest epoch: what it has
// shown it has shown. That an event is taken to be newer than all lists: it takes a name
// that is used again, and a directory that is made again between the two.
var faults = []fault{
	planted(3419, "what was known outlives its epoch", faulty{frozen: true}),
	planted(1328, "numbers are compared across incarnations", faulty{
		list: func(_ *faulty, _ *Stamp, l *Listing) { l.Czxid = min(l.Czxid, 1) },
		dir: func(f *faulty, e Epoch, czxid int64) {
			f.queue.LearnIncarnation(e, min(czxid, 1))
		},
	}),
	planted(1, "a list from before the create proves a member missing", faulty{
		list: func(f *faulty, a *Stamp, _ *Listing) {
			*a = f.queue.Asking(f.epoch, true)
		},
	}),
	planted(25, "an own watch that has fired is ignored",
		faulty{fired: func(*Member) {}}),
	planted(20, "a hand-over though a transaction is open", faulty{done: true}),
	planted(1451, "a hand-over after a loss", faulty{
		lost: func(f *faulty, m *Member) { f.queue.Left(m, false) },
	}),
	planted(4614, "the directory's watch that has fired is ignored", faulty{
		dir: func(f *faulty, e Epoch, czxid int64) {
			if czxid != 0 {
				f.queue.LearnIncarnation(e, czxid)
			}
		},
	}),
	planted(13782, "each list counts as synced", faulty{
		asking: func(e Epoch, _ bool) (Epoch, bool) { return e, true },
	}),
	planted(133, "the spread is not checked", faulty{err: true}),
	planted(1397, "each hold is the first", faulty{first: true}),
	planted(56, "a refused hold is granted by what was known", faulty{stale: true}),
	planted(2, "a token from a list in which others stand behind", faulty{
		list: func(f *faulty, _ *Stamp, l *Listing) {
			for _, m := range f.queue.(*Queue).members {
				if slices.Contains(l.Names, m.name) {
					m.learnToken(l.Pzxid)
				}
			}
		},
	}),
	planted(564, "who came between two of a process is overlooked", faulty{
		decide: func(q *Queue, m *Member, now Epoch) Decision {
			mark := q.mark
			defer func() { q.mark = mark }()
			if at := q.at(m); mark.Token != 0 && at > 0 {
				q.mark.Seq = max(mark.Seq, q.members[at-1].name.Seq)
			}
			return q.Decide(m, now)
		},
	}),
	planted(361, "a writer has the lock by what was known before", faulty{
		decide: func(q *Queue, m *Member, now Epoch) Decision {
			rules := q.rules
			defer func() { q.rules = rules }()
			q.rules.Without |= ByNumber
			q.rules.Nested = func(seqname.Name) bool { return false }
			return q.Decide(m, now)
		},
	}),
	planted(2, "an end is not heard of",
		faulty{gone: func(*faulty, Stamp, seqname.Name) {}}),
	{name: "no reader is nested", seed: 3670, rules: func(r *Rules) { r.Nested = nil }},
	{
		name:  "each connection is taken to keep the order of events",
		seed:  5438,
		rules: func(r *Rules) { r.Ordered = true },
	},
	{name: "readers do not exclude writers", seed: 19, rules: func(r *Rules) {
		all := r.Excludes
		r.Excludes = func(ahead, self seqname.Name) bool {
			return all(ahead, self) && ahead.Kind != "read-"
		}
	}},
}

// The model refutes each fault, by a history in which the core itself does nothing wrong.
func TestModelRefutesFaults(t *testing.T) {
	t.Parallel()
	for i := range faults {
		f := &faults[i]
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.isShownBy(f.seed) {
				return
			}
			most := uint64(number(t, "ORDER_FAULT_SEEDS", 20000))
			for seed := uint64(1); seed <= most; seed++ {
				if f.isShownBy(seed) {
					t.Logf("seed %d shows it, and %d no longer: note that", seed, f.seed)
					return
				}
			}
			t.Fatalf("not refuted by %d histories", most)
		})
	}
}

// isShownBy tells whether the history of a seed is wrong with the fault, and right
// without it.
func (f *fault) isShownBy(seed uint64) bool {
	wrong, _, _ := refute(seeded(seed), f, false)
	if wrong == "" {
		return false
	}
	wrong, _, _ = refute(seeded(seed), nil, false)
	return wrong == ""
}
