package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// Nobody uses a price that was changed before, also not a reader whose session ended in
// between; and hardly a use asks for the price.
func TestThePriceIsNeverOutOfDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		open := func(name string) *cache {
			c, err := newCache(locktest.ConnectThrough(t, cluster, name))
			require.NoError(t, err)
			return c
		}
		var changed, uses, kept, lost atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		check := func(c *cache) error {
			before := c.last.Load()
			since := changed.Load()
			return c.use(ctx, func(_ context.Context, price string) error {
				n, err := strconv.ParseInt(price, 10, 64)
				if err != nil {
					return err
				}
				if n < since {
					t.Errorf("the price is %d, and was changed to %d before", n, since)
				}
				uses.Add(1)
				if c.last.Load() == before {
					kept.Add(1)
				}
				return nil
			})
		}
		var caches []*cache
		for _, name := range []string{"one", "two", "three"} {
			c := open(name)
			caches = append(caches, c)
			readers.Go(func() {
				for ctx.Err() == nil {
					switch err := check(c); {
					case err == nil || ctx.Err() != nil:
					case errors.Is(err, recipes.ErrLockLost):
						lost.Add(1) // it was in use as its session ended
					default:
						t.Error(err)
					}
					pause(ctx, time.Millisecond)
				}
			})
		}
		writer := open("writer")
		for price := range 20 {
			if price == 10 {
				require.True(t, cluster.ExpireSession(caches[0].client.SessionID()))
			}
			require.NoError(t, writer.change(ctx, strconv.Itoa(price)))
			changed.Store(int64(price))
			time.Sleep(time.Second)
		}
		cancel()
		readers.Wait()
		require.LessOrEqual(t, lost.Load(), int64(1), "one session was ended")
		require.Greater(t, uses.Load(), int64(10_000))
		require.Greater(t, kept.Load(), uses.Load()*99/100)
	})
}

func TestTheCommandStops(t *testing.T) {
	cluster := zktest.Start(t)
	t.Setenv("ZOOKEEPER_SERVERS", cluster.ConnectString())
	ctx, cancel := context.WithCancel(t.Context())
	ended := locktest.Start(func() error { return run(ctx, 10*time.Millisecond) })
	client, err := recipes.Connect(ctx, cluster.ConnectString(), sessionTimeout)
	require.NoError(t, err)
	defer client.Close()
	locktest.Eventually(t, func() bool {
		price, _, err := client.Get(pricePath)
		return err == nil && string(price) != "0"
	}, "nobody writes")
	cancel()
	require.NoError(t, locktest.Within(t, ended, "the command does not stop"))
}
