package peer

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// openZKLock is the lock of go-zookeeper itself.
func openZKLock(ctx context.Context, l load.Load, wire *Wire) (Client, error) {
	s, err := connectZK(ctx, l, wire)
	return zkLocks{s}, err
}

type zkLocks struct{ session }

func (z zkLocks) Lock(path string, kind load.Kind) (Lock, error) {
	if kind != load.Mutex {
		return nil, ErrUnsupported
	}
	return zkLock{zk.NewLock(z.conn, path, zk.WorldACL(zk.PermAll))}, nil
}

func (z zkLocks) Users(_ context.Context, path string) (int, error) {
	return countChildren(z.conn, path)
}

type zkLock struct{ lock *zk.Lock }

func (l zkLock) Acquire(context.Context) error { return l.lock.Lock() }
func (l zkLock) Release(context.Context) error { return l.lock.Unlock() }
