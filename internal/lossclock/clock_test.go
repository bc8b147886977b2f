package lossclock_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/lossclock"
)

const (
	second = time.Second
	tenth  = second / 10
)

// after is a time of the tests.
func after(d time.Duration) time.Time { return epoch.Add(d) }

// The leader may not have heard of the last contacts yet when the follower dies that
// reports them. Of those before the first, the client's pings are known, and the
// handshake.
func TestReportedIsWhatWasProved(t *testing.T) {
	terms := lossclock.Terms{Timeout: 12 * second} // reports within 3.3 s
	for name, c := range map[string]struct {
		handshake time.Duration
		contacts  []time.Duration
		reported  time.Duration
	}{
		"one":               {0, []time.Duration{15 * second}, 77 * tenth},
		"a second one":      {0, []time.Duration{15 * second, 17 * second}, 97 * tenth},
		"half a tick later": {0, []time.Duration{15 * second, 18 * second}, 107 * tenth},
		"a proof":           {0, []time.Duration{15 * second, 183 * tenth}, 15 * second},
		"a late proof":      {0, []time.Duration{15 * second, 21 * second}, 15 * second},
		"too late":          {0, []time.Duration{15 * second, 23 * second}, 157 * tenth},
		"of the first": {
			0, []time.Duration{15 * second, 17 * second, 19 * second}, 15 * second,
		},
		"of the second": {
			0, []time.Duration{15 * second, 16 * second, 193 * tenth}, 16 * second,
		},
		"in no order":     {0, []time.Duration{18 * second, 15 * second}, 107 * tenth},
		"a handshake":     {14 * second, []time.Duration{15 * second}, 14 * second},
		"a handshake ago": {second, []time.Duration{15 * second}, 77 * tenth},
		"nothing else":    {5 * second, nil, 5 * second},
	} {
		t.Run(name, func(t *testing.T) {
			var clock lossclock.Clock
			for _, at := range c.contacts {
				clock.Note(terms, 1, after(at), after(at))
			}
			var handshake time.Time
			if c.handshake > 0 {
				handshake = after(c.handshake)
			}
			require.Equal(t, after(c.reported), clock.Reported(terms, 1, handshake))
			until, ok := clock.GoodUntil(terms, 1, handshake)
			require.True(t, ok)
			require.Equal(t, after(c.reported+terms.Timeout*19/20), until)
		})
	}
}

// A request may have reached the server as late as its answer did the client.
func TestAContactIsProvedByTheTimeOfItsAnswer(t *testing.T) {
	terms := lossclock.Terms{Timeout: 12 * second}
	var clock lossclock.Clock
	clock.Note(terms, 1, after(15*second), after(16*second))
	clock.Note(terms, 1, after(193*tenth-1), after(193*tenth))
	require.Equal(t, after(12*second-1), clock.Reported(terms, 1, time.Time{}))
	clock.Note(terms, 1, after(193*tenth), after(193*tenth))
	require.Equal(t, after(15*second), clock.Reported(terms, 1, time.Time{}))
}

// Of the client's pings only those count that were due in an idle time. One that is
// shorter than the time of a proof is none, so that who comes and goes often enough keeps
// the evidence of the time before.
func TestPingsOfAnIdleTime(t *testing.T) {
	terms := lossclock.Terms{Timeout: 12 * second} // reports within 3.3 s
	type span struct{ from, to time.Duration }     // in which contacts were asked for
	for name, c := range map[string]struct {
		busy     []span
		contact  time.Duration
		reported time.Duration // zero: from nothing
	}{
		"idle all the while": {nil, 40 * second, 327 * tenth},
		"busy for a moment":  {[]span{{39 * second, 0}}, 40 * second, 327 * tenth},
		"busy for long":      {[]span{{30 * second, 0}}, 40 * second, 26 * second},
		"a pause that is too short": {
			[]span{{30 * second, 31 * second}, {34 * second, 0}},
			40 * second, 26 * second,
		},
		"a pause that is just long enough": {
			[]span{{30 * second, 31 * second}, {343 * tenth, 0}}, 40 * second, 0,
		},
		"busy before": {
			[]span{{30 * second, 31 * second}, {39 * second, 0}},
			40 * second, 327 * tenth,
		},
		"busy until just before": {
			[]span{{30 * second, 33 * second}, {39 * second, 0}},
			40 * second, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var clock lossclock.Clock
			for _, b := range c.busy {
				clock.Wanted(after(b.from))
				clock.Ask(terms)
				if b.to > 0 {
					clock.Unwanted(after(b.to))
				}
			}
			clock.Note(terms, 1, after(c.contact), after(c.contact))
			reported := clock.Reported(terms, 1, time.Time{})
			if c.reported == 0 {
				require.Zero(t, reported)
				return
			}
			require.Equal(t, after(c.reported), reported)
		})
	}
}

func TestWhatIsPresumedOfTicks(t *testing.T) {
	for name, c := range map[string]struct {
		terms  lossclock.Terms
		within time.Duration
	}{
		"two ticks make a session": {
			lossclock.Terms{Timeout: 4 * second}, 11 * tenth,
		},
		"ticks of ten seconds": {lossclock.Terms{Timeout: 60 * second}, 55 * tenth},
		"a short tick": {
			lossclock.Terms{Timeout: 10 * second, Tick: 2 * second}, 11 * tenth,
		},
		"a session below two ticks": {
			lossclock.Terms{Timeout: 2 * second, Tick: 2 * second}, 11 * tenth,
		},
		"ticks of a minute": {
			lossclock.Terms{Timeout: 120 * second, Tick: 60 * second}, 33 * second,
		},
		"an odd number, rounded up": {
			lossclock.Terms{Timeout: second, Tick: 3}, 25*time.Millisecond + 2,
		},
		"a ping that is late by more than a share of the tick": {
			lossclock.Terms{Timeout: second, Tick: 2 * tenth},
			tenth + 25*time.Millisecond,
		},
		"a session of one long tick": {
			lossclock.Terms{Timeout: 20 * second, Tick: 20 * second}, 11 * second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, c.terms.Workable())
			var clock lossclock.Clock
			began := after(time.Hour)
			clock.Note(c.terms, 1, began, began)
			clock.Note(c.terms, 1, began.Add(c.within-1), began.Add(c.within-1))
			require.NotEqual(t, began, clock.Reported(c.terms, 1, time.Time{}))
			clock.Note(c.terms, 1, began.Add(c.within), began.Add(c.within))
			require.Equal(t, began, clock.Reported(c.terms, 1, time.Time{}))
		})
	}
}

// A proof that takes longer than the session lasts proves nothing in time.
func TestASessionCanBeTooShortForTheTick(t *testing.T) {
	terms := lossclock.Terms{Tick: 2 * second}
	require.Equal(t, 1650*time.Millisecond, terms.LeastTimeout())
	require.True(t, terms.Workable(), "nothing is known of it")
	terms.Timeout = terms.LeastTimeout() - 1
	require.False(t, terms.Workable())
	terms.Timeout++
	require.True(t, terms.Workable())

	// The heartbeat alone, in the worst case: nothing but what it says itself.
	var clock lossclock.Clock
	now, good := after(time.Hour), false
	for end := now.Add(time.Minute); now.Before(end); {
		clock.Note(terms, 1, now, now)
		next := clock.NextSync(terms, 1, time.Time{}, now, true)
		until, _ := clock.GoodUntil(terms, 1, time.Time{})
		if good {
			require.True(t, until.After(next), "%v late", next.Sub(until))
		}
		good, now = good || until.After(next), next
	}
	require.True(t, good, "it is never held")
	require.Zero(t, lossclock.Terms{Timeout: second}.LeastTimeout(), "not known")
	terms.Tick = math.MaxInt64
	require.False(t, terms.Workable())
}

func TestASessionOfUnknownTimeoutIsGoodForASecond(t *testing.T) {
	var clock lossclock.Clock
	_, ok := clock.GoodUntil(lossclock.Terms{}, 1, time.Time{})
	require.False(t, ok)
	clock.Note(lossclock.Terms{}, 1, after(second), after(3*second))
	until, ok := clock.GoodUntil(lossclock.Terms{}, 1, after(2*second))
	require.True(t, ok)
	require.Equal(t, after(2*second), until)
	_, ok = clock.GoodUntil(lossclock.Terms{}, 2, after(2*second))
	require.False(t, ok, "it is another session's")
}

func TestContactsAreOfOneSession(t *testing.T) {
	terms := lossclock.Terms{Timeout: 4 * second}
	var clock lossclock.Clock
	clock.Note(terms, 1, after(10*second), after(10*second))
	clock.Note(terms, 1, after(12*second), after(12*second))
	_, ok := clock.GoodUntil(terms, 2, time.Time{})
	require.False(t, ok)
	clock.Note(terms, 2, after(11*second), after(11*second))
	require.Equal(t, after(11*second), clock.Last(2))
	require.Zero(t, clock.Last(1))
	lag := terms.Timeout/3 + terms.Timeout/4 + terms.Timeout/40
	require.Equal(t, after(11*second-lag), clock.Reported(terms, 2, time.Time{}))
}

// A contact every T/10; where only pings speak for the session, every T/20 and just when
// it proves the first one.
func TestThePeriodOfTheHeartbeat(t *testing.T) {
	// Reports within 4.4 s.
	terms := lossclock.Terms{Timeout: 20 * second, Tick: 8 * second}
	var clock lossclock.Clock
	now := after(time.Hour)
	var syncs []time.Duration
	for range 9 {
		clock.Note(terms, 1, now, now.Add(100*time.Millisecond))
		syncs = append(syncs, now.Sub(after(time.Hour)))
		now = clock.NextSync(terms, 1, time.Time{}, now, true)
	}
	require.Equal(t, []time.Duration{
		0, second, 2 * second, 3 * second, 4 * second, 45 * tenth,
		65 * tenth, 85 * tenth, 105 * tenth,
	}, syncs)

	sent := after(2 * time.Hour) // and not answered yet
	require.Equal(
		t, sent.Add(2*second), clock.NextSync(terms, 1, after(time.Hour), sent, true),
	)
	require.Equal(t, sent.Add(200*time.Millisecond),
		clock.NextSync(lossclock.Terms{}, 1, time.Time{}, sent, true))
	require.Equal(t, sent.Add(5*second),
		clock.NextSync(lossclock.Terms{}, 1, time.Time{}, sent, false),
		"nothing depends on it")
}

// Evidence that is as old as in the long run, and no older, does not ask for haste.
func TestThePeriodWhereTheEvidenceIsAsOldAsItMayBe(t *testing.T) {
	terms := lossclock.Terms{Timeout: 20 * second, Tick: 8 * second}
	var clock lossclock.Clock
	now := after(time.Hour)
	clock.Note(terms, 1, now, now)
	next := func(age time.Duration) time.Duration {
		return clock.NextSync(terms, 1, now.Add(-age), now, true).Sub(now)
	}
	require.Equal(t, 2*second, next(84*tenth))
	require.Equal(t, second, next(84*tenth+1))
}

// Two answers and a report period of 4.4 s, two beats of 2 s and a late one of 1 s may
// take the 19 s for which the session is relied on. If they take more, syncs come every
// T/40.
func TestThePeriodWhereAnswersTakeAsLongAsTheyMay(t *testing.T) {
	terms := lossclock.Terms{Timeout: 20 * second, Tick: 8 * second}
	next := func(takes time.Duration) time.Duration {
		var clock lossclock.Clock
		now := after(time.Hour)
		clock.Note(terms, 1, now.Add(-takes), now)
		return clock.NextSync(terms, 1, now, now, true).Sub(now)
	}
	require.Equal(t, 2*second, next(48*tenth))
	require.Equal(t, second/2, next(48*tenth+1))
}

// Of contacts in short order one in an eighth of a proof's time is kept.
func TestContactsThatAreKept(t *testing.T) {
	terms := lossclock.Terms{Timeout: 12 * second} // reports within 3.3 s
	const eighth = 33 * tenth / 8
	for name, c := range map[string]struct{ apart, reported time.Duration }{
		"an eighth": {eighth, 15*second + eighth}, "less": {eighth - 1, 15 * second},
	} {
		t.Run(name, func(t *testing.T) {
			var clock lossclock.Clock
			for _, at := range []time.Duration{
				15 * second, 15*second + c.apart, 183*tenth + c.apart,
			} {
				clock.Note(terms, 1, after(at), after(at))
			}
			require.Equal(t, after(c.reported), clock.Reported(terms, 1, time.Time{}))
		})
	}
}

// What is known is by terms: others tell another time of the same contacts.
func TestReportedIsByItsTerms(t *testing.T) {
	long := lossclock.Terms{Timeout: 12 * second}                    // within 3.3 s
	short := lossclock.Terms{Timeout: 12 * second, Tick: 2 * second} // within 1.1 s
	var clock lossclock.Clock
	clock.Note(short, 1, after(15*second), after(15*second))
	require.Equal(t, after(99*tenth), clock.Reported(short, 1, time.Time{}))
	require.Equal(t, after(77*tenth), clock.Reported(long, 1, time.Time{}))
	clock.Note(long, 1, after(155*tenth), after(155*tenth))
	require.Equal(t, after(82*tenth), clock.Reported(long, 1, time.Time{}))
}

// A contact that was answered late is not proved by the next one, and no ping counts that
// was due in the short idle time between the two.
func TestWhatWasReportedStaysSo(t *testing.T) {
	terms := lossclock.Terms{Timeout: 12 * second} // reports within 3.3 s
	var clock lossclock.Clock
	clock.Wanted(after(29 * second))
	clock.Ask(terms)
	clock.Unwanted(after(34 * second))
	clock.Note(terms, 1, after(30*second), after(37*second))
	reported := clock.Reported(terms, 1, time.Time{})
	require.Equal(t, after(227*tenth), reported)

	clock.Wanted(after(39 * second))
	clock.Ask(terms)
	clock.Note(terms, 1, after(40*second), after(40*second))
	require.Equal(t, reported, clock.Reported(terms, 1, time.Time{}))
}
