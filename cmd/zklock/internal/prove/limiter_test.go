package prove

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In no second are there more requests than the rate, whatever is asked for.
func TestLimiterKeepsToItsRateInEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 50
		l := newLimiter(rate)
		sent := make(chan time.Time, 10_000)
		for n := range 10 { // ask for much more
			call := []string{"create", "getw", "delete", "childrenw", "multi"}[n%5]
			go func() {
				for range 200 {
					time.Sleep(l.pace(call, "/p"))
					sent <- time.Now()
				}
			}()
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		close(sent)
		var all []time.Time
		for at := range sent {
			all = append(all, at)
		}
		slices.SortFunc(all, time.Time.Compare)
		require.True(t, len(all) == 10*200)
		for i := rate; i < len(all); i++ {
			require.GreaterOrEqual(t, all[i].Sub(all[i-rate]), time.Second-l.gap,
				"request %d", i)
		}
	})
}

// A heartbeat waits for nothing, and others for it.
func TestLimiterLetsHeartbeatsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(10)
		for range 20 {
			require.Zero(t, l.pace("sync", "/"))
			require.Zero(t, l.pace("end of 7", ""))
		}
		began := time.Now()
		require.Zero(t, l.pace("create", "/p"))
		require.Equal(t, burst+20*l.gap, time.Since(began))
	})
}

// A create waits for its turn at last, whatever else is asked for all the time.
func TestLimiterStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(50)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 10 {
			go func() {
				for ctx.Err() == nil {
					time.Sleep(l.pace("children", "/p"))
				}
			}()
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		time.Sleep(l.pace("create", "/p"))
		require.Less(t, time.Since(began), 10*time.Second)
		cancel()
		time.Sleep(time.Minute)
	})
}
