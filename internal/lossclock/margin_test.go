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

// A first contact at 100 s is proved 4.4 s after its answer, and a beat may be 1 s late.
// What its ping proves is relied on until 107.9 s.
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
	spare := until.Sub(after(1055 * tenth))
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
