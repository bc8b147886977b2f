package order

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// draw is a setting and how long it goes on.
func draw(pick func(n int, what string) int) (setting, int) {
	coin := func(what string) bool { return pick(2, what) == 1 }
	set := setting{
		rule: []string{"exclusive", "readwrite", "groups"}[pick(3, "rule")],
		late: pick(4, "late events") == 3, czxids: coin("czxids"),
		watched: coin("watched"),
		lazy:    coin("lazy"),
		slots:   1 + pick(4, "slots"), strangers: pick(8, "strangers"),
		faults: pick(10, "faults"), cycles: 1 + pick(12, "creates"),
	}
	if pick(4, "near the limit") == 3 {
		set.first = 1<<31 - 1 - int32(pick(6, "below the limit"))
	}
	if pick(4, "sources") == 3 {
		set.without = Sources(pick(16, "without"))
		set.fresh = pick(4, "fresh") == 3
	}
	return set, 10 + pick(150, "steps")
}

// history lets one happen, and panics with a violation.
func (m *model) history(steps int) {
	for range steps {
		m.calm = m.pick(4, "calm") != 0
		actions := append(m.progress(), m.owners()...)
		actions = append(actions, m.others()...)
		if len(actions) == 0 {
			break
		}
		m.step(actions)
	}
	m.finish()
}

// refute runs a history, and returns what is wrong with it, and its trace.
func refute(pick func(n int, what string) int, planted *fault, tracing bool) (
	wrong, trace string, steps int,
) {
	set, most := draw(pick)
	m := newModel(set, pick, planted)
	m.tracing = tracing
	defer func() {
		if v, ok := recover().(violation); ok {
			wrong, trace = v.text, m.Trace()
		}
		steps = m.steps
	}()
	m.history(most)
	return
}

// seeded returns the choices of a seed.
func seeded(seed uint64) func(int, string) int {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(n int, _ string) int { return r.IntN(n) }
}

// number reads one from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestMain tries more histories than a property's usual hundred.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "3000"); err != nil {
		panic(err)
	}
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// In no history is somebody granted who would not be by a list of the leader's, and in
// none does somebody wait in vain. What rapid finds, it shrinks.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wrong, trace, _ := refute(func(n int, what string) int {
			return rapid.IntRange(0, n-1).Draw(t, what)
		}, nil, true)
		if wrong != "" {
			t.Fatalf("%s\n%s", wrong, trace)
		}
	})
}

// The same with many seeds: ORDER_SEEDS=n of them from ORDER_FROM on. The gate tries ten
// times as many, and scripts/soak.sh a thousand times.
func TestModelSeeds(t *testing.T) {
	t.Parallel()
	from, seeds := number(t, "ORDER_FROM", 1), number(t, "ORDER_SEEDS", 2000)
	steps := 0
	for seed := from; seed < from+seeds; seed++ {
		wrong, _, n := refute(seeded(uint64(seed)), nil, false)
		if steps += n; wrong != "" {
			_, trace, _ := refute(seeded(uint64(seed)), nil, true)
			t.Fatalf("ORDER_FROM=%d ORDER_SEEDS=1: %s\n%s", seed, wrong, trace)
		}
	}
	t.Logf("%d histories with %d steps", seeds, steps)
}
