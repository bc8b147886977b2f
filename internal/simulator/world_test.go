package simulator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/zktest"
)

// finish lets a small world without faults work for a while, and returns what Finish
// says.
func finish(
	t *testing.T, c simulator.Config, before func(simulator.Client),
) (*simulator.World, error) {
	t.Helper()
	cluster := zktest.Start(t, zktest.WithShuffle())
	c.Seed, c.Session = max(c.Seed, 1), simSession
	if c.Locks == nil {
		c.Locks = []simulator.Lock{{Recipe: simulator.Mutex, Paths: []string{"/mutex"}}}
	}
	c.Dial = func(ctx context.Context, _ int) (simulator.Client, error) {
		return recipes.Connect(ctx, strings.Join(cluster.Names(), ","), simSession,
			recipes.WithDialer(cluster.Dial),
			recipes.WithHostProvider(cluster.HostProvider()))
	}
	w, err := simulator.New(c)
	require.NoError(t, err)
	if before != nil {
		client, err := c.Dial(t.Context(), 0)
		require.NoError(t, err)
		before(client)
		client.Close()
	}
	w.Start()
	time.Sleep(5 * simSession)
	ctx, cancel := context.WithTimeout(t.Context(), simEnd)
	defer cancel()
	return w, w.Finish(ctx)
}

func TestAWorldWithoutFaultsIsFlawless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := finish(t, simulator.Config{}, nil)
		require.NoError(t, err)
		require.NoError(t, w.History().Check(w.Limits()))
	})
}

// A slowRegister takes longer for a write than a hold may last.
type slowRegister struct{ simulator.Register }

func (r slowRegister) Write(path string, token int64) (version int64, accepted bool) {
	time.Sleep(simSession)
	return r.Register.Write(path, token)
}

// A term that ends by itself takes the error with it by which lead wants to end Run.
func TestAWorldWhoseTermsAreTooShortComesToItsEnd(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w, err := finish(t, simulator.Config{
				Seed: seed, Bounded: true, LongHolds: true, Workers: 1, Owners: 1,
				Locks: []simulator.Lock{
					{Recipe: simulator.LeaderSelector, Paths: []string{"/selector"}},
				},
				Register: slowRegister{simulator.NewRegister()},
			}, nil)
			require.NoError(t, err)
			require.NoError(t, w.History().Check(w.Limits()))
		})
	}
}

func TestFinishTellsWhoDoesNotGetTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := finish(t, simulator.Config{}, func(client simulator.Client) {
			_, err := client.Create(
				"/mutex", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll),
			)
			require.NoError(t, err)
			_, err = client.Create(
				"/mutex/lock-0000000000", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll),
			)
			require.NoError(t, err)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "do not come to an end")
		require.Regexp(
			t, `called +worker \d, owner \d, step \d+\.0 /mutex mode=exclusive`,
			err.Error(),
		)
	})
}

func TestFinishTellsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := finish(
			t, simulator.Config{Left: func() []string { return []string{"7 watches"} }},
			nil,
		)
		require.ErrorContains(t, err, "left after all was released: [7 watches]")
	})
}

func TestFinishTellsOfZnodesThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := finish(t, simulator.Config{}, func(client simulator.Client) {
			_, err := client.Create(
				"/mutex", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll),
			)
			require.NoError(t, err)
			_, err = client.Create(
				"/mutex/stray", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll),
			)
			require.NoError(t, err)
		})
		require.ErrorContains(t, err, "left after all was released: [/mutex/stray]")
	})
}

// Held locks are held for long, by owners of their own, and all writes are guarded if the
// world says so.
func TestAWorldThatHoldsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := finish(t, simulator.Config{
			Held: []simulator.Lock{
				{Recipe: simulator.Mutex, Paths: []string{"/held"}},
			},
			HoldFor: 2 * simSession, Guarded: true, ACL: zk.WorldACL(zk.PermAll),
		}, nil)
		require.NoError(t, err)
		require.NoError(t, w.History().Check(w.Limits()))
		granted := map[simulator.ID]time.Duration{}
		long := 0
		for _, e := range w.History() {
			switch {
			case e.Kind == simulator.Writing:
				require.True(t, e.Guarded, "%v", e)
			case e.Path != "/held":
			case e.Kind == simulator.Granted:
				require.GreaterOrEqual(t, e.Owner, 2, "it is no common lock: %v", e)
				granted[e.ID] = e.At
			case e.Kind == simulator.Releasing && e.At-granted[e.ID] >= 2*simSession:
				long++
			}
		}
		require.Positive(t, long)
	})
}
