package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rules are those of which somebody has told, and some from time zones.
var rules = []string{
	"CET-1CEST,M3.5.0,M10.5.0/3", "<+14>-14", "IST-5:30", "EST5EDT,M3.2.0,M11.1.0",
	"AEST-10AEDT,M10.1.0,M4.1.0/3", "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",
	"IST-2IDT,M3.4.4/26,M10.5.0", "EST5EDT", "NZST-12NZDT,M9.5.0,M4.1.0/3",
	"XXX3YYY,J60/2,J300/2", "XXX3YYY,59,299/4:30", "UTC0", "<+0545>-5:45",
	"XXX-23:59:59", "AAA23BBB24,J1/0,J365/23",
}

// As date(1) has it: an hour each, over two years, in which summer begins and ends.
func TestRulesOfTZ(t *testing.T) {
	for _, rule := range rules {
		sameAsDate(t, rule, 1_767_225_600, 3607)
	}
	for _, none := range []string{
		"", "Nowhere/Town", "A5", "CET", "5", "<+14-14", "CET-1x",
	} {
		require.Nil(t, zoneOf(none), none)
	}
}

// sameAsDate compares a rule with the C library's reading of it.
func sameAsDate(t *testing.T, rule string, from, step int64) {
	t.Helper()
	need(t, "date", "coreutils")
	zone := zoneOf(rule)
	require.NotNil(t, zone, rule)
	const n = 5000
	var asked, want strings.Builder
	for i := range int64(n) {
		at := from + i*step
		fmt.Fprintf(&asked, "@%d\n", at)
		fmt.Fprintln(&want,
			time.Unix(at, 0).In(zone).Format("2006-01-02T15:04:05-07:00:00"))
	}
	date := exec.Command("date", "-f", "-", "+%Y-%m-%dT%H:%M:%S%::z")
	date.Env = append(os.Environ(), "TZ="+rule, "LC_ALL=C")
	date.Stdin = strings.NewReader(asked.String())
	got, err := date.Output()
	require.NoError(t, err)
	if string(got) != want.String() {
		theirs := strings.Split(string(got), "\n")
		ours := strings.Split(want.String(), "\n")
		for i := range theirs {
			require.Equal(t, theirs[i], ours[i], "%s at %d", rule, from+int64(i)*step)
		}
	}
}

// Any rule is understood as date(1) does, if no change falls on the turn of a year: there
// the C library takes the year of UTC.
func FuzzRuleOfTZ(f *testing.F) {
	for i := range rules {
		f.Add(int16(i*300), uint16(i*700), uint8(i), uint8(i+3), uint8(i), uint8(i+2),
			int16(i*60))
	}
	f.Fuzz(func(
		t *testing.T, west int16, begin uint16, month, other, week, day uint8, hour int16,
	) {
		minutes := int(west) % (24 * 60)
		sign := ""
		if minutes < 0 {
			sign, minutes = "-", -minutes
		}
		m, o := int(month%10)+2, int(other%10)+2
		if m == o {
			o = 2 + (o-1)%10
		}
		at := int(hour) % (24 * 60)
		rule := fmt.Sprintf("AAA%s%d:%02dBBB,M%d.%d.%d/%d:%02d,M%d.%d.%d", sign,
			minutes/60, minutes%60, m, week%5+1, day%7, max(at, 0)/60, max(at, 0)%60, o,
			day%5+1, week%7)
		sameAsDate(t, rule, 1_767_225_600+int64(begin)*3600, 7201)
	})
}
