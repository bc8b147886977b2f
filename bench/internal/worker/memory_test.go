package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
)

// memory is a peer without servers: its locks are in this process.
type memory struct {
	mu       sync.Mutex
	locks    map[string]*memoryLock
	sessions atomic.Int64 // that are open
	fault    error        // of each Acquire
}

func newMemory() *memory { return &memory{locks: map[string]*memoryLock{}} }

func (m *memory) peer() peer.Peer { return peer.Peer{Open: m.open} }

func (m *memory) open(context.Context, load.Load, *peer.Wire) (peer.Client, error) {
	m.sessions.Add(1)
	return &memoryClient{memory: m, closed: make(chan struct{})}, nil
}

type memoryClient struct {
	*memory
	closed chan struct{}
}

func (c *memoryClient) User(ctx context.Context) context.Context { return ctx }

func (c *memoryClient) Close() error {
	close(c.closed)
	c.sessions.Add(-1)
	return nil
}

func (c *memoryClient) Users(_ context.Context, path string) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[path] == nil {
		return 0, nil
	}
	return int(c.locks[path].users.Load()), nil
}

func (c *memoryClient) Lock(path string, kind load.Kind) (peer.Lock, error) {
	if kind != load.Mutex {
		return nil, peer.ErrUnsupported
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[path] == nil {
		c.locks[path] = &memoryLock{free: make(chan struct{}, 1)}
		c.locks[path].free <- struct{}{}
	}
	return memoryUser{c.locks[path], c}, nil
}

type memoryLock struct {
	free  chan struct{} // has an element while nobody holds it
	users atomic.Int64  // who hold it or wait
}

type memoryUser struct {
	*memoryLock
	client *memoryClient
}

var errClosed = errors.New("the session is closed")

func (u memoryUser) Acquire(ctx context.Context) error {
	granted, err := u.AcquireTimeout(ctx, time.Hour)
	if err == nil && !granted {
		err = errors.New("an hour is over")
	}
	return err
}

func (u memoryUser) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (granted bool, err error) {
	if u.client.fault != nil {
		return false, u.client.fault
	}
	u.users.Add(1)
	defer func() {
		if !granted {
			u.users.Add(-1)
		}
	}()
	select {
	case <-u.free:
		return true, nil
	case <-time.After(timeout):
		return false, nil
	case <-u.client.closed:
		return false, errClosed
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func (u memoryUser) Release(context.Context) error {
	u.users.Add(-1)
	u.free <- struct{}{}
	return nil
}
