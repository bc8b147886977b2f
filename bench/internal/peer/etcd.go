package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// openEtcd is etcd's concurrency.Mutex. Its key is the lease of the session, so that two
// users of one session would not exclude each other: each user has a lease of its own,
// and all those of a Client share the connection.
func openEtcd(ctx context.Context, l load.Load, wire *Wire) (Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: l.Servers, DialTimeout: SessionTimeout, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(
				_ context.Context, address string,
			) (net.Conn, error) {
				return wire.DialBytes("tcp", address, SessionTimeout)
			}),
			grpc.WithUnaryInterceptor(countCalls(wire)),
		},
	})
	if err != nil {
		return nil, err
	}
	if _, err := c.Get(ctx, "/"); err != nil { // New does not wait for a connection
		return nil, errors.Join(err, c.Close())
	}
	return &etcd{client: c}, nil
}

// countCalls counts each call as one request. Keep-alives and watches go over streams,
// and are in the bytes only.
func countCalls(wire *Wire) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		call grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		wire.Request()
		return call(ctx, method, req, reply, cc, opts...)
	}
}

type etcd struct {
	client   *clientv3.Client
	sessions []*concurrency.Session
}

func (e *etcd) User(ctx context.Context) context.Context { return ctx }

func (e *etcd) Lock(path string, kind load.Kind) (Lock, error) {
	if kind != load.Mutex {
		return nil, ErrUnsupported
	}
	s, err := concurrency.NewSession(
		e.client, concurrency.WithTTL(int(SessionTimeout.Seconds())),
	)
	if err != nil {
		return nil, fmt.Errorf("begin a session of etcd: %w", err)
	}
	e.sessions = append(e.sessions, s)
	return etcdLock{concurrency.NewMutex(s, path)}, nil
}

// Close leaves the leases to their end: the servers are gone before.
func (e *etcd) Close() error {
	for _, s := range e.sessions {
		s.Orphan()
	}
	return e.client.Close()
}

// Users counts the keys below path.
func (e *etcd) Users(ctx context.Context, path string) (int, error) {
	r, err := e.client.Get(
		ctx, path+"/", clientv3.WithPrefix(), clientv3.WithCountOnly(),
	)
	if err != nil {
		return 0, fmt.Errorf("count the keys below %s: %w", path, err)
	}
	return int(r.Count), nil
}

type etcdLock struct{ mutex *concurrency.Mutex }

func (l etcdLock) Acquire(ctx context.Context) error { return l.mutex.Lock(ctx) }
func (l etcdLock) Release(ctx context.Context) error { return l.mutex.Unlock(ctx) }

func (l etcdLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return within(ctx, timeout, l.mutex.Lock)
}

// within gives a lock that takes a ctx a timeout.
func within(
	ctx context.Context, timeout time.Duration, lock func(context.Context) error,
) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := lock(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}
