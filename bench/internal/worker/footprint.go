package worker

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/internal/wiretap"
)

// settled is long enough for what a library does some time after an acquisition.
const settled = 200 * time.Millisecond

// tapped has a shape done once more through a tap, which counts the watches. It takes
// memory itself, so the rest is that of the first time.
func tapped(shape shape) shape {
	return func(ctx context.Context, t *team) (load.Result, error) {
		r, err := shape(ctx, t)
		if err != nil || !t.peer.ZooKeeper {
			return r, err
		}
		again := newTeam(t.peer, t.Load)
		again.Path += "-tapped"
		again.throughTap()
		counted, err := shape(ctx, again)
		r.Watches = counted.Watches
		return r, errors.Join(err, again.close())
	}
}

// waiting measures what waiters cost: their sessions, locks and the holder are there
// before, and the goroutine in which each of them waits is not counted.
func waiting(ctx context.Context, t *team) (load.Result, error) {
	users, err := t.users(ctx, t.Users)
	if err != nil {
		return load.Result{}, err
	}
	if _, err := t.holder(ctx); err != nil {
		return load.Result{}, err
	}
	before := t.footprint()
	q := queueUp(users)
	if err := t.awaitCrowd(ctx, len(users)+1); err != nil {
		return load.Result{}, err
	}
	if err := sleep(ctx, settled); err != nil {
		return load.Result{}, err
	}
	after := t.footprint()
	after.threads -= len(users)
	return before.until(after, len(users)), t.dismiss(q)
}

// dismiss ends the sessions under those who wait, since to let them through one by one
// takes some peers minutes. How their waits end is of no interest.
func (t *team) dismiss(q *queue) error {
	err := t.close()
	ended := make(chan struct{})
	go func() {
		_ = q.all.Wait() // they are refused
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
	return err
}

// holding measures what holders cost, each of a lock of its own.
func holding(ctx context.Context, t *team) (load.Result, error) {
	users, err := t.users(ctx, t.Users)
	if err != nil {
		return load.Result{}, err
	}
	before := t.footprint()
	for _, u := range users {
		if err := u.lock.Acquire(u.ctx); err != nil {
			return load.Result{}, err
		}
	}
	if err := sleep(ctx, settled); err != nil {
		return load.Result{}, err
	}
	return before.until(t.footprint(), len(users)), nil
}

// A footprint is what the process has at one moment.
type footprint struct {
	heap    uint64
	threads int
	watches *int // set since the last one, less those that have fired
}

// footprint counts, and forgets what the tap has listed, which would count as heap.
func (t *team) footprint() footprint {
	watches := t.countWatches()
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has only finalized
	runtime.ReadMemStats(&m)
	return footprint{m.HeapAlloc, runtime.NumGoroutine(), watches}
}

func (t *team) countWatches() *int {
	if t.tap == nil {
		return nil
	}
	n := -t.tap.Count(wiretap.Event)
	for _, request := range t.tap.Requests() {
		if request.Watch {
			n++
		}
	}
	t.tap.Reset()
	return &n
}

// until shares what was added between two footprints out among n.
func (f footprint) until(later footprint, n int) load.Result {
	each := func(sum float64) *float64 {
		sum /= float64(n)
		return &sum
	}
	r := load.Result{
		Ops:     int64(n),
		Heap:    each(float64(later.heap) - float64(f.heap)),
		Threads: each(float64(later.threads - f.threads)),
	}
	if later.watches != nil {
		r.Watches = each(float64(*later.watches))
	}
	return r
}
