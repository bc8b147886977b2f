package lock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// grants is the order in which owners got a lock, as they saw it while they held it.
type grants struct {
	mu  sync.Mutex
	got []*recipes.Hold
}

func (g *grants) add(h *recipes.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got = append(g.got, h)
}

func sequence(node string) string { return node[len(node)-10:] }

func TestExclusionAndOrder(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		const sessions, owners, increments = 8, 2, 200
		path := zkserver.Path(t)
		first := locktest.SharedPeer(t)
		count := locktest.NewCounter(t, first)
		var all grants
		var workers []<-chan error
		for range sessions {
			p := locktest.SharedPeer(t)
			lock := p.Mutex(path)
			for range owners {
				ctx := locktest.Owner(t)
				workers = append(workers, locktest.Start(func() error {
					for range increments {
						if err := recipes.Do(ctx, lock, func(
							ctx context.Context, _ *recipes.Hold,
						) error {
							all.add(lock.Hold(ctx))
							return count.Increment(p.Conn)
						}); err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
		for _, w := range workers {
			select {
			case err := <-w:
				require.NoError(t, err)
			case <-t.Context().Done():
				t.Fatal("interrupted")
			}
		}
		n, err := count.Value(first.Conn)
		require.NoError(t, err)
		require.EqualValues(t, sessions*owners*increments, n)
		require.Len(t, all.got, sessions*owners*increments)
		for i, h := range all.got[1:] {
			require.Less(
				t, sequence(all.got[i].Path()), sequence(h.Path()),
				"granted out of the order of the queue",
			)
			require.Less(
				t, all.got[i].FencingToken(), h.FencingToken(), "the token did not grow",
			)
			require.NoError(t, h.Err())
		}
		require.Empty(t, first.Children(path))
	})
}
