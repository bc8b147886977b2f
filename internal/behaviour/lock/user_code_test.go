package lock_test

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// failures are how code of the user's keeps its caller from returning.
var failures = map[string]func(){
	"panic": func() { panic(badLabel) }, "Goexit": runtime.Goexit,
}

// A failingHandler is a log handler that fails at each record.
type failingHandler struct {
	slog.Handler
	fail func()
}

func (failingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h failingHandler) Handle(context.Context, slog.Record) error {
	h.fail()
	return nil
}

// tried runs f as net/http runs a handler. f need not return.
func tried(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Hour):
		require.FailNow(t, "it hangs")
	}
}

// A log handler that fails may end the call in which it was called. It leaves nothing,
// and nobody hangs: the lock warns of another recipe's znodes, in each of its
// directories.
func TestALogHandlerThatFails(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			locktest.ForAllInBubbles(t, func(
				t *testing.T, b *locktest.Bubble, k locktest.Kind,
			) {
				testFailingLog(t, b, k, fail)
			})
		})
	}
}

func testFailingLog(t *testing.T, b *locktest.Bubble, k locktest.Kind, fail func()) {
	anyone := zk.WorldACL(zk.PermAll)
	_, err := b.Other.Create("/lock", nil, 0, anyone)
	require.NoError(t, err)
	for _, dir := range k.Dirs {
		if dir != "" {
			_, err := b.Other.Create("/lock"+dir, nil, 0, anyone)
			require.NoError(t, err)
		}
		_, err := b.Other.Create("/lock"+dir+"/x__lock__0000000001", nil, 0, anyone)
		require.NoError(t, err)
	}
	lock := k.MustMake(t, b.Ours, "/lock",
		recipes.WithLogger(slog.New(failingHandler{slog.DiscardHandler, fail})))
	ctx, acquired := locktest.Owner(t), false
	for range len(k.Dirs) + 1 { // each warns once
		tried(t, func() { acquired = lock.Acquire(ctx) == nil })
		if acquired {
			tried(t, func() { require.NoError(t, lock.Release(ctx)) })
		}
		time.Sleep(time.Minute)
		require.Empty(t, locktest.Znodes(b))
	}
	require.True(t, acquired)
}

// A semaphore's queue and leases are two, and a failure between them leaves neither.
func TestALogHandlerThatFailsBetweenGateAndLease(t *testing.T) {
	for name, fail := range failures {
		for _, most := range []int{1, 2} {
			locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
				for _, path := range []string{
					"/s", "/s/leases", "/s/leases/x-latch-0000000001",
				} {
					_, err := b.Other.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
					require.NoError(t, err)
				}
				s := locktest.NewSemaphore(t, b.Ours, "/s", most,
					recipes.WithLogger(
						slog.New(failingHandler{slog.DiscardHandler, fail})))
				requireEnded(t, map[string]string{"panic": "panics"}[name], func() {
					_, _ = s.AcquireN(t.Context(), most)
				})
				time.Sleep(time.Minute)
				require.Empty(t, locktest.Znodes(b))
				leases, err := s.AcquireN(t.Context(), most) // it warns once
				require.NoError(t, err)
				require.Len(t, leases, most)
			})
		}
	}
}

// What nobody can mean is refused before it takes memory, or a place at the gate.
func TestTooManyLeasesAtOnce(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		err := recipes.SetSharedCount(t.Context(), b.Ours, "/n", math.MaxInt32)
		require.NoError(t, err)
		shared := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/n")
		fixed := locktest.NewSemaphore(t, b.Ours, "/s", math.MaxInt)
		for _, s := range []*recipes.InterProcessSemaphoreV2{shared, fixed} {
			for _, n := range []int{10_001, math.MaxInt32, math.MaxInt} {
				_, err := s.AcquireN(t.Context(), n)
				require.ErrorContains(t, err, "exceeds 10000")
				_, err = s.AcquireTimeout(t.Context(), n, time.Second)
				require.ErrorContains(t, err, "exceeds 10000")
				err = s.AsLock(n).Acquire(t.Context())
				require.ErrorContains(t, err, "exceeds 10000")
			}
		}
		require.Empty(t, locktest.Znodes(b))
		leases, err := fixed.AcquireN(t.Context(), 300)
		require.NoError(t, err)
		require.NoError(t, fixed.ReturnAll(t.Context(), leases))
	})
}

// A listener that ends its goroutine is called at the next request all the same, and
// takes no place of the others.
func TestAListenerThatEndsItsGoroutine(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var calls atomic.Int32
		b.Lock.MakeRevocable(func() {
			calls.Add(1)
			runtime.Goexit()
		})
		v := locktest.VisitLock(t, b.Lock)
		hold := v.Entered()
		const requests = 50 // more than run at once
		for range requests {
			require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Other, hold.Path()))
			time.Sleep(time.Second)
		}
		require.EqualValues(t, requests, calls.Load())
		v.Leave()
	})
}

// A handler may fail, or hang, as soon as it is asked whether it wants a record. All
// locks of the connection hung with it.
func TestALogHandlerThatFailsWhenAsked(t *testing.T) {
	fails := maps.Clone(failures)
	fails["hang"] = nil // set in its bubble
	for name, fail := range fails {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			end := make(chan struct{})
			defer close(end)
			if name == "hang" {
				fail = func() { <-end }
			}
			lock := b.Mutex(t, b.Ours, "/lock", recipes.WithLogger(
				slog.New(askedHandler{slog.DiscardHandler, fail})))
			tried(t, func() { locktest.UseTimes(t, lock, 1) })
			tried(t, func() {
				ctx, cancel := context.WithTimeout(locktest.Owner(t), time.Minute)
				defer cancel()
				_, err := recipes.Acquire(ctx, b.Mutex(t, b.Ours, "/beside"))
				require.NoError(t, err)
			})
			time.Sleep(time.Minute)
			require.Len(t, locktest.Znodes(b), 1)
		})
	}
}

// An askedHandler fails when it is asked.
type askedHandler struct {
	slog.Handler
	fail func()
}

func (h askedHandler) Enabled(context.Context, slog.Level) bool {
	h.fail()
	return true
}
