package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// ownerSteps is how many steps a plain run takes of each program; OWNER_STEPS tells
// another number.
const ownerSteps = 3000

// A program lets goroutines acquire and release locks by all doors, one step at a time,
// with ctxs that they pass to one another and that outlive their holds. After each step
// it compares what the library says with a model.
type program struct {
	*testing.T
	*locktest.Bubble
	random  *rand.Rand
	lossy   bool
	locks   []*programLock
	workers []*worker
	ctxs    []programCtx
	holds   []programHold
	last    map[*modelRecord]*recipes.Hold // the handle of each record, once it was seen
	fresh   int
	log     []string
}

type programLock struct {
	*modelLock
	lock recipes.InterProcessLock
}

// A programCtx is a ctx, and what the model knows of it.
type programCtx struct {
	context.Context
	caller modelCaller
}

type programHold struct {
	*recipes.Hold
	record *modelRecord
}

// A worker is a goroutine that does what it is told, also within Do.
type worker struct {
	n        int
	commands chan func()
	results  chan error
	within   []*modelRecord // of the calls of Do that it is in
}

// serve does commands until it is to return, which it does with each nil.
func (w *worker) serve() {
	for f := range w.commands {
		if f == nil {
			return
		}
		f()
	}
}

// on runs f on a worker and returns its error.
func (p *program) on(w *worker, f func() error) error {
	w.commands <- func() { w.results <- f() }
	return <-w.results
}

func TestOwnersByAModel(t *testing.T) {
	steps := ownerSteps
	if n, err := strconv.Atoi(os.Getenv("OWNER_STEPS")); err == nil {
		steps = n
	}
	for name, opts := range map[string][]recipes.Option{
		"with losses": nil,
		"cached":      {recipes.WithCaching(time.Minute, 16)},
	} {
		for seed, workers := range []int{programWorkers, 8, 4, 2} {
			t.Run(fmt.Sprintf("%s, by %d", name, workers), func(t *testing.T) {
				t.Parallel()
				locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
					p := newProgram(t, b, workers, uint64(seed), opts)
					defer p.stop()
					for range steps {
						p.step()
					}
				})
			})
		}
	}
}

// programWorkers is how many goroutines are at it, or fewer: what is up to one that comes
// back again and again is found by few.
const programWorkers = 64

func newProgram(
	t *testing.T, b *locktest.Bubble, workers int, seed uint64, opts []recipes.Option,
) *program {
	t.Helper()
	p := &program{
		T: t, Bubble: b, random: rand.New(rand.NewPCG(seed, 1)), lossy: opts == nil,
		last: map[*modelRecord]*recipes.Hold{},
	}
	leaf := func(name string, lock recipes.InterProcessLock, room int) *programLock {
		l := &modelLock{name: name, room: room}
		l.book = &modelBook{[]*modelLock{l}}
		p.locks = append(p.locks, &programLock{l, lock})
		return p.locks[len(p.locks)-1]
	}
	multi := func(name string, members ...*programLock) *programLock {
		l, locks := &modelLock{name: name}, []recipes.InterProcessLock{}
		for _, m := range members {
			l.members, locks = append(l.members, m.modelLock), append(locks, m.lock)
		}
		p.locks = append(p.locks, &programLock{
			l, recipes.NewInterProcessMultiLockOf(locks...),
		})
		return p.locks[len(p.locks)-1]
	}
	a := leaf("a", b.Mutex(t, b.Ours, "/a", opts...), 0)
	c := leaf("c", b.Mutex(t, b.Ours, "/c", opts...), 0)
	rw := locktest.NewReadWriteLock(t, b.Ours, "/rw", opts...)
	read, write := leaf("read", rw.ReadLock(), 0), leaf("write", rw.WriteLock(), 0)
	read.shared, read.other, write.other = true, write.modelLock, read.modelLock
	read.book.sides = append(read.book.sides, write.modelLock)
	write.book = read.book
	m := locktest.NewSemaphoreMutex(t, b.Ours, "/m")
	s := leaf("m", m, 1)
	semaphore := locktest.NewSemaphore(t, b.Ours, "/s", 2)
	leaf("lease", semaphore.AsLock(1), 2)
	ac := multi("a+c", a, c)
	multi("c+write", c, write)
	multi("read+a", read, a)
	multi("(a+c)+m", ac, s)
	for n := range workers {
		w := &worker{n: n + 1, commands: make(chan func()), results: make(chan error)}
		p.workers = append(p.workers, w)
		go w.serve()
	}
	p.ctxs = []programCtx{{Context: context.Background()}}
	return p
}

// stop ends all workers, which returns from each Do.
func (p *program) stop() {
	for _, w := range p.workers {
		for range w.within {
			w.commands <- nil
			<-w.results //nolint:errcheck // the model is not asked any more
		}
		close(w.commands)
	}
	if p.Failed() {
		p.Logf("the last steps:")
		for _, line := range p.log[max(0, len(p.log)-40):] {
			p.Log(line)
		}
	}
}

func (p *program) say(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func pick[T any](p *program, all []T) T { return all[p.random.IntN(len(all))] }

// step is one step of one worker.
func (p *program) step() {
	w, l := pick(p, p.workers[:1+p.random.IntN(len(p.workers))]), pick(p, p.locks)
	ctx := pick(p, p.ctxs)
	if p.random.IntN(2) == 0 {
		ctx = p.ctxs[0]
	}
	ctx.caller.goroutine = w.n
	switch p.random.IntN(12) {
	case 0, 1:
		p.acquire(w, ctx, l)
	case 2:
		p.acquireHold(w, ctx, l)
	case 3:
		p.do(w, ctx, l)
	case 4, 5:
		p.release(w, ctx, l)
	case 6, 7:
		if len(p.holds) > 0 {
			p.releaseHold(w, ctx, pick(p, p.holds))
		}
	case 8:
		if len(w.within) > 0 {
			p.endDo(w)
		}
	case 9:
		p.newCtx(ctx)
	case 10:
		p.lose()
	}
	p.compare(w, ctx, l)
	p.forget()
}

// forget keeps few ctxs and holds, so that each is used often.
func (p *program) forget() {
	if len(p.ctxs) > 24 {
		p.ctxs = append(p.ctxs[:1], p.ctxs[9:]...)
	}
	if len(p.holds) > 40 {
		p.holds = p.holds[10:]
	}
}

// is requires that err is what the model says.
func (p *program) is(want modelResult, err error, what string) {
	p.Helper()
	got := modelResult{
		errors.Is(err, recipes.ErrBusy), errors.Is(err, recipes.ErrUpgrade),
		errors.Is(err, recipes.ErrLockLost), errors.Is(err, recipes.ErrNotOwner),
	}
	require.Equal(p, want, got, "%s: %v", what, err)
	require.Equal(p, want.ok(), err == nil, "%s: %v", what, err)
}

func (p *program) acquire(w *worker, ctx programCtx, l *programLock) {
	p.say("%d: %s.AcquireTimeout as %v", w.n, l.name, ctx.caller)
	_, want := l.acquire(&ctx.caller)
	err := p.on(w, func() error {
		held, err := l.lock.AcquireTimeout(ctx, 0)
		if err == nil && !held {
			err = recipes.ErrBusy
		}
		return err
	})
	p.is(want, err, "acquire "+l.name)
}

func (p *program) acquireHold(w *worker, ctx programCtx, l *programLock) {
	p.fresh++
	ctx.caller.fresh = p.fresh
	p.say("%d: Acquire %s as %v", w.n, l.name, ctx.caller)
	record, want := l.acquire(&ctx.caller)
	var hold *recipes.Hold
	err := p.on(w, func() (err error) {
		hold, err = recipes.Acquire(ctx, l.lock, recipes.WaitAtMost(0))
		return err
	})
	p.is(want, err, "Acquire "+l.name)
	if err == nil {
		p.got(record, hold)
	}
}

// got takes note of a hold, which is no other record's.
func (p *program) got(record *modelRecord, hold *recipes.Hold) {
	for r, h := range p.last {
		if r != record && h == hold {
			require.Fail(p, "two records have one hold", "%s", r.lock.name)
		}
	}
	p.last[record] = hold
	p.holds = append(p.holds, programHold{hold, record})
}

// do goes into a Do, if it gets the lock.
func (p *program) do(w *worker, ctx programCtx, l *programLock) {
	if len(w.within) > 2 {
		return
	}
	p.say("%d: Do %s as %v", w.n, l.name, ctx.caller)
	record, want := l.acquire(&ctx.caller)
	in := make(chan struct{})
	w.commands <- func() {
		w.results <- recipes.Do(ctx, l.lock, func(
			within context.Context, hold *recipes.Hold,
		) error {
			p.got(record, hold)
			p.keep(within, ctx.caller, record)
			close(in)
			w.serve()
			return nil
		}, recipes.WaitAtMost(0))
	}
	select {
	case <-in:
		require.True(p, want.ok(), "Do %s got it, and the model says %v", l.name, want)
		w.within = append(w.within, record)
	case err := <-w.results:
		require.False(p, want.ok(), "Do %s: %v", l.name, err)
		p.is(want, err, "Do "+l.name)
	}
}

// endDo lets the innermost Do of a worker return.
func (p *program) endDo(w *worker) {
	record := w.within[len(w.within)-1]
	w.within = w.within[:len(w.within)-1]
	p.say("%d: Do %s returns", w.n, record.lock.name)
	want := record.end()
	w.commands <- nil
	p.is(want, <-w.results, "the end of Do "+record.lock.name)
}

func (p *program) release(w *worker, ctx programCtx, l *programLock) {
	p.say("%d: %s.Release as %v", w.n, l.name, ctx.caller)
	want := modelResult{notOwner: true}
	if r := l.youngest(&ctx.caller); r != nil {
		want = r.end()
	}
	p.is(want, p.on(w, func() error { return l.lock.Release(ctx) }), "release "+l.name)
}

func (p *program) releaseHold(w *worker, ctx programCtx, h programHold) {
	p.say("%d: release a hold of %s", w.n, h.record.lock.name)
	want := h.record.end()
	err := p.on(w, func() error { return h.Release(ctx) })
	p.is(want, err, "release a hold of "+h.record.lock.name)
}

// newCtx makes a ctx: of a new owner, or of a hold.
func (p *program) newCtx(parent programCtx) {
	if len(p.holds) == 0 || p.random.IntN(4) == 0 {
		p.fresh++
		p.ctxs = append(p.ctxs, programCtx{
			recipes.WithOwner(parent),
			modelCaller{all: modelOwner{identity: p.fresh}},
		})
		return
	}
	h := pick(p, p.holds)
	within := h.Context(parent)
	require.Equal(
		p, !h.record.isWhole() || h.record.isLost(), within.Err() != nil, "Hold.Context",
	)
	p.keep(within, parent.caller, h.record)
}

// keep keeps a ctx of Hold.Context or Do beyond its end.
func (p *program) keep(ctx context.Context, parent modelCaller, record *modelRecord) {
	p.ctxs = append(p.ctxs, programCtx{context.WithoutCancel(ctx), modelCaller{
		namings: slices.Concat(record.namings(), parent.namings), all: parent.all,
	}})
}

// lose deletes the znode of a leaf that is held.
func (p *program) lose() {
	if !p.lossy || p.random.IntN(4) > 0 {
		return
	}
	for _, h := range p.holds {
		if h.record.lock.members != nil || h.record.ended || h.record.isLost() {
			continue
		}
		p.say("%s is lost", h.record.lock.name)
		p.Lose(p.T, h.Hold)
		h.record.tenure.lost = true
		synctest.Wait()
		return
	}
}

// compare asks what a worker's ctx has of a lock, and what has become of the holds.
func (p *program) compare(w *worker, ctx programCtx, l *programLock) {
	var hold *recipes.Hold
	_ = p.on(w, func() error {
		hold = l.lock.Hold(ctx)
		return nil
	})
	record := l.youngest(&ctx.caller)
	require.Equal(p, record != nil, hold != nil, "Hold of %s", l.name)
	if record != nil {
		if known := p.last[record]; known != nil {
			require.Same(p, known, hold, "Hold of %s", l.name)
		} else {
			p.got(record, hold)
		}
	}
	held := slices.ContainsFunc(l.records, func(r *modelRecord) bool {
		return r.isWhole() && !r.isLost()
	})
	require.Equal(p, held, l.lock.IsAcquiredInThisProcess(), "%s is acquired", l.name)
	for _, h := range p.holds {
		if !h.record.ended {
			require.Equal(p, h.record.isLost(), h.Err() != nil, h.record.lock.name)
		}
	}
}

// Goroutines that pass their ctxs to one another run freely, over outages, one of which
// ends the session. Those that are inside a lock at once are one owner.
func TestOwnersAtOnce(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				f := &freeForAll{T: t, inside: map[*recipes.Hold]bool{}}
				rw := locktest.NewReadWriteLock(t, b.Ours, "/rw")
				x := b.Mutex(t, b.Ours, "/x")
				f.locks = []recipes.InterProcessLock{
					b.Lock, x, rw.WriteLock(),
					recipes.NewInterProcessMultiLockOf(b.Lock, x),
					recipes.NewInterProcessMultiLockOf(x, rw.WriteLock()),
				}
				f.ctxs = []context.Context{context.Background()}
				var all sync.WaitGroup
				for n := range uint64(programWorkers) {
					all.Go(func() { f.run(rand.New(rand.NewPCG(seed, n))) })
				}
				for range 5 {
					time.Sleep(2 * time.Second)
					b.Cluster.Link("ours").Reset()
				}
				b.Cluster.Link("ours").Cut() // for longer than the session lasts
				time.Sleep(15 * time.Second)
				b.Cluster.Link("ours").Heal()
				all.Wait()
				time.Sleep(time.Minute)
				for _, z := range b.Cluster.Znodes() {
					require.NotContains(t, z, "_c_", "it was left behind")
				}
				for _, lock := range f.locks {
					require.False(t, lock.IsAcquiredInThisProcess())
				}
			})
		})
	}
}

type freeForAll struct {
	*testing.T
	locks []recipes.InterProcessLock

	mu     sync.Mutex // guards what follows
	inside map[*recipes.Hold]bool
	ctxs   []context.Context
}

func (f *freeForAll) run(random *rand.Rand) {
	for range 60 {
		f.mu.Lock()
		ctx := f.ctxs[random.IntN(len(f.ctxs))]
		f.mu.Unlock()
		lock := f.locks[random.IntN(len(f.locks))]
		wait := recipes.WaitAtMost(time.Duration(random.IntN(1000)) * time.Millisecond)
		stay := time.Duration(random.IntN(20)) * time.Millisecond
		if random.IntN(2) == 0 {
			_ = recipes.Do(ctx, lock, func(ctx context.Context, h *recipes.Hold) error {
				f.stay(ctx, h, stay)
				return nil
			}, wait)
			continue
		}
		hold, err := recipes.Acquire(ctx, lock, wait)
		if err != nil {
			continue
		}
		f.stay(hold.Context(ctx), hold, stay)
		for range 2 { // once too often
			_ = hold.Release(ctx)
		}
	}
}

// stay is inside with whoever is, and hands its ctx on.
func (f *freeForAll) stay(ctx context.Context, hold *recipes.Hold, d time.Duration) {
	f.enter(ctx, hold)
	time.Sleep(d)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.inside, hold)
}

func (f *freeForAll) enter(ctx context.Context, hold *recipes.Hold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other := range f.inside {
		if dir(other) == dir(hold) && other.Path() != hold.Path() &&
			other.Err() == nil && hold.Err() == nil {
			f.Errorf("%s and %s are held at once", other.Path(), hold.Path())
		}
	}
	f.inside[hold] = true
	f.ctxs = append(f.ctxs, context.WithoutCancel(ctx))
	if len(f.ctxs) > 20 {
		f.ctxs = append(f.ctxs[:1], f.ctxs[5:]...)
	}
}

// dir is the lock of a hold, of a multi lock that of its last member.
func dir(hold *recipes.Hold) string { return path.Dir(hold.Path()) }
