package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/recipes"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// caching has so many local hand-overs while others wait.
func caching(passes int) recipes.Option {
	return recipes.WithCaching(10*time.Second, passes)
}

// openRecipes is this library. The users of a session share the values of the locks.
func openRecipes(opts ...recipes.Option) Open {
	return func(ctx context.Context, l load.Load, wire *Wire) (Client, error) {
		c, err := recipes.Connect(ctx, strings.Join(l.Servers, ","), SessionTimeout,
			recipes.WithDialer(wire.DialPackets))
		return &ours{
			Client: c, load: l, opts: opts,
			locks:  map[lockID]recipes.InterProcessLock{},
			leases: map[string]*recipes.InterProcessSemaphoreV2{},
		}, err
	}
}

// ours has the values that were made so far.
type ours struct {
	*recipes.Client
	load   load.Load
	opts   []recipes.Option
	locks  map[lockID]recipes.InterProcessLock
	leases map[string]*recipes.InterProcessSemaphoreV2
}

type lockID struct {
	path string
	kind load.Kind
}

func (o *ours) User(ctx context.Context) context.Context { return recipes.WithOwner(ctx) }

func (o *ours) Close() error {
	o.Client.Close()
	return nil
}

// Users counts znodes: where places are kept, those of sessions.
func (o *ours) Users(_ context.Context, path string) (int, error) {
	return countChildren(o.Client, path)
}

func (o *ours) Lock(path string, kind load.Kind) (Lock, error) {
	if kind == load.Semaphore {
		return o.lease(path)
	}
	id := lockID{path, kind}
	if o.locks[id] == nil {
		if err := o.makeLock(id); err != nil {
			return nil, err
		}
	}
	return ourLock{o.locks[id]}, nil
}

// ourLock is a lock whose try is in vain, too, where ZooKeeper was too slow to tell.
type ourLock struct{ recipes.InterProcessLock }

func (l ourLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	granted, err := l.InterProcessLock.AcquireTimeout(ctx, timeout)
	if errors.Is(err, recipes.ErrUnavailable) {
		return false, nil
	}
	return granted, err
}

func (o *ours) makeLock(id lockID) (err error) {
	switch id.kind {
	case load.Mutex:
		o.locks[id], err = recipes.NewInterProcessMutex(o.Client, id.path, o.opts...)
	case load.Read, load.Write:
		var both *recipes.InterProcessReadWriteLock
		both, err = recipes.NewInterProcessReadWriteLock(o.Client, id.path, o.opts...)
		if err == nil {
			o.locks[lockID{id.path, load.Read}] = both.ReadLock()
			o.locks[lockID{id.path, load.Write}] = both.WriteLock()
		}
	case load.SemaphoreMutex:
		if len(o.opts) > 0 {
			return ErrUnsupported // it keeps no place
		}
		o.locks[id], err = recipes.NewInterProcessSemaphoreMutex(o.Client, id.path)
	default:
		err = ErrUnsupported
	}
	return err
}

// lease is one user's part of a semaphore, which keeps no place either.
func (o *ours) lease(path string) (Lock, error) {
	if len(o.opts) > 0 {
		return nil, ErrUnsupported
	}
	if o.leases[path] == nil {
		s, err := recipes.NewInterProcessSemaphoreV2(o.Client, path, o.load.Leases)
		if err != nil {
			return nil, err
		}
		o.leases[path] = s
	}
	return &ourLease{semaphore: o.leases[path]}, nil
}

// ourLease makes a Lock of a lease.
type ourLease struct {
	semaphore *recipes.InterProcessSemaphoreV2
	held      *recipes.Lease
}

func (l *ourLease) Acquire(ctx context.Context) (err error) {
	l.held, err = l.semaphore.Acquire(ctx)
	return err
}

func (l *ourLease) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	leases, err := l.semaphore.AcquireTimeout(ctx, 1, timeout)
	if err != nil || leases == nil {
		return false, err
	}
	l.held = leases[0]
	return true, nil
}

func (l *ourLease) Release(ctx context.Context) error {
	if l.held == nil {
		return errors.New("release: no lease is held")
	}
	if err := l.held.Release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}
