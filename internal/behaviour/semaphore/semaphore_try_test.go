package semaphore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// Several try at once, with a round trip of 20 ms, and go through the gate one after the
// other: two of six were given one of ten free leases, since the time that they had did
// not heed that the gate moved. The last one's turn comes after some 22 round trips, and
// one more for each list that overtakes its create, of which there are up to a dozen; a
// try has 750 ms for them, and no more.
func TestTriesGetTheFreeLeases(t *testing.T) {
	const tries = 6
	for name, processes := range map[string]int{"one process": 1, "one each": tries} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			var semaphores []*recipes.InterProcessSemaphoreV2
			for i := range processes {
				link := fmt.Sprint("far ", i)
				client := locktest.ConnectThrough(t, cluster, link)
				s := locktest.NewSemaphore(t, client, "/s", 10)
				cluster.Link(link).Delay(10*time.Millisecond, 10*time.Millisecond)
				semaphores = append(semaphores, s)
			}
			var wg sync.WaitGroup
			var got atomic.Int32
			for i := range tries {
				wg.Go(func() {
					s := semaphores[i%processes]
					leases, err := s.AcquireTimeout(t.Context(), 1, 0)
					if err != nil {
						t.Error(err)
					}
					got.Add(int32(len(leases)))
				})
			}
			wg.Wait()
			require.EqualValues(t, tries, got.Load())
		})
	}
}

// Where the gate stands still, since who is there waits for leases, a try does not take
// its second.
func TestATryDoesNotWaitAtAGateThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		s := locktest.NewSemaphore(t, client, "/s", 2)
		first, err := s.Acquire(t.Context())
		require.NoError(t, err)
		greedy := locktest.Start(func() error {
			leases, err := s.AcquireN(t.Context(), 2)
			if err != nil {
				return err
			}
			return s.ReturnAll(t.Context(), leases)
		})
		time.Sleep(time.Second)
		began := time.Now()
		leases, err := s.AcquireTimeout(t.Context(), 1, 0)
		require.NoError(t, err)
		require.Empty(t, leases, "who was there first gets it")
		require.LessOrEqual(t, time.Since(began), 200*time.Millisecond)
		require.NoError(t, first.Release(t.Context()))
		require.NoError(t, <-greedy)
	})
}

// Somebody deletes the znode with which a try stands at the gate. It joins again, and has
// its time there again: what timed the lost znode used to end the new wait.
func TestATryWhoseGateZnodeIsLostHasItsTimeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		other := locktest.ConnectThrough(t, cluster, "other's")
		var steps locktest.Recorder
		s := locktest.NewSemaphore(
			t, client, "/s", 2, recipes.WithObserver(steps.Observe))
		first, err := s.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, first.Release(t.Context()))
		const kind = zk.FlagEphemeral | zk.FlagSequence
		ahead, err := other.Create("/s/locks/lock-", nil, kind, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)

		steps.Forget()
		var got []*recipes.Lease
		try := locktest.Start(func() (err error) {
			got, err = s.AcquireTimeout(t.Context(), 1, 0)
			return err
		})
		time.Sleep(60 * time.Millisecond)
		queued := steps.All()
		require.Len(t, queued, 1)
		require.NoError(t, other.Delete(queued[0].Node, -1))
		time.Sleep(60 * time.Millisecond)
		require.NoError(t, other.Delete(ahead, -1))
		require.NoError(t, <-try)
		require.Len(t, got, 1, "the gate was free in time")
		require.Equal(t, []recipes.EventKind{
			recipes.EventQueued, recipes.EventQueued, recipes.EventAcquired,
		}, steps.Kinds())
		require.NoError(t, s.ReturnAll(t.Context(), got))
	})
}
