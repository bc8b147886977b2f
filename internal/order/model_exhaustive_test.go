package order

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
)

// An odometer makes choices, and goes through all of them: depth first.
type odometer struct {
	chosen, of []int
	at         int
}

func (o *odometer) pick(n int, _ string) int {
	if o.at == len(o.chosen) {
		o.chosen, o.of = append(o.chosen, 0), append(o.of, n)
	}
	o.at++
	return o.chosen[o.at-1]
}

// next goes on to the choices that come next; what was not chosen from is left out.
func (o *odometer) next() bool {
	o.chosen, o.of = o.chosen[:o.at], o.of[:o.at]
	o.at = 0
	for i := len(o.chosen) - 1; i >= 0; i-- {
		if o.chosen[i]++; o.chosen[i] < o.of[i] {
			return true
		}
		o.chosen, o.of = o.chosen[:i], o.of[:i]
	}
	return false
}

// key is a hash of all that can matter from here on: what the queue was told and asked,
// in its order, and the state of the world.
func (m *model) key() uint64 {
	told := m.hash
	defer func() { m.hash = told }()
	k := &m.k
	for zxid := min(k.seen, k.at); zxid <= m.l.head(); zxid++ {
		t := m.l.state(zxid)
		m.mixNumbers(zxid, t.czxid, t.pzxid, int64(t.next))
		for _, l := range t.leaves {
			m.mix(l.text)
			m.mixNumber(uint64(l.czxid))
		}
	}
	m.mixNumbers(k.seen, k.at, k.session, int64(m.joins), int64(m.faults),
		int64(m.creates),
		int64(m.serial), int64(m.questions), int64(m.epoch), int64(m.synced))
	m.mix(fmt.Sprint(k.up, m.hasSynced, m.directory))
	m.mixRequests(k.toServer, k.zombies, k.inbox, m.lists)
	for _, ms := range [][]message{k.toClient, k.events} {
		for _, e := range ms {
			if m.mix("m" + e.gone); e.answer != nil {
				m.mixRequests([]*request{e.answer})
			}
		}
	}
	for _, e := range k.fired {
		m.mix("f" + e.name)
	}
	for _, name := range slices.Sorted(maps.Keys(k.watches)) {
		m.mix(name)
		for _, a := range k.watches[name] {
			m.mixNumber(uint64(a.mark))
		}
		if k.armed[name] {
			m.mix("armed")
		}
	}
	m.mixSlots()
	return m.hash
}

func (m *model) mixNumbers(numbers ...int64) {
	for _, n := range numbers {
		m.mixNumber(uint64(n))
	}
}

func (m *model) mixRequests(all ...[]*request) {
	for _, requests := range all {
		m.mix("|")
		for _, r := range requests {
			m.mix(string(r.op) + r.name + r.kind)
			if r.lost {
				m.mix("lost")
			}
			m.mixNumbers(int64(r.by.id), int64(r.mark), int64(r.epoch), r.made.czxid,
				r.dir.czxid, r.dir.pzxid)
		}
	}
}

func (m *model) mixSlots() {
	for _, s := range m.slots {
		m.mix(string(s.stage) + s.prefix + s.kind + s.watching)
		m.mix(fmt.Sprint(s.orphans, s.reads, s.confirming, s.syncing, s.searching,
			s.dirty, s.ownList != nil))
		m.mixRequests(s.outbox)
	}
	for _, text := range slices.Sorted(maps.Keys(m.stakes)) {
		st := m.stakes[text]
		m.mix(text)
		m.mix(fmt.Sprint(st.ever, st.left, st.inUse, st.lost, st.turn, st.first, st.ended,
			st.removed, len(st.way)))
	}
}

// exhaust goes through all histories within a setting, and returns how many states it has
// seen. Answers are received as soon as they are
// given: what a lost connection takes with it is what has not reached the server.
func exhaust(set setting, planted *fault) (
	states int, wrong string, o *odometer,
) {
	seen := map[uint64]bool{}
	o = &odometer{}
	for {
		m := newModel(set, o.pick, planted)
		if wrong = m.through(o, seen); wrong != "" {
			return len(seen), wrong, o
		}
		if !o.next() {
			return len(seen), "", o
		}
	}
}

// through is one history: until it has nothing left, or comes to a state that was seen.
func (m *model) through(o *odometer, seen map[uint64]bool) (wrong string) {
	defer func() {
		if v, ok := recover().(violation); ok {
			wrong = v.text
		}
	}()
	for {
		for len(m.k.toClient) > 0 {
			m.k.receive()
		}
		actions := m.progress()
		if len(actions) == 0 && m.k.up {
			m.checkQuiet()
		}
		actions = slices.DeleteFunc(slices.Concat(actions, m.owners(), m.others()),
			func(a action) bool { return a.format == "forget" || a.format == "guard %d" })
		if len(actions) == 0 || m.set.steps > 0 && m.steps == m.set.steps {
			return ""
		}
		if o.at == len(o.chosen) {
			key := m.key()
			if m.set.steps > 0 { // it matters how much is left
				key ^= uint64(m.steps) * 0x9e3779b97f4a7c15
			}
			if seen[key] {
				return ""
			}
			seen[key] = true
		}
		m.run(actions[m.pick(len(actions), "action")])
	}
}

// replay shows the history that an odometer stands at.
func replay(set setting, o *odometer, planted *fault) string {
	chosen := slices.Clone(o.chosen)
	r := &odometer{chosen: chosen, of: o.of}
	m := newModel(set, r.pick, planted)
	m.tracing = true
	m.through(r, map[uint64]bool{})
	return m.Trace()
}

// small are the settings that are gone through as a whole, those after the first only
// with ORDER_EXHAUSTIVE, since they take a minute.
var small = []setting{
	{rule: "exclusive", slots: 2, cycles: 2, faults: 1, steps: 10},
	{rule: "exclusive", slots: 2, cycles: 2},
	{rule: "groups", slots: 1, cycles: 1, strangers: 1, late: true},
	{rule: "readwrite", slots: 1, cycles: 1, strangers: 1, faults: 1, steps: 10},
	{
		rule: "exclusive", slots: 1, cycles: 1, strangers: 1, faults: 2, czxids: true,
		watched: true, steps: 8,
	},
}

// All histories within the bounds of small: so many goroutines of ours create so many
// znodes in all, strangers join so often, so many things go wrong, and the histories that
// have a bound end after so many actions. Who is quick to decide decides after each fact.
func TestModelExhaustively(t *testing.T) {
	t.Parallel()
	settings := small
	if os.Getenv("ORDER_EXHAUSTIVE") == "" {
		settings = small[:1]
	}
	for _, set := range settings {
		t.Run(fmt.Sprintf("%+v", set), func(t *testing.T) {
			t.Parallel()
			states, wrong, o := exhaust(set, nil)
			if wrong != "" {
				t.Fatalf("%s\n%s", wrong, replay(set, o, nil))
			}
			t.Logf("%d states", states)
		})
	}
}
