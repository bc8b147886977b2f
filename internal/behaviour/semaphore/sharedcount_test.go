package semaphore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

func sharedSemaphore(
	p *locktest.Peer, dir, count string,
) *recipes.InterProcessSemaphoreV2 {
	p.TB.Helper()
	return locktest.NewSharedSemaphore(
		p.TB, p.Conn, dir, count, recipes.WithSessionTimeout(p.Timeout),
	)
}

func TestSetSharedCount(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		count, p := zkserver.Path(t)+"/below/count", locktest.SharedPeer(t)
		for _, most := range []int{1, math.MaxInt32, 7} {
			require.NoError(t, recipes.SetSharedCount(t.Context(), p.Conn, count, most))
			data, stat, err := p.Conn.Get(count)
			require.NoError(t, err)
			require.Equal(t, binary.BigEndian.AppendUint32(nil, uint32(most)), data)
			require.Zero(t, stat.EphemeralOwner)
		}
		for _, lost := range []<-chan struct{}{
			p.Tap.LoseReply(wiretap.SetData, 1), p.Tap.LoseReply(wiretap.Create, 1),
		} {
			other := path.Dir(count) + "/other"
			require.NoError(
				t, recipes.SetSharedCount(t.Context(), p.Conn, other, 3),
				"an outage is waited out",
			)
			locktest.Within(t, lost, "nothing was lost")
			p.AwaitSession()
		}

		closed := path.Dir(count) + "/closed"
		_, err := p.Conn.Create(closed, nil, 0, zk.WorldACL(zk.PermRead))
		require.NoError(t, err)
		for _, at := range []string{closed, closed + "/count"} {
			err := recipes.SetSharedCount(t.Context(), p.Conn, at, 3)
			require.ErrorIs(t, err, zk.ErrNoAuth)
			require.ErrorContains(t, err, "set shared count "+at)
		}
	})
}

// A parentlessConn deletes a znode before the first create below it.
type parentlessConn struct {
	*recipes.Client
	parent string
	once   sync.Once
}

func (c *parentlessConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	if strings.HasPrefix(path, c.parent+"/") {
		c.once.Do(func() { err = c.Delete(c.parent, -1) })
	}
	if err != nil {
		return "", err
	}
	return c.Client.Create(path, data, flags, acl)
}

// A container that is empty goes by the server's doing, or by that of a caller who made
// it and has given up.
func TestSetSharedCountWhoseParentGoes(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		conn := &parentlessConn{Client: b.Ours, parent: "/app"}
		require.NoError(t, recipes.SetSharedCount(t.Context(), conn, "/app/count", 3))
		data, _, err := b.Other.Get("/app/count")
		require.NoError(t, err)
		require.Equal(t, []byte{0, 0, 0, 3}, data)
	})
}

// A count that is deleted and set again at once ends no wait; one that stays away does,
// after a second.
func TestASharedCountThatIsSetAgain(t *testing.T) {
	for name, c := range map[string]struct {
		n     int
		again bool
	}{
		"one lease":                  {1, true},
		"more than there are":        {3, true},
		"one lease, never":           {1, false},
		"more than there are, never": {3, false},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			set := func(n int) {
				err := recipes.SetSharedCount(t.Context(), b.Other, "/count", n)
				require.NoError(t, err)
			}
			set(1)
			s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/count")
			held, err := s.Acquire(t.Context())
			require.NoError(t, err)
			waits := make(chan error, 1)
			go func() {
				leases, err := s.AcquireN(t.Context(), c.n)
				waits <- err
				_ = s.ReturnAll(t.Context(), leases)
			}()
			time.Sleep(time.Minute)
			require.NoError(t, b.Other.Delete("/count", -1))
			if !c.again {
				deleted := time.Now()
				require.ErrorIs(t, <-waits, zk.ErrNoNode)
				require.Less(t, time.Since(deleted), 1200*time.Millisecond)
				return
			}
			time.Sleep(500 * time.Millisecond)
			set(c.n)
			time.Sleep(time.Minute)
			require.NoError(t, held.Release(t.Context()))
			require.NoError(t, <-waits)
		})
	}
}

// Whoever has not seen the count yet waits for it just so: who comes while it is missing,
// and who waited behind another at the gate meanwhile.
func TestASharedCountThatIsNotThereYet(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		set := func() {
			err := recipes.SetSharedCount(t.Context(), b.Other, "/count", 1)
			require.NoError(t, err)
		}
		s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/count")
		acquire := func(ctx context.Context) <-chan error {
			return locktest.Start(func() error {
				_, err := s.Acquire(ctx)
				return err
			})
		}
		first := acquire(t.Context())
		time.Sleep(300 * time.Millisecond)
		set()
		require.NoError(t, <-first)
		giving, giveUp := context.WithCancel(t.Context())
		ahead := acquire(giving)
		time.Sleep(time.Second)
		behind := acquire(t.Context())
		time.Sleep(time.Second)
		require.NoError(t, b.Other.Delete("/count", -1))
		time.Sleep(100 * time.Millisecond)
		giveUp()
		require.ErrorIs(t, <-ahead, recipes.ErrBusy)
		time.Sleep(300 * time.Millisecond)
		set()
		time.Sleep(time.Minute)
		require.Empty(t, behind)
		require.NoError(t, b.Other.Delete("/count", -1))
		require.ErrorIs(t, <-behind, zk.ErrNoNode)
	})
}

// An outage that begins while the count is missing is told of, too.
func TestASharedCountThatIsMissingAsAnOutageBegins(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/count")
		time.AfterFunc(220*time.Millisecond, func() {
			b.Cluster.Link("ours").Stall(zktest.Both)
		})
		_, err := s.AcquireTimeout(t.Context(), 1, 3*time.Second)
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.ErrorIs(t, err, recipes.ErrUnavailable)
		require.ErrorContains(t, err, "no response")
	})
}

// Whoever has less than a second is told as well that the count is missing: a single
// attempt at once, others when their time is over.
func TestASharedCountThatIsMissing(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/count")
		for _, n := range []int{1, 2} {
			for limit, takes := range map[time.Duration]time.Duration{
				0: 0, 500 * time.Millisecond: 500 * time.Millisecond,
				time.Minute: time.Second,
			} {
				began := time.Now()
				leases, err := s.AcquireTimeout(t.Context(), n, limit)
				require.Empty(t, leases)
				require.ErrorIs(t, err, zk.ErrNoNode)
				ended := limit == 500*time.Millisecond
				require.Equal(t, ended, errors.Is(err, recipes.ErrUnavailable), limit)
				require.NotContains(t, err.Error(), "no response", "it has answered")
				require.InDelta(t, takes.Seconds(), time.Since(began).Seconds(), 0.1)
			}
			ctx, cancel := context.WithTimeoutCause(
				t.Context(), 500*time.Millisecond, locktest.ErrChangedMind)
			defer cancel()
			_, err := s.AcquireN(ctx, n)
			require.ErrorIs(t, err, zk.ErrNoNode)
			require.ErrorIs(t, err, recipes.ErrUnavailable)
			require.ErrorIs(t, err, locktest.ErrChangedMind)
		}
	})
}

func TestSharedMaximum(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		count := dir + "-count"
		s := sharedSemaphore(p, dir, count)
		_, err := s.Acquire(t.Context())
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.ErrorContains(t, err, "create it with SetSharedCount")
		require.ErrorContains(t, err, "shared count "+count)
		other.AwaitChildren(dir+"/leases", 0)
		other.AwaitChildren(dir+"/locks", 0)

		require.NoError(t, recipes.SetSharedCount(t.Context(), other.Conn, count, 1))
		first, err := s.Acquire(t.Context())
		require.NoError(t, err)
		watched := func() bool { return slices.Contains(p.Watching(), count) }
		require.False(t, watched(), "a free lease needs no watch")
		// More than the present maximum is no error.
		raised := getLeases(t.Context(), t, s, 3)
		locktest.Eventually(t, watched, "the count is not watched")
		require.NoError(t, recipes.SetSharedCount(t.Context(), other.Conn, count, 4))
		leases := append(
			locktest.Within(t, raised, "a raise does not wake the waiter"), first,
		)
		require.Len(t, leases, 4)

		require.NoError(t, recipes.SetSharedCount(t.Context(), other.Conn, count, 1))
		for range 3 { // lowered: as many as are too many have to come back first
			none, err := s.AcquireTimeout(t.Context(), 1, 0)
			require.NoError(t, err)
			require.Nil(t, none)
			require.NoError(t, leases[len(leases)-1].Err(), "lowering takes nothing")
			require.NoError(t, leases[0].Release(t.Context()))
			leases = leases[1:]
		}
		none, err := s.AcquireTimeout(t.Context(), 1, 0)
		require.NoError(t, err)
		require.Nil(t, none)
		require.NoError(t, s.ReturnAll(t.Context(), leases))
		last, err := s.AcquireTimeout(t.Context(), 1, 0)
		require.NoError(t, err)
		require.Len(t, last, 1)
		require.NoError(t, last[0].Release(t.Context()))
	})
}

// The count goes, or turns into something else, under a waiter.
func TestSharedMaximumThatIsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(conn *zk.Conn, count string) error
		want  error
	}{
		"deleted": {
			func(conn *zk.Conn, count string) error { return conn.Delete(count, -1) },
			zk.ErrNoNode,
		},
		"no int32": {func(conn *zk.Conn, count string) error {
			_, err := conn.Set(count, []byte("12345"), -1)
			return err
		}, zk.ErrBadArguments},
		"empty": {func(conn *zk.Conn, count string) error {
			_, err := conn.Set(count, nil, -1)
			return err
		}, zk.ErrBadArguments},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			dir := zkserver.Path(t)
			p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
			count := dir + "-count"
			s := sharedSemaphore(p, dir, count)
			require.NoError(t, recipes.SetSharedCount(t.Context(), other.Conn, count, 1))
			lease, err := s.Acquire(t.Context())
			require.NoError(t, err)
			waiting := locktest.Start(func() error {
				_, err := s.Acquire(t.Context())
				return err
			})
			locktest.Eventually(
				t, func() bool { return slices.Contains(p.Watching(), count) },
				"the count is not watched",
			)
			require.NoError(t, c.spoil(other.Conn, count))
			err = locktest.Within(t, waiting, "the waiter")
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "acquire "+dir)
			require.ErrorContains(t, err, count)
			require.NoError(t, lease.Err())
			require.Equal(
				t, []string{lease.NodeName()}, other.AwaitChildren(dir+"/leases", 1),
			)
			other.AwaitChildren(dir+"/locks", 0)
		})
	}
}

// A shared maximum below n is looked at first: nobody is kept waiting by znodes that
// cannot be granted.
func TestAcquireNWaitsForASharedMaximumWithoutZnodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		set := func(most int) {
			t.Helper()
			require.NoError(
				t, recipes.SetSharedCount(t.Context(), client, "/count", most),
			)
			time.Sleep(time.Second)
		}
		nodes := func() (nodes []string) {
			for _, dir := range []string{"/s/locks", "/s/leases"} {
				children, _, err := client.Children(dir)
				if err == nil {
					nodes = append(nodes, children...)
				}
			}
			return nodes
		}
		set(2)
		s := locktest.NewSharedSemaphore(t, client, "/s", "/count")
		var leases []*recipes.Lease
		many := locktest.Start(func() (err error) {
			leases, err = s.AcquireN(t.Context(), 1000)
			return err
		})
		time.Sleep(time.Second)
		require.Empty(t, nodes())
		began := time.Now()
		none, err := s.AcquireTimeout(t.Context(), 3, 0)
		require.NoError(t, err)
		require.Nil(t, none)
		none, err = s.AcquireTimeout(t.Context(), 3, time.Second)
		require.NoError(t, err)
		require.Nil(t, none)
		require.Less(t, time.Since(began), 2*time.Second)

		one, err := s.AcquireTimeout(t.Context(), 2, 0)
		require.NoError(t, err)
		require.Len(t, one, 2, "others need not wait meanwhile")
		set(1001)
		require.Empty(t, many, "two are out")
		require.Len(t, nodes(), 1000+1+2)
		set(5)
		require.Len(t, nodes(), 2, "the maximum is lower again")
		set(1000)
		require.NoError(t, s.ReturnAll(t.Context(), one))
		require.NoError(t, <-many)
		require.NoError(t, s.ReturnAll(t.Context(), leases))

		cluster.Link("ours").Cut()
		giving, cancel := context.WithTimeoutCause(
			t.Context(), time.Second, locktest.ErrChangedMind,
		)
		defer cancel()
		_, err = s.AcquireN(giving, 2000)
		require.ErrorIs(t, err, locktest.ErrChangedMind)
		cluster.Link("ours").Heal()
		time.Sleep(time.Second)
		require.NoError(t, client.Delete("/count", -1))
		_, err = s.AcquireN(t.Context(), 2)
		require.ErrorContains(t, err, "shared count /count")
	})
}

// Whoever could write to the count of leases could set it: there was no way to say who
// may.
func TestSetSharedCountWithAnACL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		servers := strings.Join(cluster.Names(), ",")
		owner, err := recipes.Connect(t.Context(), servers, 10*time.Second,
			recipes.WithDialer(cluster.Link("owner").Dial),
			recipes.WithAuth("digest", []byte("anna:secret")))
		require.NoError(t, err)
		defer owner.Close()
		stranger := locktest.ConnectThrough(t, cluster, "stranger")
		mine := recipes.WithACL(zk.AuthACL(zk.PermAll))
		ctx := t.Context()
		require.NoError(t, recipes.SetSharedCount(ctx, owner, "/app/count", 3, mine))
		require.NoError(t, recipes.SetSharedCount(ctx, owner, "/app/count", 4, mine))
		require.ErrorIs(t,
			recipes.SetSharedCount(ctx, stranger, "/app/count", 100), zk.ErrNoAuth)
		require.ErrorIs(t, stranger.Delete("/app/count", -1), zk.ErrNoAuth)

		for name, other := range map[string]recipes.Option{
			"data":    recipes.WithData([]byte("x")),
			"logger":  recipes.WithLogger(slog.Default()),
			"caching": recipes.WithCaching(time.Second, 1),
		} {
			err := recipes.SetSharedCount(ctx, owner, "/other", 1, mine, other)
			require.ErrorContains(t, err, "a shared count accepts only WithACL", name)
		}
		require.Empty(t, locktest.Children(t, owner, "/other"))
	})
}
