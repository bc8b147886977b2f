package locktest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// LongIdle is for places that are given up for another reason.
const LongIdle = time.Hour

// Settle is enough, in virtual time, for all that is told and answered by then.
const Settle = 100 * time.Millisecond

// A Visit is one owner's use of a lock, from the call of Acquire to that of Release.
type Visit struct {
	t    *testing.T
	Ctx  context.Context // of its owner
	lock recipes.InterProcessLock
	done <-chan error
}

// VisitLock begins to acquire lock, for a new owner.
func VisitLock(t *testing.T, lock recipes.InterProcessLock) *Visit {
	t.Helper()
	ctx, cancel := context.WithTimeout(Owner(t), 10*time.Minute)
	t.Cleanup(cancel)
	v := &Visit{t: t, Ctx: ctx, lock: lock}
	v.done = Start(func() error { return lock.Acquire(ctx) })
	time.Sleep(Settle)
	return v
}

// Hold is what the visitor has got by now, nil if nothing.
func (v *Visit) Hold() *recipes.Hold { return v.lock.Hold(v.Ctx) }

// Holds tells whether the visitor has got the lock by now.
func (v *Visit) Holds() bool { return v.Hold() != nil }

// Entered waits for the lock.
func (v *Visit) Entered() *recipes.Hold {
	v.t.Helper()
	require.NoError(v.t, <-v.done)
	return v.Hold()
}

// Leave releases the lock.
func (v *Visit) Leave() {
	v.t.Helper()
	require.NoError(v.t, v.lock.Release(v.Ctx))
	time.Sleep(Settle)
}

// Use acquires lock and releases it again.
func Use(t *testing.T, lock recipes.InterProcessLock) *recipes.Hold {
	t.Helper()
	v := VisitLock(t, lock)
	hold := v.Entered()
	v.Leave()
	return hold
}

// Znodes returns those in the queue.
func Znodes(b *Bubble) (nodes []string) {
	for _, node := range b.Cluster.Znodes() {
		if strings.Contains(node, "_c_") {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// ReadWriteLock returns the read/write lock at /lock.
func ReadWriteLock(
	t *testing.T, client recipes.Conn, opts ...recipes.Option,
) *recipes.InterProcessReadWriteLock {
	t.Helper()
	return NewReadWriteLock(t, client, "/lock", opts...)
}

// Nothing is for [recipes.Do].
func Nothing(context.Context, *recipes.Hold) error { return nil }

// UseTimes acquires and releases a lock so many times.
func UseTimes(t *testing.T, lock recipes.InterProcessLock, times int) {
	t.Helper()
	for range times {
		require.NoError(t, Do(Owner(t), lock, func() error { return nil }))
	}
}
