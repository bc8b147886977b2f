package peer

import (
	"context"
	"errors"
	"math"
	"net"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// openRedsync is redsync as it comes, with its own pauses between two tries, which go on
// for as long as it takes. Several servers are those of a Redlock.
func openRedsync(ctx context.Context, l load.Load, wire *Wire) (Client, error) {
	r := &redlock{}
	var pools []redsyncredis.Pool
	for _, address := range l.Servers {
		c := redis.NewClient(&redis.Options{
			Addr: address, PoolSize: max(10, l.Users),
			Dialer: func(_ context.Context, network, address string) (net.Conn, error) {
				return wire.DialPackets(network, address, SessionTimeout)
			},
		})
		r.clients = append(r.clients, c)
		if err := c.Ping(ctx).Err(); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		pools = append(pools, goredis.NewPool(c))
	}
	r.locks = redsync.New(pools...)
	return r, nil
}

type redlock struct {
	clients []*redis.Client
	locks   *redsync.Redsync
}

func (r *redlock) User(ctx context.Context) context.Context { return ctx }

func (r *redlock) Lock(path string, kind load.Kind) (Lock, error) {
	if kind != load.Mutex {
		return nil, ErrUnsupported
	}
	return redlockLock{r.locks.NewMutex(
		path, redsync.WithExpiry(SessionTimeout), redsync.WithTries(math.MaxInt),
	)}, nil
}

func (r *redlock) Close() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

type redlockLock struct{ mutex *redsync.Mutex }

func (l redlockLock) Acquire(ctx context.Context) error {
	return l.mutex.LockContext(ctx)
}

func (l redlockLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return within(ctx, timeout, l.mutex.LockContext)
}

func (l redlockLock) Release(ctx context.Context) error {
	_, err := l.mutex.UnlockContext(ctx)
	return err
}
