package semaphore_test

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func semaphore(p *locktest.Peer, path string, most int) *recipes.InterProcessSemaphoreV2 {
	p.TB.Helper()
	return locktest.NewSemaphore(
		p.TB, p.Conn, path, most, recipes.WithSessionTimeout(p.Timeout))
}

// getLeases starts an AcquireN whose leases come on the channel.
func getLeases(
	ctx context.Context, t *testing.T, s *recipes.InterProcessSemaphoreV2, n int,
) <-chan []*recipes.Lease {
	t.Helper()
	got := make(chan []*recipes.Lease, 1)
	go func() {
		leases, err := s.AcquireN(ctx, n)
		if err != nil && ctx.Err() == nil {
			t.Errorf("AcquireN(%d): %v", n, err)
		}
		got <- leases
	}()
	return got
}

func TestSemaphoreKeepsItsMaximum(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		const most, rounds = 3, 12
		dir := zkserver.Path(t)
		var out, peak atomic.Int64
		var workers []<-chan error
		for i := range 4 {
			p := locktest.SharedPeer(t)
			s := semaphore(p, dir, most)
			for j := range 2 {
				n := (i+j)%most + 1
				workers = append(workers, locktest.Start(func() error {
					for range rounds {
						leases, err := s.AcquireN(t.Context(), n)
						if err != nil {
							return err
						}
						now := out.Add(int64(n))
						for high := peak.Load(); now > high; high = peak.Load() {
							peak.CompareAndSwap(high, now)
						}
						for range 20 { // work, during which others would come in
							_, _, err = p.Conn.Children(dir + "/leases")
						}
						out.Add(-int64(n))
						if err != nil {
							return err
						}
						if err := s.ReturnAll(t.Context(), leases); err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
		for _, w := range workers {
			require.NoError(t, locktest.Within(t, w, "a worker"))
		}
		require.LessOrEqual(t, peak.Load(), int64(most))
		locktest.SharedPeer(t).AwaitChildren(dir+"/leases", 0)
	})
}

// The maximum is not only kept but reached.
func TestSemaphoreGivesAsManyAsThereAre(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p := zkserver.Path(t), locktest.SharedPeer(t)
		one, two := semaphore(p, dir, 3), semaphore(locktest.SharedPeer(t), dir, 3)
		first, err := one.AcquireTimeout(t.Context(), 2, 0)
		require.NoError(t, err)
		require.Len(t, first, 2)
		none, err := two.AcquireTimeout(t.Context(), 2, 0)
		require.NoError(t, err)
		require.Nil(t, none, "all or none")
		third, err := two.Acquire(t.Context())
		require.NoError(t, err)
		none, err = one.AcquireTimeout(t.Context(), 1, 200*time.Millisecond)
		require.NoError(t, err)
		require.Nil(t, none)
		require.NoError(t, first[1].Release(t.Context()))
		fourth, err := two.AcquireTimeout(t.Context(), 1, 0)
		require.NoError(t, err)
		require.Len(t, fourth, 1)
		require.Greater(t, fourth[0].FencingToken(), third.FencingToken(), "tokens grow")
		require.Greater(t, third.FencingToken(), first[0].FencingToken())
		require.NoError(
			t,
			one.ReturnAll(t.Context(),
				slices.Concat(first, fourth, []*recipes.Lease{third})),
		)
		p.AwaitChildren(dir+"/leases", 0)
		p.AwaitChildren(dir+"/locks", 0)
	})
}

// Two callers that want all leases: in Curator each gets a part and waits for the rest,
// for ever.
func TestHazardA1_8_TwoWantAllLeases(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir := zkserver.Path(t)
		var workers []<-chan error
		for range 2 {
			s := semaphore(locktest.SharedPeer(t), dir, 2)
			workers = append(workers, locktest.Start(func() error {
				for range 15 {
					leases, err := s.AcquireN(t.Context(), 2)
					if err != nil {
						return err
					}
					if err := s.ReturnAll(t.Context(), leases); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for _, w := range workers {
			require.NoError(t, locktest.Within(t, w, "two callers starve each other"))
		}
	})
}

func TestSemaphoreRefuses(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p := zkserver.Path(t), locktest.SharedPeer(t)
		for _, most := range []int{0, -1} {
			_, err := recipes.NewInterProcessSemaphoreV2(p.Conn, dir, most)
			require.ErrorContains(t, err, "NewInterProcessSemaphoreV2 "+dir+": maxLeases")
		}
		_, err := recipes.NewInterProcessSemaphoreV2Shared(p.Conn, dir, "bad")
		require.ErrorIs(t, err, zk.ErrInvalidPath)
		require.ErrorContains(t, err, "countPath")
		s := semaphore(p, dir, 2)
		p.Tap.Reset()
		for _, n := range []int{0, -1, 3} {
			_, err := s.AcquireN(t.Context(), n)
			require.ErrorContains(t, err, "acquire "+dir+": n: ")
			leases, err := s.AcquireTimeout(t.Context(), n, time.Hour)
			require.ErrorContains(t, err, "acquire "+dir+": n: ")
			require.Nil(t, leases)
		}
		require.Zero(t, p.Tap.Count(wiretap.Create))
		tooMany := []int{0, -1}
		if past := int64(math.MaxInt32) + 1; past <= math.MaxInt {
			tooMany = append(tooMany, int(past))
		}
		for _, most := range tooMany {
			require.ErrorContains(
				t, recipes.SetSharedCount(t.Context(), p.Conn, dir, most),
				"set shared count "+dir+": max",
			)
		}
		require.ErrorIs(
			t, recipes.SetSharedCount(t.Context(), p.Conn, "bad", 1), zk.ErrInvalidPath,
		)
		require.ErrorContains(t, recipes.SetSharedCount(t.Context(), nil, dir, 1), "nil")
		require.Zero(t, p.Tap.Count(wiretap.Create)+p.Tap.Count(wiretap.SetData))
	})
}

func TestSemaphoreParticipantsAndStrangers(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		s := semaphore(p, dir, 2)
		nodes, err := s.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Empty(t, nodes, "of a semaphore that was never used")
		for _, at := range []string{
			"", "/leases", "/locks", "/leases/000-config", "/leases/_c_x-lock-0000000000",
			"/leases/lease-", "/locks/000-config", "/locks/a-lease-0000000000",
		} {
			_, err := other.Conn.Create(dir+at, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		var want []string
		for _, by := range []*recipes.InterProcessSemaphoreV2{
			s, semaphore(other, dir, 2),
		} {
			lease, err := by.AcquireTimeout(t.Context(), 1, 0)
			require.NoError(t, err)
			require.Len(t, lease, 1, "strangers count")
			want = append(want, dir+"/leases/"+lease[0].NodeName())
			t.Cleanup(func() {
				require.NoError(t, lease[0].Release(context.Background()))
			})
		}
		nodes, err = s.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, nodes)
	})
}

func TestSemaphoreServesInTurn(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p := zkserver.Path(t), locktest.SharedPeer(t)
		s := semaphore(p, dir, 3)
		all, err := s.AcquireN(t.Context(), 3)
		require.NoError(t, err)
		p.AwaitChildren(dir+"/locks", 0)
		var mu sync.Mutex
		var order []int
		var ended []<-chan error
		processes := []*recipes.InterProcessSemaphoreV2{
			semaphore(locktest.SharedPeer(t), dir, 3),
			semaphore(locktest.SharedPeer(t), dir, 3),
		}
		// the first wants all: those who want less do not overtake it
		for i, n := range []int{3, 1, 2, 1, 3} {
			by := processes[i%2]
			ended = append(ended, locktest.Start(func() error {
				leases, err := by.AcquireN(t.Context(), n)
				if err != nil {
					return err
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				return by.ReturnAll(t.Context(), leases)
			}))
			p.AwaitChildren(dir+"/locks", i+1)
			if i == 0 {
				p.AwaitChildren(dir+"/leases", 6)
				// enough for those who want one
				require.NoError(t, all[0].Release(t.Context()))
			}
		}
		require.NoError(t, s.ReturnAll(t.Context(), all))
		for _, e := range ended {
			require.NoError(t, locktest.Within(t, e, "somebody's turn"))
		}
		require.Equal(t, 0, order[0])
		require.Equal(t, 4, order[4], "who wants all comes after all who were ahead")
	})
}

// The head of the queue leaves while those behind wait: nothing of it stays, and they
// move up.
func TestAWaiterThatGivesUpFreesTheGate(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		s := semaphore(p, dir, 2)
		lease, err := s.Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		greedy := locktest.Start(func() error {
			_, err := s.AcquireN(ctx, 2)
			return err
		})
		other.AwaitChildren(dir+"/leases", 3)
		modest := getLeases(t.Context(), t, semaphore(other, dir, 2), 1)
		other.AwaitChildren(dir+"/locks", 2)
		cancel()
		require.ErrorIs(
			t, locktest.Within(t, greedy, "the one that gives up"), context.Canceled,
		)
		got := locktest.Within(t, modest, "the one behind moves up")
		other.AwaitChildren(dir+"/locks", 0)
		require.Equal(
			t, []string{lease.NodeName(), got[0].NodeName()},
			other.AwaitChildren(dir+"/leases", 2),
		)
		require.NoError(t, s.ReturnAll(t.Context(), append(got, lease)))
	})
}

func TestALeaseThatAStrangerDeletesWakesTheWaiter(t *testing.T) {
	t.Parallel()
	for most, watches := range map[int]func(lease string) string{
		1: func(lease string) string { return lease },
		2: path.Dir,
	} {
		zkserver.Run(t, fmt.Sprint("maximum ", most), func(t *testing.T) {
			dir, p := zkserver.Path(t), locktest.SharedPeer(t)
			other := locktest.SharedPeer(t)
			lease, err := semaphore(other, dir, most).Acquire(t.Context())
			require.NoError(t, err)
			waiting := getLeases(t.Context(), t, semaphore(p, dir, most), most)
			node := dir + "/leases/" + lease.NodeName()
			locktest.Eventually(t, func() bool {
				return slices.Contains(p.Watching(), watches(node))
			}, "%s is not watched", watches(node))
			require.NoError(t, other.Conn.Delete(node, -1))
			got := locktest.Within(t, waiting, "the waiter does not wake")
			for _, l := range got {
				require.NoError(t, l.Release(t.Context()))
			}
			locktest.Within(t, lease.Lost(), "the loss")
		})
	}
}

// The waiter's own place, at the gate or among the leases, is deleted: it joins anew and
// holds on to nothing that is gone.
func TestASemaphoresWaiterLosesItsPlace(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"/locks", "/leases"} {
		zkserver.Run(t, at[1:], func(t *testing.T) {
			dir := zkserver.Path(t)
			p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
			lease, err := semaphore(other, dir, 2).Acquire(t.Context())
			require.NoError(t, err)
			other.AwaitChildren(dir+"/locks", 0)
			waiting := getLeases(t.Context(), t, semaphore(p, dir, 2), 2)
			locktest.Eventually(
				t, func() bool { return slices.Contains(p.Watching(), dir+"/leases") },
				"nobody waits",
			)
			places := other.Children(dir + at)
			place := places[len(places)-1]
			require.NoError(t, other.Conn.Delete(dir+at+"/"+place, -1))
			locktest.Eventually(t, func() bool {
				return !slices.Contains(other.Children(dir+at), place) &&
					len(
						other.Children(dir+"/leases"),
					) == 3 && len(other.Children(dir+"/locks")) == 1
			}, "it does not join anew")
			require.NoError(t, lease.Release(t.Context()))
			leases := locktest.Within(t, waiting, "the waiter's turn")
			require.ElementsMatch(
				t, []string{leases[0].NodeName(), leases[1].NodeName()},
				other.AwaitChildren(dir+"/leases", 2),
			)
			for _, l := range leases {
				require.NoError(t, l.Err())
				require.NoError(t, l.Release(t.Context()))
			}
		})
	}
}
