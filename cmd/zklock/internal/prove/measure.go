package prove

import (
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// timesOf sums up.
func timesOf(all []time.Duration) Times {
	if len(all) == 0 {
		return Times{}
	}
	all = slices.Clone(all)
	slices.Sort(all)
	last := len(all) - 1
	return Times{
		Count: len(all), Median: all[last/2], High: all[last*99/100], Worst: all[last],
	}
}

// handOvers are how long it took from the begin of each release until the next in the
// queue had the lock, who had waited for it. Only exclusive holders count.
func handOvers(h simulator.History) (all []time.Duration) {
	type lock struct {
		releasing time.Duration
		queued    map[simulator.ID]time.Duration
	}
	locks := map[string]*lock{}
	of := func(path string) *lock {
		if locks[path] == nil {
			locks[path] = &lock{
				releasing: -1, queued: map[simulator.ID]time.Duration{},
			}
		}
		return locks[path]
	}
	holding := map[simulator.ID]bool{}
	for _, e := range h {
		l := of(e.Path)
		switch e.Kind {
		case simulator.Queued:
			l.queued[e.ID] = e.At
		case simulator.Failed:
			delete(l.queued, e.ID)
		case simulator.Granted:
			since, waited := l.queued[e.ID]
			delete(l.queued, e.ID)
			if e.Mode != simulator.Exclusive || e.Under {
				l.releasing = -1
				continue
			}
			if waited && l.releasing >= 0 && since < l.releasing {
				all = append(all, e.At-l.releasing)
			}
			l.releasing, holding[e.ID] = -1, true
		case simulator.Lost:
			delete(holding, e.ID)
		case simulator.Releasing:
			if holding[e.ID] {
				l.releasing = e.At
			}
			delete(holding, e.ID)
		}
	}
	return all
}
