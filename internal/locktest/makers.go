package locktest

import (
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

// SemaphoreMutex returns a semaphore mutex through p. It knows the session timeout.
func SemaphoreMutex(p *Peer, path string) *recipes.InterProcessSemaphoreMutex {
	p.TB.Helper()
	m, err := recipes.NewInterProcessSemaphoreMutex(
		p.Conn, path, recipes.WithSessionTimeout(p.Timeout),
	)
	require.NoError(p.TB, err)
	return m
}
