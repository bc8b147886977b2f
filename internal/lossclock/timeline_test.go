package lossclock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/lossclock"
	"pgregory.net/rapid"
)

// A reading is how far the clocks have moved since the last one.
type reading struct{ mono, wall time.Duration }

// suspend moves the clocks of a machine on, and returns how far the Timeline has moved.
func suspend(l *lossclock.Timeline, readings ...reading) time.Duration {
	mono, wall := epoch, epoch.Add(1000*time.Hour)
	began := l.At(mono, wall)
	var at time.Time
	for _, r := range readings {
		mono, wall = mono.Add(r.mono), wall.Add(r.wall)
		at = l.At(mono, wall)
	}
	return at.Sub(began)
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestTheGreaterOfTwoClocksCounts(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		readings []reading
		moved    time.Duration
	}{
		"both move alike": {[]reading{{s, s}, {2 * s, 2 * s}}, 3 * s},
		"suspended for an hour": {
			[]reading{{s, s}, {s, time.Hour + s}, {s, s}}, time.Hour + 3*s,
		},
		"suspended twice":         {[]reading{{s, 5 * s}, {s, s}, {s, 7 * s}}, 13 * s},
		"right again at once":     {[]reading{{0, time.Hour}, {s, s}}, time.Hour + s},
		"set back":                {[]reading{{s, -time.Hour}, {s, s}}, 2 * s},
		"set back, and suspended": {[]reading{{s, -time.Hour}, {s, 10 * s}}, 11 * s},
		"set back while suspended, by less": {
			[]reading{{s, time.Minute - 10*s}}, time.Minute - 10*s,
		},
		"set forward and back": {
			[]reading{{s, time.Hour}, {s, -time.Hour}}, time.Hour + s,
		},
		"read apart": {
			[]reading{{s, s + 900}, {s, s - 900}, {s, s + 900}}, 3 * s,
		},
		"the least that is noticed": {
			[]reading{{s, s + time.Millisecond}, {s, s}}, 2*s + time.Millisecond,
		},
		"slowed by little": {
			[]reading{{s, s + 600_000}, {s, s + 600_000}}, 2*s + 1_200_000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.moved, suspend(&lossclock.Timeline{}, c.readings...))
		})
	}
}

// A handshake is known by its reading of the monotonic clock, and may be looked at later.
func TestAReadingOfBeforeAJumpIsNotMovedByIt(t *testing.T) {
	const s = time.Second
	l := &lossclock.Timeline{}
	require.Equal(t, 63*s, suspend(l, reading{s, s}, reading{s, 61 * s}, reading{s, s}))
	after := func(mono time.Duration) time.Duration {
		return l.Earliest(epoch.Add(mono)).Sub(epoch)
	}
	require.Equal(t, s, after(s))
	require.Equal(t, 3*s/2, after(3*s/2), "it may have been before the jump, or after it")
	require.Equal(t, 62*s+s/2, after(2*s+s/2))
}

func TestATimelineNeverStandsStill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &lossclock.Timeline{}
		mono, wall := epoch, epoch
		last := l.At(mono, wall)
		var total, slack time.Duration
		for range rapid.IntRange(1, 50).Draw(t, "readings") {
			d := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "mono"))
			w := time.Duration(
				rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "wall"),
			)
			mono, wall = mono.Add(d), wall.Add(w)
			before := l.Earliest(mono.Add(-d))
			at := l.At(mono, wall)
			require.False(t, before.After(last), "a reading of before has moved on")
			total, slack = total+max(d, w), slack+time.Millisecond
			require.GreaterOrEqual(t, at.Sub(last), d)
			require.InDelta(t, total, at.Sub(epoch), float64(slack))
			last = at
		}
	})
}
