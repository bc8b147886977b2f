package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// Acquire is recipes.Acquire for what must succeed.
func Acquire(
	ctx context.Context, t *testing.T, lock recipes.InterProcessLock,
) *recipes.Hold {
	t.Helper()
	hold, err := recipes.Acquire(ctx, lock)
	require.NoError(t, err)
	return hold
}

// RequireBusy requires that nobody gets lock just now.
func RequireBusy(ctx context.Context, t *testing.T, lock recipes.InterProcessLock) {
	t.Helper()
	hold, err := recipes.Acquire(ctx, lock, recipes.WaitAtMost(100*time.Millisecond))
	require.Nil(t, hold)
	require.ErrorIs(t, err, recipes.ErrBusy)
}

// ReleaseElsewhere releases hold on another goroutine, with a ctx of another owner.
func ReleaseElsewhere(t *testing.T, hold *recipes.Hold) error {
	t.Helper()
	ctx := Owner(t)
	return <-Start(func() error { return hold.Release(ctx) })
}

// Losses counts how often err tells each loss.
func Losses(err error) (n int) {
	switch e := err.(type) { //nolint:errorlint // it takes the tree apart
	case nil:
		return 0
	case interface{ Unwrap() error }:
		return Losses(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			n += Losses(inner)
		}
		return n
	}
	if err == recipes.ErrLockLost { //nolint:errorlint // this very one
		return 1
	}
	return 0
}

// Lost returns a channel that is closed when the lock that is held is lost.
func Lost(ctx context.Context, lock recipes.InterProcessLock) <-chan struct{} {
	return lock.Hold(ctx).Lost()
}

// HoldsOf returns what ctx's owner holds of a lock of any kind.
func HoldsOf(ctx context.Context, lock recipes.InterProcessLock) (holds []*recipes.Hold) {
	if m, ok := lock.(*recipes.InterProcessMultiLock); ok {
		return m.Holds(ctx)
	}
	return []*recipes.Hold{lock.Hold(ctx)}
}

// Gets tells whether ctx's owner gets lock at once; it keeps it.
func Gets(ctx context.Context, t *testing.T, lock recipes.InterProcessLock) bool {
	t.Helper()
	ok, err := lock.AcquireTimeout(ctx, 0)
	require.NoError(t, err)
	return ok
}
