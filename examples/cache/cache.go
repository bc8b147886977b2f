package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
)

const (
	lockPath  = "/cache-lock"
	pricePath = "/cache-price"
)

// A cache keeps the price in memory, and is never out of date.
//
// Each use takes the read lock, WithCaching: the process keeps its place in the lock's
// queue, a znode, between two uses, and gives it up when a writer queues behind it. The
// writer waits for all readers ahead. So while a process still has the znode under which
// it has read the price, nobody has changed it.
//
// It is safe for concurrent use.
type cache struct {
	client      *recipes.Client
	read, write recipes.InterProcessLock
	last        atomic.Pointer[entry]
}

// An entry is a price, and the znode in the lock's queue under which it was read.
type entry struct{ node, price string }

// newCache makes the price where there is none.
func newCache(client *recipes.Client) (*cache, error) {
	lock, err := recipes.NewInterProcessReadWriteLock(
		client, lockPath, recipes.WithCaching(10*time.Second, 16),
	)
	if err != nil {
		return nil, err
	}
	_, err = client.Create(pricePath, []byte("0"), 0, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, fmt.Errorf("create %s: %w", pricePath, err)
	}
	return &cache{client: client, read: lock.ReadLock(), write: lock.WriteLock()}, nil
}

// use calls f with the price, which nobody changes before f returns or its ctx is done.
func (c *cache) use(
	ctx context.Context, f func(ctx context.Context, price string) error,
) error {
	return recipes.Do(ctx, c.read, func(ctx context.Context, hold *recipes.Hold) error {
		last := c.last.Load()
		if last == nil || last.node != hold.Path() {
			data, _, err := c.client.Get(pricePath)
			if err != nil {
				return fmt.Errorf("get %s: %w", pricePath, err)
			}
			last = &entry{hold.Path(), string(data)}
			c.last.Store(last)
		}
		return f(ctx, last.price)
	})
}

// change sets the price. When it returns nobody uses the old one any more.
func (c *cache) change(ctx context.Context, price string) error {
	return recipes.Do(ctx, c.write, func(_ context.Context, hold *recipes.Hold) error {
		_, err := hold.Multi(
			&zk.SetDataRequest{Path: pricePath, Data: []byte(price), Version: -1},
		)
		return err
	})
}
