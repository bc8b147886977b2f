package interop_test

import (
	"testing"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
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
			return locktest.NewLeaseLock(s, 1), err
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

func justPath(path string) []string { return []string{path} }
func twoPaths(path string) []string { return []string{path + "/a", path + "/b"} }

// eachExclusive runs a test for each of the recipes, all at the same time.
func eachExclusive(t *testing.T, f func(t *testing.T, r recipe)) {
	t.Parallel()
	for _, r := range exclusive {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			f(t, r)
		})
	}
}
