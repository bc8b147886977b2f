package lock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A havoc lets goroutines use each other's holds and ctxs with all methods, beside
// observers that do the same, panic and end goroutines.
type havoc struct {
	*testing.T
	locks []recipes.InterProcessLock

	mu     sync.Mutex
	random *rand.Rand
	wild   bool
	holds  []*recipes.Hold
	ctxs   []context.Context
	of     []heldCtx
}

type heldCtx struct {
	ctx  context.Context
	hold *recipes.Hold
}

func (h *havoc) n(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.random.IntN(n)
}

func (h *havoc) ctx() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ctxs[h.random.IntN(len(h.ctxs))]
}

func (h *havoc) hold() *recipes.Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.holds) == 0 {
		return nil
	}
	return h.holds[h.random.IntN(len(h.holds))]
}

func (h *havoc) keep(ctx context.Context, hold *recipes.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold != nil {
		h.holds = append(h.holds, hold)
	}
	h.ctxs = append(h.ctxs, ctx)
	if len(h.ctxs) > 40 {
		h.ctxs = append(h.ctxs[:1], h.ctxs[20:]...)
	}
	if len(h.holds) > 400 {
		h.holds = h.holds[1:]
	}
}

func (h *havoc) poke() {
	lock, ctx := h.locks[h.n(len(h.locks))], h.ctx()
	switch h.n(9) {
	case 0:
		lock.IsAcquiredInThisProcess()
	case 1:
		if hold := lock.Hold(ctx); hold != nil {
			_ = hold.Err()
			hold.CheckOp()
		}
	case 2:
		if m, ok := lock.(*recipes.InterProcessMultiLock); ok {
			for _, hold := range m.Holds(ctx) {
				hold.Path()
			}
		}
	case 3:
		hold := h.hold()
		within := hold.Context(ctx)
		h.keep(context.WithoutCancel(within), nil)
		h.mu.Lock()
		if hold != nil {
			h.of = append(h.of, heldCtx{within, hold})
		}
		h.mu.Unlock()
	case 4:
		_ = h.hold().Release(ctx)
	case 5:
		_ = lock.Release(ctx)
	case 6:
		_, _ = h.hold().Multi()
	case 7:
		if ok, err := lock.AcquireTimeout(ctx, 0); ok && err == nil {
			_ = lock.Release(ctx)
		}
	case 8:
		_ = recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
			h.keep(context.WithoutCancel(ctx), hold)
			return nil
		}, recipes.WaitAtMost(time.Duration(h.n(100))*time.Millisecond))
	}
}

func (h *havoc) observe(_ context.Context, e recipes.Event) {
	h.mu.Lock()
	wild := h.wild
	h.mu.Unlock()
	if !wild {
		return
	}
	if e.Kind == recipes.EventLost {
		defer func() { _ = recover() }() // it would end the process
	}
	switch n := h.n(40); {
	case n == 0 && e.Kind != recipes.EventLost:
		panic("observer")
	case n == 1:
		runtime.Goexit()
	case n < 10:
		h.poke()
	}
}

func (h *havoc) run() {
	for range 40 {
		done := make(chan struct{})
		go func() { // which an observer may end
			defer close(done)
			defer func() { _ = recover() }()
			h.once()
		}()
		<-done
	}
}

func (h *havoc) once() {
	lock, ctx := h.locks[h.n(len(h.locks))], h.ctx()
	if h.n(3) == 0 {
		h.poke()
		return
	}
	hold, err := recipes.Acquire(ctx, lock,
		recipes.WaitAtMost(time.Duration(h.n(500))*time.Millisecond))
	if err != nil {
		return
	}
	h.keep(context.WithoutCancel(hold.Context(ctx)), hold)
	time.Sleep(time.Duration(h.n(20)) * time.Millisecond)
	if h.n(4) > 0 {
		_ = hold.Release(ctx)
	}
}

func TestHavocLeavesNothingBehind(t *testing.T) {
	for seed := range uint64(2) {
		for _, cached := range []bool{false, true} {
			name := strconv.FormatUint(seed, 10)
			if cached {
				name += " cached"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
					havocIn(t, b, seed, cached)
				})
			})
		}
	}
}

// endAll releases what is held yet, and requires that no ctx of a hold goes on.
func (h *havoc) endAll(t *testing.T, holds []*recipes.Hold, of []heldCtx) {
	t.Helper()
	for _, hold := range holds {
		_ = hold.Release(t.Context())
	}
	for _, ctx := range h.ctxs {
		for _, lock := range h.locks {
			for lock.Release(ctx) == nil {
				continue
			}
		}
	}
	for _, c := range of {
		if c.hold.Release(t.Context()) != nil { // it was released
			assert.Error(t, c.ctx.Err(), "%s %v", c.hold.Path(), c.hold.Err())
		}
	}
}

func havocIn(t *testing.T, b *locktest.Bubble, seed uint64, cached bool) {
	t.Helper()
	h := &havoc{
		T: t, random: rand.New(rand.NewPCG(seed, 9)), wild: true,
		ctxs: []context.Context{t.Context()},
	}
	opts := []recipes.Option{recipes.WithObserver(h.observe)}
	if seed%2 == 1 {
		opts = append(opts, recipes.WithMaxHold(30*time.Millisecond))
	}
	sopts := opts
	if cached {
		opts = append(opts, recipes.WithCaching(50*time.Millisecond, 3))
	}
	x, y := b.Mutex(t, b.Ours, "/x", opts...), b.Mutex(t, b.Ours, "/y", opts...)
	rw := locktest.NewReadWriteLock(t, b.Ours, "/rw", opts...)
	m := locktest.NewSemaphoreMutex(t, b.Ours, "/m", sopts...)
	s := locktest.NewSemaphore(t, b.Ours, "/s", 3, sopts...)
	xy := recipes.NewInterProcessMultiLockOf(x, y)
	h.locks = []recipes.InterProcessLock{
		x, y, rw.ReadLock(), rw.WriteLock(), m, s.AsLock(2), xy,
		recipes.NewInterProcessMultiLockOf(xy, m, rw.WriteLock()),
		recipes.NewInterProcessMultiLockOf(m, rw.ReadLock(), x),
		recipes.NewInterProcessMultiLockOf(s.AsLock(1), y),
	}
	var all sync.WaitGroup
	for range 24 {
		all.Go(h.run)
	}
	for i := range 3 {
		time.Sleep(2 * time.Second)
		if i == 1 {
			b.Cluster.Link("ours").Cut()
			time.Sleep(13 * time.Second)
			b.Cluster.Link("ours").Heal()
		}
		b.Cluster.Link("ours").Reset()
	}
	all.Wait()
	h.mu.Lock()
	h.wild = false
	holds, of := h.holds, h.of
	h.mu.Unlock()
	h.endAll(t, holds, of)
	time.Sleep(time.Minute)
	for _, z := range b.Cluster.Znodes() {
		require.NotContains(t, z, "_c_", "it was left behind")
	}
	for _, lock := range h.locks {
		require.False(t, lock.IsAcquiredInThisProcess())
	}
}
