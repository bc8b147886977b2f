package prove

import (
	"errors"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

const (
	shrinkWithin   = 5 * time.Second
	shrunkSearch   = time.Second // of an order, in each try
	excerptMost    = 40          // lines
	shrinkableMost = 20_000      // events of the lock; of more only the end is shown
)

// excerpt returns the lines of a history that show a violation: those of as few
// acquisitions as it can find in some seconds.
func excerpt(
	h simulator.History, limits simulator.Limits, v *simulator.Violation,
) (lines []string) {
	h = slices.DeleteFunc(slices.Clone(h), func(e simulator.Event) bool {
		return e.Path != "" && e.Path != v.Path || e.Kind == simulator.Note ||
			e.Kind == clockOff
	})
	if limits.Linearize = shrunkSearch; len(h) <= shrinkableMost {
		h = shrink(h, time.Now().Add(shrinkWithin), func(h simulator.History) bool {
			return finds(h, limits, v.Check)
		})
	}
	workers, sessions := map[int]bool{}, map[int64]bool{}
	for _, e := range h {
		if e.Path != "" {
			workers[e.Worker] = true
			sessions[e.Session] = true
		}
	}
	for _, e := range h {
		switch {
		case e.Kind == simulator.Over:
		case e.Kind == simulator.Closing && !sessions[e.Session]:
		case e.Path != "" || workers[e.Worker]:
			lines = append(lines, e.String())
		}
	}
	return lines[max(0, len(lines)-excerptMost):]
}

// finds tells whether a check finds something in a history.
func finds(h simulator.History, l simulator.Limits, check string) bool {
	for _, err := range flat(h.Check(l)) {
		var v *simulator.Violation
		if errors.As(err, &v) && v.Check == check && !v.Undecided {
			return true
		}
	}
	return false
}

// shrink leaves out acquisitions, in ever smaller groups, for as long as it still shows.
func shrink(
	h simulator.History, until time.Time, shows func(simulator.History) bool,
) simulator.History {
	ids := idsOf(h)
	for size := (len(ids) + 1) / 2; size > 0 && len(ids) > 1; size /= 2 {
		for at := 0; at < len(ids) && time.Now().Before(until); {
			rest := slices.Delete(slices.Clone(ids), at, min(at+size, len(ids)))
			if fewer := only(h, rest); len(rest) > 0 && shows(fewer) {
				h, ids = fewer, rest
				continue
			}
			at += size
		}
	}
	return h
}

func idsOf(h simulator.History) (ids []simulator.ID) {
	seen := map[simulator.ID]bool{}
	for _, e := range h {
		if e.Kind == simulator.Called && !seen[e.ID] {
			ids, seen[e.ID] = append(ids, e.ID), true
		}
	}
	return ids
}

// only leaves the events of some acquisitions, and those of no acquisition.
func only(h simulator.History, ids []simulator.ID) simulator.History {
	wanted := map[simulator.ID]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	return slices.DeleteFunc(slices.Clone(h), func(e simulator.Event) bool {
		return isOfOne(e) && !wanted[e.ID]
	})
}

// isOfOne tells whether an event is one of an acquisition.
func isOfOne(e simulator.Event) bool {
	switch e.Kind {
	case simulator.Called, simulator.Queued, simulator.Granted, simulator.Failed,
		simulator.Lost, simulator.Releasing, simulator.Released, simulator.Writing,
		simulator.Written, simulator.Refused, simulator.Unsure:
		return true
	}
	return false
}

// flat returns the errors that were joined.
func flat(err error) (all []error) {
	if err == nil {
		return nil
	}
	// What is joined, and not what wraps something, is the question.
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, flat(one)...)
	}
	return all
}
