package lossclock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/lossclock"
	"pgregory.net/rapid"
)

// A slowLine is a connection without faults whose heartbeat is the clock's. Answers take
// their time, and come in order.
type slowLine struct {
	terms  lossclock.Terms
	takes  func() time.Duration // the next answer
	others time.Duration        // how often somebody else writes; 0: never

	clock    lossclock.Clock
	now      time.Time
	sent     time.Time // the last sync
	wrote    time.Time // the last of the others
	requests []slowRequest
	most     int           // of requests under way at a time, without the others
	least    time.Duration // that was left of what the session is relied on for
	held     bool
}

type slowRequest struct {
	sent, back time.Time
	other      bool
}

func newSlowLine(terms lossclock.Terms, takes func() time.Duration) *slowLine {
	l := &slowLine{
		terms: terms, takes: takes, now: after(time.Hour), least: time.Hour,
	}
	l.wrote = l.now
	l.clock.Wanted(l.now)
	l.request(true) // the create
	l.sent = l.now
	return l
}

func (l *slowLine) request(other bool) {
	l.clock.Ask(l.terms)
	back := l.now.Add(l.takes())
	if n := len(l.requests); n > 0 && back.Before(l.requests[n-1].back) {
		back = l.requests[n-1].back
	}
	l.requests = append(l.requests, slowRequest{l.now, back, other})
	syncs := 0
	for _, r := range l.requests {
		if !r.other {
			syncs++
		}
	}
	l.most = max(l.most, syncs)
}

// next is when something happens next.
func (l *slowLine) next() time.Time {
	at := l.clock.NextSync(l.terms, 1, time.Time{}, l.sent, true)
	if len(l.requests) > 0 && l.requests[0].back.Before(at) {
		at = l.requests[0].back
	}
	if other := l.wrote.Add(l.others); l.others > 0 && other.Before(at) {
		at = other
	}
	return at
}

// pass lets some time pass, and notes what was left at the worst time in which the
// session was relied on, by somebody to whom it was granted.
func (l *slowLine) pass(d time.Duration) {
	for end := l.now.Add(d); ; {
		at := l.next()
		if at.After(end) {
			l.now = end
			return
		}
		if at.After(l.now) {
			l.now = at
		}
		if until, ok := l.clock.GoodUntil(l.terms, 1, time.Time{}); ok && l.held {
			l.least = min(l.least, until.Sub(l.now))
		}
		for len(l.requests) > 0 && !l.requests[0].back.After(l.now) {
			r := l.requests[0]
			l.requests = l.requests[1:]
			l.clock.Note(l.terms, 1, r.sent, r.back)
		}
		if l.others > 0 && !l.now.Before(l.wrote.Add(l.others)) {
			l.wrote = l.now
			l.request(true)
		}
		if !l.now.Before(l.clock.NextSync(l.terms, 1, time.Time{}, l.sent, true)) {
			l.sent = l.now
			l.request(false)
		}
		l.grant()
	}
}

// grant has somebody rely on the session as soon as that may last.
func (l *slowLine) grant() {
	until, ok := l.clock.GoodUntil(l.terms, 1, time.Time{})
	l.held = l.held || ok && l.now.Before(until) &&
		l.clock.Outlasts(l.terms, 1, time.Time{}, 0)
}

// slowTerms are those of guarantees.md, and some that are less usual, all of at least two
// ticks: with one tick a hold survives some patterns of shorter answers less well.
var slowTerms = []lossclock.Terms{
	{Timeout: 4 * second},
	{Timeout: 10 * second},
	{Timeout: 30 * second},
	{Timeout: 4 * second, Tick: 4 * tenth},
	{Timeout: 10 * second, Tick: second},
	{Timeout: 30 * second, Tick: 3 * second},
	{Timeout: 10 * second, Tick: 5 * second},
	{Timeout: second},
}

// Answers that take up to the longest that is allowed, each as it pleases, are no loss,
// if they have been fast for a while, or slow already when the session was resumed.
func TestAnswersThatAreNoLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SampledFrom(slowTerms).Draw(t, "terms")
		longest := terms.LongestAnswer() - 1
		const steps = 20
		slow := rapid.Bool().Draw(t, "slow at once")
		takes := func() time.Duration {
			if !slow {
				return 0
			}
			takes := rapid.IntRange(0, steps).Draw(t, "takes")
			return longest * time.Duration(takes) / steps
		}
		always := rapid.Bool().Draw(t, "always the longest")
		if always {
			takes = func() time.Duration {
				if slow {
					return longest
				}
				return 0
			}
		}
		l := newSlowLine(terms, takes)
		if rapid.Bool().Draw(t, "others") {
			l.others = terms.Timeout / 200
		}
		l.pass(2 * terms.Timeout)
		if !always && slow { // it may have been granted by answers that were fast
			l.pass(3 * terms.Timeout)
			l.least = time.Hour
		}
		require.True(t, l.held)
		slow = true
		l.pass(terms.Timeout * time.Duration(rapid.IntRange(1, 40).Draw(t, "phase")) / 40)
		l.pass(3 * terms.Timeout)
		require.Positive(t, l.least, "it was lost")
		require.LessOrEqual(t, l.most, 20, "syncs under way")
	})
}

// Somewhat longer ones are a loss: the bound is not far from what is true.
func TestAnswersThatAreALoss(t *testing.T) {
	for _, terms := range slowTerms {
		t.Run(fmt.Sprintf("%+v", terms), func(t *testing.T) {
			lost := false
			for phase := range time.Duration(40) {
				var takes time.Duration
				l := newSlowLine(terms, func() time.Duration { return takes })
				l.pass(2*terms.Timeout + phase*terms.Timeout/400)
				require.True(t, l.held)
				takes = terms.LongestAnswer() + terms.Timeout/20
				l.pass(3 * terms.Timeout)
				lost = lost || l.least <= 0
			}
			require.True(t, lost)
		})
	}
}
