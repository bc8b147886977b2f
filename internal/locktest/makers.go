package locktest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// MakeMutex makes an InterProcessMutex.
func MakeMutex(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return recipes.NewInterProcessMutex(c, path, opts...)
}

// MakeReadLock makes the ReadLock of a read/write lock.
func MakeReadLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	l, err := recipes.NewInterProcessReadWriteLock(c, path, opts...)
	return l.ReadLock(), err
}

// MakeWriteLock makes the WriteLock of a read/write lock.
func MakeWriteLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	l, err := recipes.NewInterProcessReadWriteLock(c, path, opts...)
	return l.WriteLock(), err
}

// MakeSemaphoreMutex makes an InterProcessSemaphoreMutex.
func MakeSemaphoreMutex(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return recipes.NewInterProcessSemaphoreMutex(c, path, opts...)
}

// MakeLeaseLock makes a lock of all leases of a semaphore that has n.
func MakeLeaseLock(n int) Maker {
	return func(
		c recipes.Conn, path string, opts ...recipes.Option,
	) (recipes.InterProcessLock, error) {
		s, err := recipes.NewInterProcessSemaphoreV2(c, path, n, opts...)
		if err != nil {
			return nil, err
		}
		return s.AsLock(n), nil
	}
}

// MakeSelector makes a candidate that stands as a LeaderSelector.
func MakeSelector(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	s, err := recipes.NewLeaderSelector(c, path, opts...)
	return newSelectorCandidate(s), err
}

// MakeLatch makes a candidate that stands as a LeaderLatch.
func MakeLatch(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return newLatchCandidate(func() (*recipes.LeaderLatch, error) {
		return recipes.NewLeaderLatch(c, path, opts...)
	}), nil
}

// makeMultiLock makes a multi lock of three mutexes.
func makeMultiLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	paths := []string{path + "/a", path + "/b", path + "/c"}
	return recipes.NewInterProcessMultiLock(c, paths, opts...)
}

// makeNestedLock makes a multi lock with another one in it.
func makeNestedLock(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	inner, err := recipes.NewInterProcessMultiLock(
		c, []string{path + "/a", path + "/b"}, opts...)
	if err != nil {
		return nil, err
	}
	last, err := MakeMutex(c, path+"/c", opts...)
	return recipes.NewInterProcessMultiLockOf(inner, last), err
}

// makeSecondMember makes the second member of a multi lock, whose first then is free.
func makeSecondMember(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	return MakeMutex(c, path+"/b", opts...)
}

// must returns what a constructor has made.
func must[T any](tb testing.TB, made T, err error) T {
	tb.Helper()
	require.NoError(tb, err)
	return made
}

// NewMutex is recipes.NewInterProcessMutex for what must succeed.
func NewMutex(
	tb testing.TB, conn recipes.Conn, path string, opts ...recipes.Option,
) *recipes.InterProcessMutex {
	tb.Helper()
	lock, err := recipes.NewInterProcessMutex(conn, path, opts...)
	return must(tb, lock, err)
}

// NewReadWriteLock is recipes.NewInterProcessReadWriteLock for what must succeed.
func NewReadWriteLock(
	tb testing.TB, conn recipes.Conn, path string, opts ...recipes.Option,
) *recipes.InterProcessReadWriteLock {
	tb.Helper()
	lock, err := recipes.NewInterProcessReadWriteLock(conn, path, opts...)
	return must(tb, lock, err)
}

// NewSemaphore is recipes.NewInterProcessSemaphoreV2 for what must succeed.
func NewSemaphore(
	tb testing.TB, conn recipes.Conn, path string, most int, opts ...recipes.Option,
) *recipes.InterProcessSemaphoreV2 {
	tb.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2(conn, path, most, opts...)
	return must(tb, s, err)
}

// NewSharedSemaphore is recipes.NewInterProcessSemaphoreV2Shared for what must succeed.
func NewSharedSemaphore(
	tb testing.TB, conn recipes.Conn, path, count string, opts ...recipes.Option,
) *recipes.InterProcessSemaphoreV2 {
	tb.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2Shared(conn, path, count, opts...)
	return must(tb, s, err)
}

// NewSemaphoreMutex is recipes.NewInterProcessSemaphoreMutex for what must succeed.
func NewSemaphoreMutex(
	tb testing.TB, conn recipes.Conn, path string, opts ...recipes.Option,
) *recipes.InterProcessSemaphoreMutex {
	tb.Helper()
	lock, err := recipes.NewInterProcessSemaphoreMutex(conn, path, opts...)
	return must(tb, lock, err)
}

// NewMultiLock is recipes.NewInterProcessMultiLock for what must succeed.
func NewMultiLock(
	tb testing.TB, conn recipes.Conn, paths []string, opts ...recipes.Option,
) *recipes.InterProcessMultiLock {
	tb.Helper()
	lock, err := recipes.NewInterProcessMultiLock(conn, paths, opts...)
	return must(tb, lock, err)
}

// NewLatch is recipes.NewLeaderLatch for what must succeed.
func NewLatch(
	tb testing.TB, conn recipes.Conn, path string, opts ...recipes.Option,
) *recipes.LeaderLatch {
	tb.Helper()
	latch, err := recipes.NewLeaderLatch(conn, path, opts...)
	return must(tb, latch, err)
}

// SemaphoreMutex returns a semaphore mutex through p. It knows the session timeout.
func SemaphoreMutex(p *Peer, path string) *recipes.InterProcessSemaphoreMutex {
	p.TB.Helper()
	return NewSemaphoreMutex(p.TB, p.Conn, path, recipes.WithSessionTimeout(p.Timeout))
}
