package cost_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// roundTrip is short enough for no znode to be watched just since it lasts.
const roundTrip = 8 * time.Millisecond

// A far is a client that is a round trip away from the servers, and its lock.
type far struct {
	*testing.T
	tap  *wiretap.Tap
	lock recipes.InterProcessLock
}

func newFar(
	t *testing.T, cluster *zktest.Cluster, name string, newLock locktest.Maker,
) *far {
	t.Helper()
	link := cluster.Link(name)
	client, tap := locktest.ConnectTapped(t, link, cluster.Names()[0], 4*time.Second)
	link.Delay(roundTrip/2, roundTrip/2)
	lock, err := newLock(client, "/s")
	require.NoError(t, err)
	return &far{t, tap, lock}
}

// use acquires the lock and releases it.
func (f *far) use(ctx context.Context) {
	f.Helper()
	require.NoError(f, f.lock.Acquire(ctx))
	require.NoError(f, f.lock.Release(ctx))
}

// asked returns what was asked for since the last call.
func (f *far) asked() (ops []wiretap.Op) {
	for _, request := range locktest.RequestsBelow(f.tap, "/s") {
		ops = append(ops, request.Op)
	}
	f.tap.Reset()
	return ops
}

// At the gate and among the leases, whoever had the number before the next knows that
// nobody else is there: no list is needed in either.
func TestCostOfAFreeSemaphoreMutexThatWasUsedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, zktest.Start(t), "ours", locktest.MakeSemaphoreMutex)
		ctx := locktest.Owner(t)
		for range 2 { // they make the directories, and read them once
			f.use(ctx)
			time.Sleep(time.Second)
		}
		f.asked()
		for range 5 {
			began := time.Now()
			f.use(ctx)
			require.Equal(t, 3*roundTrip, time.Since(began), "two of them to acquire")
			time.Sleep(time.Second)
			require.Equal(t, []wiretap.Op{
				wiretap.Create, wiretap.Create, wiretap.Delete, wiretap.Delete,
			}, f.asked())
		}
	})
}

// Others use it in between, so the next number is not the next of ours. It takes one time
// to learn that; from then on a list is sent with each create, not behind its answer.
func TestCostOfAFreeLockThatOthersUseInBetween(t *testing.T) {
	list, used := wiretap.GetChildren2, []wiretap.Op{wiretap.Create, wiretap.GetChildren2}
	for name, c := range map[string]struct {
		newLock    locktest.Maker
		want       []wiretap.Op
		roundTrips time.Duration
	}{
		"mutex": {locktest.MakeMutex, append(used, wiretap.Delete), 2},
		"semaphore mutex": {locktest.MakeSemaphoreMutex, append(
			used, wiretap.Create, list, wiretap.Delete, wiretap.Delete), 3},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			ours := newFar(t, cluster, "ours", c.newLock)
			other := newFar(t, cluster, "other's", c.newLock)
			ctx := locktest.Owner(t)
			// The best of some: now and then a list overtakes its create, and is
			// repeated.
			best, asked := time.Hour, []wiretap.Op(nil)
			for i := range 9 {
				other.use(ctx)
				time.Sleep(time.Second)
				ours.asked()
				began := time.Now()
				ours.use(ctx)
				took := time.Since(began)
				time.Sleep(time.Second)
				if i < 3 { // the directories are made, read once, and understood
					continue
				}
				if took < best {
					best, asked = took, ours.asked()
				}
			}
			require.Equal(t, c.roundTrips*roundTrip, best)
			require.ElementsMatch(t, c.want, asked)
		})
	}
}

// Whoever waits at the gate has its lease already, and watches the one ahead: the event
// of that one's delete is all that it waits for.
func TestCostOfAHandOverOfASemaphoreMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		holder := newFar(t, cluster, "holder", locktest.MakeSemaphoreMutex)
		waiter := newFar(t, cluster, "waiter", locktest.MakeSemaphoreMutex)
		ctx, waiting := locktest.Owner(t), locktest.Owner(t)
		for range 2 { // they make the directories, and read them once
			holder.use(ctx)
			time.Sleep(time.Second)
			waiter.use(waiting)
			time.Sleep(time.Second)
		}
		fewestLists := math.MaxInt // one that overtakes its create is repeated
		for range 5 {
			require.NoError(t, holder.lock.Acquire(ctx))
			time.Sleep(time.Second)
			waiter.asked()
			acquired := locktest.Start(func() error {
				return waiter.lock.Acquire(waiting)
			})
			time.Sleep(time.Second)
			var lists int
			asked := slices.DeleteFunc(waiter.asked(), func(op wiretap.Op) bool {
				if op == wiretap.GetChildren2 {
					lists++
				}
				return op == wiretap.GetChildren2
			})
			fewestLists = min(fewestLists, lists)
			require.ElementsMatch(t, []wiretap.Op{
				wiretap.Create, wiretap.GetData, // the gate
				wiretap.Create, wiretap.GetData, wiretap.GetData,
			}, asked)
			began := time.Now()
			require.NoError(t, holder.lock.Release(ctx))
			require.NoError(t, <-acquired)
			// The delete goes to the servers, and its event comes back.
			require.Equal(t, roundTrip, time.Since(began))
			time.Sleep(time.Second)
			require.Equal(t, []wiretap.Op{wiretap.Delete}, waiter.asked(), "the gate")
			require.NoError(t, waiter.lock.Release(waiting))
		}
		require.Equal(t, 2, fewestLists, "of the gate, and of the lease")
	})
}
