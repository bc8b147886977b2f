package simulator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes"
)

// A Recipe is a kind of lock.
type Recipe string

// The recipes.
const (
	Mutex          Recipe = "mutex"
	SemaphoreMutex Recipe = "semaphore mutex"
	ReadWriteLock  Recipe = "read/write lock"
	MultiLock      Recipe = "multi lock" // of mutexes
	Semaphore      Recipe = "semaphore"
	LeaderSelector Recipe = "leader selector"
	LeaderLatch    Recipe = "leader latch"
	PersistentNode Recipe = "persistent node" // its path is the name that one has
)

// A Lock is one that the workers contend for.
type Lock struct {
	Recipe Recipe
	Paths  []string // one, of a multi lock several
	Leases int      // of a semaphore: the maximum
}

func (l Lock) String() string { return fmt.Sprintf("%s %v", l.Recipe, l.Paths) }

// DefaultLocks returns one lock of each kind below root, "" or a path. The multi lock's
// members are locks of their own as well.
func DefaultLocks(root string) []Lock {
	return []Lock{
		{Recipe: Mutex, Paths: []string{root + "/mutex-1"}},
		{Recipe: Mutex, Paths: []string{root + "/mutex-2"}},
		{Recipe: MultiLock, Paths: []string{root + "/mutex-1", root + "/mutex-2"}},
		{Recipe: SemaphoreMutex, Paths: []string{root + "/semaphore-mutex"}},
		{Recipe: ReadWriteLock, Paths: []string{root + "/read-write"}},
		{Recipe: Semaphore, Paths: []string{root + "/semaphore"}, Leases: 3},
		{Recipe: LeaderSelector, Paths: []string{root + "/selector"}},
		{Recipe: LeaderLatch, Paths: []string{root + "/latch"}},
	}
}

// IsElection tells whether the lock is had by who is elected. A candidate is of use once.
func (l Lock) IsElection() bool {
	return l.Recipe == LeaderSelector || l.isOnce()
}

// isOnce tells whether the lock is one by its own methods only, and of use once.
func (l Lock) isOnce() bool {
	return l.Recipe == LeaderLatch || l.Recipe == PersistentNode
}

// Below a semaphore's path.
const (
	locksDir  = "/locks"
	leasesDir = "/leases"
)

// keepsPlaces tells whether the lock takes [recipes.WithCaching].
func (l Lock) keepsPlaces() bool {
	return l.Recipe != SemaphoreMutex && l.Recipe != Semaphore && !l.IsElection()
}

// directories are where the lock's znodes are.
func (l Lock) directories() []string {
	switch l.Recipe {
	case SemaphoreMutex, Semaphore:
		return []string{l.Paths[0] + locksDir, l.Paths[0] + leasesDir}
	}
	return l.Paths
}

// A side is which of a read/write lock's two locks is meant; of other locks there is one.
type side int

const (
	write side = iota
	read
)

// A value is a lock as the library makes it, for one client.
type value struct {
	lock Lock
	// The write lock of a read/write lock; nil for a semaphore and a selector.
	plain     recipes.InterProcessLock
	read      *recipes.ReadLock // of a read/write lock only
	semaphore *recipes.InterProcessSemaphoreV2
	asLocks   []recipes.InterProcessLock // of a semaphore: of one lease, of two, …
	selector  *recipes.LeaderSelector
	cached    bool          // it keeps its place in the queue
	margin    time.Duration // for which nobody else holds it after a loss
	revoked   chan struct{} // has room for one request to give the lock back
}

func newValue(
	conn recipes.Conn, lock Lock, opts ...recipes.Option,
) (v *value, err error) {
	v = &value{lock: lock, revoked: make(chan struct{}, 1)}
	switch path := lock.Paths[0]; lock.Recipe {
	case Mutex:
		v.plain, err = recipes.NewInterProcessMutex(conn, path, opts...)
	case SemaphoreMutex:
		v.plain, err = recipes.NewInterProcessSemaphoreMutex(conn, path, opts...)
	case MultiLock:
		v.plain, err = recipes.NewInterProcessMultiLock(conn, lock.Paths, opts...)
	case Semaphore:
		v.semaphore, err = recipes.NewInterProcessSemaphoreV2(
			conn, path, lock.Leases, opts...,
		)
		for n := 1; err == nil && n <= lock.Leases; n++ {
			v.asLocks = append(v.asLocks, v.semaphore.AsLock(n))
		}
	case ReadWriteLock:
		var rw *recipes.InterProcessReadWriteLock
		rw, err = recipes.NewInterProcessReadWriteLock(conn, path, opts...)
		if err == nil {
			v.plain, v.read = rw.WriteLock(), rw.ReadLock()
		}
	case LeaderSelector:
		v.selector, err = recipes.NewLeaderSelector(conn, path, opts...)
	case LeaderLatch:
		var latch *recipes.LeaderLatch
		latch, err = recipes.NewLeaderLatch(conn, path, opts...)
		v.plain = &latchLock{LeaderLatch: latch}
	case PersistentNode:
		v.plain, err = newNameLock(conn, path, opts)
	default:
		err = fmt.Errorf("simulator: %q is no recipe", lock.Recipe)
	}
	return v, err
}

// of returns the lock that is meant by a side.
func (v *value) of(s side) recipes.InterProcessLock {
	if s == read {
		return v.read
	}
	return v.plain
}

// makeRevocable lets holders hear of requests to give the lock back.
func (v *value) makeRevocable() {
	listener := func() {
		select {
		case v.revoked <- struct{}{}:
		default:
		}
	}
	if lock, ok := v.plain.(interface{ MakeRevocable(listener func()) }); ok {
		lock.MakeRevocable(listener)
	}
	if v.read != nil {
		v.read.MakeRevocable(listener)
	}
}

// participants returns the lock's queue.
func (v *value) participants(ctx context.Context) ([]string, error) {
	switch lock := v.plain.(type) {
	case nil:
		if v.selector != nil {
			all, err := v.selector.Participants(ctx)
			return nodesOf(all), err
		}
		return v.semaphore.ParticipantNodes(ctx)
	case *latchLock:
		all, err := lock.Participants(ctx)
		return nodesOf(all), err
	case interface {
		ParticipantNodes(ctx context.Context) ([]string, error)
	}:
		return lock.ParticipantNodes(ctx)
	}
	return nil, nil
}

// A grant is what an acquisition of one path has got.
type grant struct {
	node  string
	token int64
	of    Holding       // what can be lost
	hold  *recipes.Hold // nil for a lease
}

// lostAlready is the grant of a hold that was lost before it could be looked at.
func lostAlready() grant {
	return grant{of: new(recipes.Hold)}
}

// grantsOf returns what ctx's owner has got of a lock that it has acquired, for each of
// its parts. Leases that are a lock together have one hold.
func grantsOf(
	ctx context.Context, lock recipes.InterProcessLock, parts int,
) []grant {
	var holds []*recipes.Hold
	switch lock := lock.(type) {
	case *recipes.InterProcessMultiLock:
		holds = lock.Holds(ctx)
	case interface {
		Hold(ctx context.Context) *recipes.Hold
	}:
		holds = []*recipes.Hold{lock.Hold(ctx)}
	}
	grants := make([]grant, parts)
	for i := range grants {
		grants[i] = lostAlready()
		if len(holds) == 0 {
			continue
		}
		if h := holds[min(i, len(holds)-1)]; h != nil {
			grants[i] = grant{
				node: h.Path(), token: h.FencingToken(), of: h, hold: h,
			}
		}
	}
	return grants
}

// leaseGrants returns what the holder of leases has got.
func (v *value) leaseGrants(leases []*recipes.Lease) []grant {
	var grants []grant
	for _, l := range leases {
		node := v.lock.Paths[0] + leasesDir + "/" + l.NodeName()
		grants = append(grants, grant{
			node: node, token: l.FencingToken(), of: l,
		})
	}
	return grants
}

// acquireHold acquires a lock with recipes.Acquire; a timeout below 0 is none.
func acquireHold(
	ctx context.Context, lock recipes.InterProcessLock, timeout time.Duration,
) (*recipes.Hold, error) {
	if timeout < 0 {
		return recipes.Acquire(ctx, lock)
	}
	hold, err := recipes.Acquire(ctx, lock, recipes.WaitAtMost(timeout))
	if errors.Is(err, recipes.ErrBusy) && ctx.Err() == nil {
		err = nil
	}
	return hold, err
}

// acquireWithin acquires a lock that is no semaphore; a timeout below 0 is none.
func acquireWithin(
	ctx context.Context, lock recipes.InterProcessLock, timeout time.Duration,
) (bool, error) {
	if timeout < 0 {
		err := lock.Acquire(ctx)
		return err == nil, err
	}
	return lock.AcquireTimeout(ctx, timeout)
}
