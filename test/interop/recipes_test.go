package interop_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/recipes"
)

// A recipe is a lock as it is made in Go and in Java.
type recipe struct {
	name  string
	queue string // where below its path the contenders queue
	ahead int    // how many znodes a holder has there
	// where below its path a holder's last znode is, also that of one who is about to
	// hold the lock
	holds string
	lock  func(conn recipes.Conn, path string) (recipes.InterProcessLock, error)
	kind  string // in Java
	side  string // of a lock that Java makes two of
	args  func(path string) []string
}

var (
	mutex = recipe{
		name: "mutex", kind: "mutex", args: justPath, ahead: 1,
		lock: func(c recipes.Conn, p string) (recipes.InterProcessLock, error) {
			return recipes.NewInterProcessMutex(c, p)
		},
	}
	readLock = recipe{
		name: "read lock", kind: "readwrite", side: ".read", args: justPath, ahead: 1,
		lock: func(c recipes.Conn, p string) (recipes.InterProcessLock, error) {
			l, err := recipes.NewInterProcessReadWriteLock(c, p)
			if err != nil {
				return nil, err
			}
			return l.ReadLock(), nil
		},
	}
	writeLock = recipe{
		name: "write lock", kind: "readwrite", side: ".write", args: justPath, ahead: 1,
		lock: func(c recipes.Conn, p string) (recipes.InterProcessLock, error) {
			l, err := recipes.NewInterProcessReadWriteLock(c, p)
			if err != nil {
				return nil, err
			}
			return l.WriteLock(), nil
		},
	}
	semaphoreMutex = recipe{
		name: "semaphore mutex", kind: "semaphoremutex", args: justPath, queue: "/locks",
		holds: "/leases",
		lock: func(c recipes.Conn, p string) (recipes.InterProcessLock, error) {
			return recipes.NewInterProcessSemaphoreMutex(c, p)
		},
	}
	semaphoreOfOne = recipe{
		name: "semaphore", kind: "leaselock", args: justPath, queue: "/locks",
		holds: "/leases",
		lock: func(c recipes.Conn, p string) (recipes.InterProcessLock, error) {
			s, err := recipes.NewInterProcessSemaphoreV2(c, p, 1)
			if err != nil {
				return nil, err
			}
			return s.AsLock(1), nil
		},
	}
	multiLock = recipe{
		name: "multi lock", kind: "multilock", args: twoPaths, queue: "/a", ahead: 1,
		holds: "/b",
		lock: func(c recipes.Conn, p string) (recipes.InterProcessLock, error) {
			return recipes.NewInterProcessMultiLock(c, twoPaths(p))
		},
	}
)

// exclusive are the locks of which what holds for a mutex is to hold.
var exclusive = []recipe{mutex, writeLock, semaphoreMutex, semaphoreOfOne, multiLock}

// cached are those that keep their places on the Go side, where owners of one process
// have one znode, and it stays: for tests that do not look at znodes.
var cached = []recipe{cachedMutex, cachedWriteLock, cachedMultiLock}

// caching keeps places for so long that Java gets nothing that it does not ask for.
var caching = recipes.WithCaching(time.Hour, 3)

var (
	cachedMutex = mutex.keeping(func(
		c recipes.Conn, p string,
	) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMutex(c, p, caching)
	})
	cachedWriteLock = writeLock.keeping(func(
		c recipes.Conn, p string,
	) (recipes.InterProcessLock, error) {
		l, err := recipes.NewInterProcessReadWriteLock(c, p, caching)
		if err != nil {
			return nil, err
		}
		return l.WriteLock(), nil
	})
	cachedMultiLock = multiLock.keeping(func(
		c recipes.Conn, p string,
	) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMultiLock(c, twoPaths(p), caching)
	})
)

// keeping is r with another lock on the Go side.
func (r recipe) keeping(
	lock func(conn recipes.Conn, path string) (recipes.InterProcessLock, error),
) recipe {
	r.name, r.lock = "cached "+r.name, lock
	return r
}

func justPath(path string) []string { return []string{path} }
func twoPaths(path string) []string { return []string{path + "/a", path + "/b"} }

// eachExclusive runs a test for each of the recipes, all at the same time.
func eachExclusive(t *testing.T, f func(t *testing.T, r recipe)) {
	t.Parallel()
	each(t, exclusive, f)
}

func each(t *testing.T, recipes []recipe, f func(t *testing.T, r recipe)) {
	t.Helper()
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			f(t, r)
		})
	}
}
