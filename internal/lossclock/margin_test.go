package lossclock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/lossclock"
)

func TestTheLongestMargin(t *testing.T) {
	for name, c := range map[string]struct {
		terms  lossclock.Terms
		margin time.Duration
	}{
		"an unknown timeout": {lossclock.Terms{Tick: 2 * second}, second / 4},
		"a quarter": {
			lossclock.Terms{Timeout: 20 * second, Tick: 8 * second}, 5 * second,
		},
		// of 20 s: 1 s for clocks that differ, 11 s for a proof, 4 s for two periods,
		// 1 s for a beat that is late
		"what a long tick leaves": {
			lossclock.Terms{Timeout: 20 * second, Tick: 20 * second}, 3 * second,
		},
		"nothing is left": {
			lossclock.Terms{Timeout: 20 * second, Tick: 30 * second}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.margin, c.terms.LongestMargin())
		})
	}
}

func TestTheTimeoutForAMargin(t *testing.T) {
	require.Equal(t, 20*second, lossclock.TimeoutFor(5*second))
	terms := lossclock.Terms{Timeout: lossclock.TimeoutFor(5 * second)}
	require.Equal(t, 5*second, terms.LongestMargin())
}

func TestTheLongestAnswerOfAnUnknownTimeout(t *testing.T) {
	require.Equal(t, 800*time.Millisecond, lossclock.Terms{}.LongestAnswer())
}

// A first contact at 100 s is proved 4.4 s after its answer, a beat may be 1 s late, and
// the answer to that may take as long as the first. What its ping proves is relied on
// until 107.9 s.
func TestASessionOutlastsAMarginIfItsProofIsInTime(t *testing.T) {
	terms := lossclock.Terms{Timeout: 20 * second, Tick: 8 * second}
	var clock lossclock.Clock
	outlasts := func(handshake time.Time, margin time.Duration) bool {
		return clock.Outlasts(terms, 1, handshake, margin)
	}
	require.False(t, outlasts(time.Time{}, 0), "there is no evidence")
	require.True(t, outlasts(after(100*second), second), "there is the handshake")
	clock.Note(terms, 1, after(100*second), after(1001*tenth))
	until, _ := clock.GoodUntil(terms, 1, time.Time{})
	spare := until.Sub(after(1056 * tenth))
	require.Positive(t, spare)
	require.True(t, outlasts(time.Time{}, spare))
	require.False(t, outlasts(time.Time{}, spare+1))
	require.True(t, outlasts(after(101*second), spare+1), "the handshake is later")
}

func TestASessionOfUnknownTimeoutOutlastsAnyMargin(t *testing.T) {
	var clock lossclock.Clock
	require.False(t, clock.Outlasts(lossclock.Terms{}, 1, time.Time{}, 0))
	clock.Note(lossclock.Terms{}, 1, after(second), after(second))
	require.True(t, clock.Outlasts(lossclock.Terms{}, 1, time.Time{}, 2*second))
}

// Without a margin a slow first answer is reason to wait for its proof, unless that is in
// time for what the pings prove that were due until then. A proof is reason to wait for
// the next one if that will not be in time.
func TestAGrantWaitsForAProofWhereAnswersAreSlow(t *testing.T) {
	terms := lossclock.Terms{Timeout: 20 * second} // reports within 5.5 s
	for name, c := range map[string]struct {
		takes    time.Duration
		outlasts bool
	}{
		// the pings are good until 100 s - T/3 + 19 s, the proof takes 5.5 s + 1 s
		"in time":  {29 * tenth, true},
		"too slow": {30 * tenth, false},
	} {
		t.Run(name, func(t *testing.T) {
			var clock lossclock.Clock
			outlasts := func() bool { return clock.Outlasts(terms, 1, time.Time{}, 0) }
			clock.Wanted(after(100 * second))
			clock.Ask(terms)
			clock.Note(terms, 1, after(100*second), after(100*second+c.takes))
			require.Equal(t, c.takes, clock.Answer())
			require.Equal(t, c.outlasts, outlasts())
			clock.Note(terms, 1, after(102*second), after(102*second+c.takes))
			require.Equal(t, c.outlasts, outlasts())
			proof := after(100*second + c.takes + 55*tenth)
			clock.Note(terms, 1, proof, proof.Add(c.takes))
			require.True(t, outlasts(), "it is proved, and the next will be")
		})
	}
}

// If answers take longer than a hold survives, it is granted and lost: to wait for better
// ones may be to wait forever.
func TestNothingBetterIsWaitedFor(t *testing.T) {
	terms := lossclock.Terms{Timeout: 20 * second} // reports within 5.5 s
	for name, c := range map[string]struct {
		takes    time.Duration
		outlasts bool
	}{
		"as long as a hold survives": {52 * tenth, false},
		"longer":                     {53 * tenth, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 5250*time.Millisecond, terms.LongestAnswer())
			var clock lossclock.Clock
			proof := c.takes + 55*tenth
			for _, at := range []time.Duration{0, proof - second, proof} {
				clock.Note(terms, 1, after(at), after(at+c.takes))
			}
			outlasts := clock.Outlasts(terms, 1, time.Time{}, 0)
			require.Equal(t, c.outlasts, outlasts)
		})
	}
}

// With a margin nothing better is waited for where answers take longer than its half
// leaves them, unless the next proof comes within the margin: then the hold would be lost
// without any fault.
func TestNothingBetterIsWaitedForWithAMargin(t *testing.T) {
	terms := lossclock.Terms{Timeout: 20 * second} // reports within 5.5 s
	for name, c := range map[string]struct {
		first, next time.Duration // how long the answers take
		outlasts    bool
	}{
		// The next contact is proved at 13.2 s, and an answer follows: at 17 s the hold
		// is given up.
		"as long as half a margin leaves": {4250 * time.Millisecond, tenth, false},
		"longer":                          {4251 * time.Millisecond, tenth, true},
		// at 17.3 s
		"the proof is late": {4251 * time.Millisecond, 42 * tenth, false},
	} {
		t.Run(name, func(t *testing.T) {
			var clock lossclock.Clock
			clock.Note(terms, 1, after(0), after(c.first))
			clock.Note(terms, 1, after(66*tenth), after(66*tenth+c.next))
			clock.Note(terms, 1, after(12*second), after(121*tenth)) // proves the first
			until, _ := clock.GoodUntil(terms, 1, time.Time{})
			require.Equal(t, after(19*second), until)
			require.Equal(t, c.outlasts, clock.Outlasts(terms, 1, time.Time{}, 2*second))
		})
	}
}
