package reliance_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever is paged for a loss, or before one, finds that answers were slow: one warning a
// minute while something is held. With T = 10 s, answers of 2.6 s are a loss.
func TestSlowAnswersAreToldOnceAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		answer time.Duration
		held   bool
		told   int
	}{
		"slow":             {1400 * time.Millisecond, true, 3},
		"nothing held":     {1400 * time.Millisecond, false, 0},
		"fast enough":      {1300 * time.Millisecond, true, 0},
		"so slow as to be": {2600 * time.Millisecond, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _ := opened()
				var log, late bytes.Buffer
				l.WarnTo(slog.New(slog.DiscardHandler))
				l.WarnTo(slog.New(slog.NewTextHandler(&log, nil)))
				l.WarnTo(slog.New(slog.NewTextHandler(&late, nil)))
				l.Track("/znode", 1, &znode{"znode"})
				var under []time.Time // contacts, by when they were sent
				for began := time.Now(); time.Since(began) < 3*time.Minute; {
					for range 40 { // on time, answered after a while
						under = append(under, time.Now())
						l.Asked()
						for range 10 {
							time.Sleep(timeout / 400)
							if time.Since(under[0]) >= c.answer {
								l.Heard(1, under[0])
								under = under[1:]
							}
							if len(under) == 0 {
								break
							}
						}
					}
					if c.held && time.Since(began) > timeout {
						_, err := l.Hold("/znode", 0)
						require.NoError(t, err)
					}
					for _, f := range l.Due(l.Now()) {
						f()
					}
				}
				require.Equal(t, c.told, strings.Count(log.String(),
					"zookeeper lock: answers are slow, holds may be lost"), log.String())
				if c.told > 0 {
					require.Contains(t, log.String(), "level=WARN")
					require.Contains(t, log.String(), " timeout=10s lost_from=2.6s")
				}
				require.Empty(t, late.String())
			})
		})
	}
}
