package locktest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/zkrecipes/recipes"
)

// A Recorder keeps the events that locks tell. The zero value is ready for use.
type Recorder struct {
	mu     sync.Mutex // guards events
	events []recipes.Event
}

// Observe is for [recipes.WithObserver].
func (r *Recorder) Observe(_ context.Context, e recipes.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Kinds returns the kinds of the events so far.
func (r *Recorder) Kinds() (kinds []recipes.EventKind) {
	for _, e := range r.All() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Forget forgets the events so far.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// Await waits for an event of a kind and returns the first.
func (r *Recorder) Await(tb testing.TB, kind recipes.EventKind) recipes.Event {
	tb.Helper()
	return r.Nth(tb, kind, 1)
}

// Nth waits for n events of a kind and returns the nth.
func (r *Recorder) Nth(tb testing.TB, kind recipes.EventKind, n int) (e recipes.Event) {
	tb.Helper()
	Eventually(tb, func() bool {
		all := r.All()
		all = slices.DeleteFunc(all, func(e recipes.Event) bool { return e.Kind != kind })
		if len(all) < n {
			return false
		}
		e = all[n-1]
		return true
	}, "%q was told less than %d times", kind, n)
	return e
}

// All returns the events so far.
func (r *Recorder) All() []recipes.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
