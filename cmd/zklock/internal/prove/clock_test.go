package prove

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// clockAt asks a clock that runs at a rate, in parts of a thousand, every 100 ms for ten
// seconds. Messages take as long as they take.
func clockAt(rate time.Duration, takes func(n int) (there, back time.Duration)) string {
	c := &clock{over: 3 * time.Second}
	var wrong string
	for n := range 100 {
		asked := time.Duration(n) * 100 * ms
		there, back := takes(n)
		told := time.Hour + (asked+there)*rate/1000
		if found := c.take(reading{asked, asked + there + back, told}); found != "" {
			wrong += found
		}
	}
	return wrong
}

// A clock is found whose rate is off, and no other one, however long messages take.
func TestClocks(t *testing.T) {
	t.Parallel()
	quick := func(int) (there, back time.Duration) { return ms, ms }
	for _, rate := range []time.Duration{951, 1000, 1049} {
		require.Empty(t, clockAt(rate, quick))
	}
	require.Equal(t, "ran 2.48s in a time of 3.1s to 3.1s: the locks assume clocks that "+
		"run at the same rate within 5 %", clockAt(800, quick))
	require.NotEmpty(t, clockAt(940, quick))
	require.NotEmpty(t, clockAt(1060, quick))
	require.Empty(t, clockAt(1000, func(n int) (there, back time.Duration) {
		return time.Duration(n%7) * 200 * ms, time.Duration(n%5) * 300 * ms
	}))
	// One question that stood in the way of others hides nothing.
	require.NotEmpty(t, clockAt(800, func(n int) (there, back time.Duration) {
		if n == 30 {
			return 5 * time.Second, 0
		}
		return ms, ms
	}))
}

// Whose clock it is, comes before what comes of it.
func TestTheReportNamesAClock(t *testing.T) {
	t.Parallel()
	h := simulator.Merge(
		acquired(1, "/r/0/mutex-1", 2, time.Second, 5*time.Second),
		acquired(2, "/r/0/mutex-1", 3, 2*time.Second, 4*time.Second),
		simulator.History{clockEvent(3, "process", "ran 2.4s")},
	)
	r := reportOn(roundOf(0), h)
	require.Equal(t, Violated, r.Verdict)
	require.Regexp(t, `^VIOLATED: a clock runs too slow or too fast, so that locks `+
		`cannot keep their promises there\n  violated in round 0: worker 3: the clock `+
		`of its process ran 2.4s\n  violated in round 0: exclusion: `, r.Text())
}
