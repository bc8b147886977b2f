package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An alarm rings at its time and not at the next tick, by the clock that has moved
// farther.
func TestAnAlarmRings(t *testing.T) {
	const d = 330 * time.Millisecond
	for name, c := range map[string]struct {
		after   time.Duration
		wall    time.Duration // how far the wall clock moves on its own, at once
		stopped bool
		rings   time.Duration // 0: it does not
	}{
		"in time":             {d, 0, false, d},
		"before the tick":     {d / 10, 0, false, d / 10},
		"a suspended machine": {d, time.Minute, false, 100 * time.Millisecond}, // a tick
		"a clock set back":    {d, -time.Minute, false, d},
		"not when stopped":    {d, 0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := use(t, newFake(), 10*time.Second)
				began, rang := time.Now(), make(chan time.Duration, 2)
				stop := s.After(c.after, func() { rang <- time.Since(began) })
				s.MoveWall(c.wall)
				if c.stopped {
					stop()
				}
				time.Sleep(time.Hour)
				stop()
				close(rang)
				require.Equal(t, c.rings, <-rang)
				_, twice := <-rang
				require.False(t, twice)
			})
		})
	}
}

// Holds on one connection are told each by its own margin, to the very moment.
func TestEachHoldHasItsMargin(t *testing.T) {
	const timeout = 12 * time.Second
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, timeout)
		none := hold(t, s, conn, "/none")
		time.Sleep(timeout)
		margins := []time.Duration{3 * time.Second, 70 * time.Millisecond}
		var held []*ephemeral
		for i, margin := range margins {
			path := []string{"/a", "/b"}[i]
			e := newEphemeral()
			s.Track(path, 1, e)
			require.NoError(t, s.Hold(path, margin))
			require.NoError(t, s.Hold(path, 0), "the longest counts")
			held = append(held, e)
		}
		defer conn.silence()()
		none.await(t)
		for i, margin := range margins {
			held[i].await(t)
			require.Equal(t, none.at.Add(-margin), held[i].at)
		}
		require.ErrorContains(t, held[0].why, "loss margin is 3s")
	})
}
