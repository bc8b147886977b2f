package peer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/service"
)

// serverOf starts what a peer needs, and leaves it out where that is not installed.
// ZooKeeper is zktest here, which is there everywhere.
func serverOf(t *testing.T, name string) []string {
	t.Helper()
	t.Setenv("ZOOKEEPER_RUN", "embedded")
	for _, p := range plan.Peers {
		if p.Name != name {
			continue
		}
		s, err := service.Start(t.Context(), p.Service, 1)
		if errors.Is(err, service.ErrMissing) {
			t.Skip(err)
		}
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s.Addrs
	}
	t.Fatal("there is no peer " + name)
	return nil
}

// What is measured must be a lock: nothing else guards the counter.
func TestUsersExcludeOneAnother(t *testing.T) {
	for _, name := range []string{
		peer.ZKLock, peer.Recipes, peer.Cached, peer.Etcd, peer.Redsync,
	} {
		t.Run(name, func(t *testing.T) {
			l := load.Load{Servers: serverOf(t, name), Users: 3, Shape: load.Cycle}
			p, known := peer.Find(name)
			require.True(t, known)
			wire := peer.NewWire(nil)
			const sessions, times = 2, 5
			counter := 0
			var all errgroup.Group
			for range sessions {
				c, err := p.Open(t.Context(), l, wire)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, c.Close()) })
				for range l.Users {
					lock, err := c.Lock("/counter", load.Mutex)
					require.NoError(t, err)
					ctx := c.User(t.Context())
					all.Go(func() error { return count(ctx, lock, times, &counter) })
				}
			}
			require.NoError(t, all.Wait())
			require.Equal(t, sessions*l.Users*times, counter)
			requests, bytes := wire.Counted()
			require.Positive(t, requests)
			require.Greater(t, bytes, requests)
		})
	}
}

// count adds one, so many times, and takes its time between the read and the write.
func count(ctx context.Context, lock peer.Lock, times int, counter *int) error {
	for range times {
		if err := lock.Acquire(ctx); err != nil {
			return err
		}
		seen := *counter
		time.Sleep(time.Millisecond)
		*counter = seen + 1
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

func TestATryGivesUp(t *testing.T) {
	for _, name := range []string{peer.Recipes, peer.Cached, peer.Etcd, peer.Redsync} {
		t.Run(name, func(t *testing.T) {
			l := load.Load{Servers: serverOf(t, name), Users: 2, Shape: load.Tries}
			p, _ := peer.Find(name)
			c, err := p.Open(t.Context(), l, peer.NewWire(nil))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			holder, err := c.Lock("/held", load.Mutex)
			require.NoError(t, err)
			ctx := c.User(t.Context())
			require.NoError(t, holder.Acquire(ctx))
			other, err := c.Lock("/held", load.Mutex)
			require.NoError(t, err)
			otherCtx := c.User(t.Context())
			try := other.(peer.Trier).AcquireTimeout
			granted, err := try(otherCtx, 50*time.Millisecond)
			for errors.Is(err, recipes.ErrUnavailable) { // a busy machine: no answer yet
				granted, err = try(otherCtx, 50*time.Millisecond)
			}
			require.NoError(t, err)
			require.False(t, granted)
			require.NoError(t, holder.Release(ctx))
			granted, err = try(otherCtx, time.Minute)
			require.NoError(t, err)
			require.True(t, granted)
			require.NoError(t, other.Release(otherCtx))
		})
	}
}

func TestTheKindsOfThisLibrary(t *testing.T) {
	l := load.Load{
		Servers: serverOf(t, peer.Recipes), Users: 1, Leases: 5, Shape: load.Cycle,
	}
	for name, kinds := range map[string]map[load.Kind]bool{
		peer.Recipes: {
			load.Mutex: true, load.Read: true, load.Write: true, load.Semaphore: true,
			load.SemaphoreMutex: true,
		},
		peer.Cached: {
			load.Mutex: true, load.Read: true, load.Write: true, load.Semaphore: false,
			load.SemaphoreMutex: false,
		},
	} {
		p, _ := peer.Find(name)
		c, err := p.Open(t.Context(), l, peer.NewWire(nil))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		for kind, can := range kinds {
			lock, err := c.Lock("/"+name+string(kind), kind)
			if !can {
				require.ErrorIs(t, err, peer.ErrUnsupported)
				continue
			}
			require.NoError(t, err)
			ctx := c.User(t.Context())
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
		}
	}
}
