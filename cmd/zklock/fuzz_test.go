package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What anybody may have stored in the record is believed only if a run of the job can
// have written it: it is of no period to come, and of the job's own periods.
func FuzzMark(f *testing.F) {
	const noted = int64(1_800_000_000)
	for _, data := range []string{
		`{"period": 20832, "state": "done", "per": "24h0m0s"}`,
		`{"period": 20833, "state": "started"}`, `{"period": 1, "state": "failed"}`,
		`{"period": -1, "state": "done"}`, `{"state": "\u202e"}`,
		`{"period": 9223372036854775807, "state": "done"}`,
		`{"period": 0, "state": "done", "per": "-1h"}`, `{"per": "1.5s"}`,
		`{"period": 0, "state": "done", "per": "2562047h47m16s"}`, `null`, `{}`, ``,
		`{"period": 1e300}`, `[`, "\xff",
	} {
		f.Add([]byte(data), noted, uint16(24))
		f.Add([]byte(data), noted, uint16(0)) // doctor does not know --per
	}
	f.Fuzz(func(t *testing.T, data []byte, seconds int64, hours uint16) {
		noted, per := time.Unix(seconds%1e11, 0), time.Duration(hours)*time.Hour
		m, err := parseMark(data, noted, per)
		if err != nil {
			require.Less(t, len(err.Error()), 12*dataMost, "it repeats little of it")
			return
		}
		require.Contains(t, []string{started, done, failed}, m.State)
		theirs := max(per, time.Second)
		if m.Per != "" {
			theirs, err = time.ParseDuration(m.Per)
			require.NoError(t, err)
		}
		if per != 0 {
			require.Equal(t, per, theirs)
		}
		require.GreaterOrEqual(t, m.Period, int64(0))
		require.LessOrEqual(t, m.Period, periodOf(noted, theirs)+1)
	})
}

// A server may answer anything to srvr.
func FuzzVersion(f *testing.F) {
	f.Add([]byte("Zookeeper version: 3.4.14-4c25d480e66a, built on 03/06/2019\nx"))
	f.Add([]byte("srvr is not executed because it is not in the whitelist.\n"))
	f.Add([]byte("Zookeeper version: 99999999999999999999.5\n"))
	f.Add([]byte("Zookeeper version: .\xff\n"))
	f.Fuzz(func(t *testing.T, told []byte) {
		version := versionIn(told)
		require.Contains(t, string(told), version)
		if has, known := hasContainers(version); has && known {
			require.Regexp(t, `^\+?[0-9]+\.\+?[0-9]+`, version)
		}
	})
}
