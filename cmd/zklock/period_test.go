package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever comes at the same minute by cron, on any day, is in a period of its own; those
// who come in the same period are in one.
func TestPeriodsOfWholeDaysAreLocal(t *testing.T) {
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		skip(t, "there are no time zones: on Debian, as root, apt-get install tzdata")
	}
	const day = 24 * time.Hour
	last := int64(0)
	for d := range 730 { // summer time begins and ends twice
		early := time.Date(2026, 1, 1+d, 0, 30, 0, 0, london)
		now := periodOf(early, day)
		if d > 0 {
			require.Equal(t, last+1, now, early)
		}
		require.Equal(t, now, periodOf(early.Add(22*time.Hour), day), early)
		last = now
	}
}

func TestPeriodsOfHoursBeginWithTheHour(t *testing.T) {
	hour := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)
	require.Equal(t, periodOf(hour, time.Hour),
		periodOf(hour.Add(59*time.Minute), time.Hour))
	require.Equal(t, periodOf(hour, time.Hour)+1,
		periodOf(hour.Add(time.Hour), time.Hour))
	require.Equal(t, periodOf(hour, time.Hour)-1,
		periodOf(hour.Add(-time.Second), time.Hour))
}

func TestClockOff(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	require.Zero(t, clockOff(at(5), at(0), at(10)))
	require.Equal(t, 3*time.Second, clockOff(at(-3), at(0), at(10)), "ahead")
	require.Equal(t, -3*time.Second, clockOff(at(13), at(0), at(10)), "behind")
}

func TestHasContainers(t *testing.T) {
	for version, want := range map[string][2]bool{
		"3.4.14-4c25d480e66aadd371de8bd2fd8da255ac140bcf": {false, true},
		"3.5.0-alpha": {true, true},
		"3.10.1":      {true, true},
		"4.0":         {true, true},
		"":            {false, false},
		"zktest":      {false, false},
	} {
		has, known := hasContainers(version)
		require.Equal(t, want, [2]bool{has, known}, version)
	}
}

// Whatever a record holds, an error repeats little of it.
func TestErrorOfARecordIsShort(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"period": ` + strings.Repeat("9", 1<<16) + `}`,
		`{"period": "` + strings.Repeat("9", 1<<16) + `"}`,
		`{"period": 0, "state": "` + strings.Repeat("x", 1<<16) + `"}`,
		`{"period": 0, "state": "done", "per": "` + strings.Repeat("1", 1<<16) + `h"}`,
		strings.Repeat("x", 1<<16),
	} {
		_, err := parseMark([]byte(data), time.Now(), time.Hour)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 2*dataMost)
	}
}
