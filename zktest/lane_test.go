package zktest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A road is a lane, and what has arrived on it.
type road struct {
	*lane
	mu      sync.Mutex
	blocked bool
	arrived []string
}

func newRoad() *road {
	r := &road{}
	r.lane = newLane(&r.mu, func() bool { return r.blocked })
	return r
}

func (r *road) send(what string, delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push(delay, func() { r.arrived = append(r.arrived, what) })
}

func (r *road) do(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// by is what has arrived some time from now.
func (r *road) by(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrived
}

func TestLanesKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.send("a", 0)
		require.Equal(t, []string{"a"}, r.arrived, "at once, in push itself")
		r.send("b", 10)
		r.send("c", 5)
		r.send("d", 20)
		r.send("e", 0)
		require.Equal(t, []string{"a"}, r.by(9))
		require.Equal(
			t, []string{"a", "b", "c"}, r.by(1), "not ahead of what was sent before",
		)
		require.Equal(t, []string{"a", "b", "c"}, r.by(9))
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, r.by(1))
	})
}

func TestAHeldLaneLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.send("a", 10)
		r.do(func() { r.blocked = true })
		r.send("b", 0)
		r.send("c", time.Hour)
		require.Empty(t, r.by(time.Minute))
		r.do(func() {
			r.blocked = false
			r.pump()
		})
		require.Equal(t, []string{"a", "b"}, r.by(0))
		require.Equal(t, []string{"a", "b", "c"}, r.by(time.Hour))
	})
}

func TestWhatArrivesMaySendMore(t *testing.T) {
	r := newRoad()
	r.do(func() {
		r.push(0, func() {
			r.push(0, func() { r.arrived = append(r.arrived, "second") })
			r.arrived = append(r.arrived, "first")
		})
		require.Equal(t, []string{"first", "second"}, r.arrived)
		r.push(0, func() {
			r.push(0, func() { r.arrived = append(r.arrived, "too late") })
			r.close()
		})
	})
	r.send("later", 0)
	require.Equal(t, []string{"first", "second"}, r.arrived)
}

func TestAClearedLaneBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.send("a", time.Minute)
		r.do(r.clear)
		r.send("b", 10)
		require.Equal(t, []string{"b"}, r.by(10), "not behind what is gone")
		require.Equal(t, []string{"b"}, r.by(time.Hour))
		r.send("c", 10)
		r.do(r.close)
		require.Equal(t, []string{"b"}, r.by(time.Hour))
	})
}
