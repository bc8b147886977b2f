package lock_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// A narrowConn leads to a server with a jute.maxbuffer: it hangs up on a longer request.
type narrowConn struct {
	net.Conn
	limit int
	hits  *atomic.Int32
}

func (c *narrowConn) Write(p []byte) (int, error) {
	if len(p) > c.limit && c.hits.Add(1) > 0 {
		c.Close()
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A server whose jute.maxbuffer is lower than the data that a lock's znodes shall hold
// cuts the connection at each try, which costs everybody who uses it. That must come to
// an end.
func TestDataThatTheServerDoesNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, hits := narrowClient(t)
		mutex := func(path string, size int) *recipes.InterProcessMutex {
			return locktest.NewMutex(t, c, path, recipes.WithData(make([]byte, size)))
		}
		bystander, ctx := mutex("/bystander", 10), locktest.Owner(t)
		require.NoError(t, bystander.Acquire(ctx))

		began := time.Now()
		err := locktest.Within(t, locktest.Start(func() error {
			return mutex("/lock", 1<<17).Acquire(ctx)
		}), "it tries for ever")
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.ErrorContains(t, err, "jute.maxbuffer")
		require.ErrorContains(t, err, "131072 bytes")
		require.Less(t, time.Since(began), 10*time.Second)
		require.Equal(t, int32(5), hits.Load())
		require.NoError(t, bystander.Hold(ctx).Err(), "the session has lasted")
		time.Sleep(time.Minute)
		require.Equal(t, int32(5), hits.Load(), "nothing is tried in the background")

		require.NoError(t, mutex("/lock", 1<<15).Acquire(ctx))
	})
}

// So it is with whatever is long in a request, and whoever makes it.
func TestPathsThatTheServerDoesNotTake(t *testing.T) {
	for name, call := range map[string]func(
		ctx context.Context, c *recipes.Client, path string,
	) error{
		"Acquire": func(ctx context.Context, c *recipes.Client, path string) error {
			lock, err := recipes.NewInterProcessMutex(c, path)
			if err != nil {
				return err
			}
			return lock.Acquire(ctx)
		},
		"AcquireN": func(ctx context.Context, c *recipes.Client, path string) error {
			s, err := recipes.NewInterProcessSemaphoreV2(c, path, 2)
			if err != nil {
				return err
			}
			_, err = s.AcquireN(ctx, 2)
			return err
		},
		"shared count": func(ctx context.Context, c *recipes.Client, path string) error {
			s, err := recipes.NewInterProcessSemaphoreV2Shared(c, "/semaphore", path)
			if err != nil {
				return err
			}
			_, err = s.AcquireN(ctx, 2)
			return err
		},
		"SetSharedCount": func(
			ctx context.Context, c *recipes.Client, path string,
		) error {
			return recipes.SetSharedCount(ctx, c, path, 1)
		},
		"AttemptRevoke": func(ctx context.Context, c *recipes.Client, path string) error {
			return recipes.AttemptRevoke(ctx, c, path+"/lock-0000000000")
		},
		"Inspect": func(ctx context.Context, c *recipes.Client, path string) error {
			_, err := recipes.Inspect(ctx, c, path)
			return err
		},
		"Leaders": func(
			ctx context.Context, c *recipes.Client, path string,
		) (last error) {
			latch, err := recipes.NewLeaderLatch(c, path)
			if err != nil {
				return err
			}
			for _, err := range latch.Leaders(ctx) {
				last = err
			}
			return last
		},
	} {
		for long, most := range map[int]int32{1 << 17: 10, 1<<20 - 1: 0, 1 << 22: 0} {
			locktest.RunVirtual(t, fmt.Sprint(name, " ", long), func(t *testing.T) {
				c, hits := narrowClient(t)
				path := "/" + strings.Repeat("x", long)
				err := locktest.Within(t, locktest.Start(func() error {
					return call(t.Context(), c, path)
				}), "it tries for ever")
				require.Error(t, err)
				require.Less(t, len(err.Error()), long+4000, "it is there once")
				require.LessOrEqual(t, hits.Load(), most)
				time.Sleep(time.Hour)
				require.LessOrEqual(t, hits.Load(), most, "in the background")
			})
		}
	}
}

// narrowClient is a client of a server that accepts 64 KiB, and how often it hung up.
func narrowClient(t *testing.T) (c *recipes.Client, hits *atomic.Int32) {
	t.Helper()
	cluster := zktest.Start(t)
	hits = new(atomic.Int32)
	dial := func(network, address string, d time.Duration) (net.Conn, error) {
		conn, err := cluster.Link("ours").Dial(network, address, d)
		if err != nil {
			return nil, err
		}
		return &narrowConn{conn, 1 << 16, hits}, nil
	}
	c, err := recipes.Connect(t.Context(), strings.Join(cluster.Names(), ","),
		20*time.Second, recipes.WithDialer(dial))
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		time.Sleep(time.Minute)
	})
	return c, hits
}

// Nor must an outage be taken for that, however often the connection breaks.
func TestALargeCreateOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link := cluster.Link("ours")
		c := locktest.Connect(t, link, strings.Join(cluster.Names(), ","), 20*time.Second)
		lock := locktest.NewMutex(t, c, "/lock", recipes.WithData(make([]byte, 1<<17)))
		link.Stall(zktest.Both)
		ctx := locktest.Owner(t)
		acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
		for range 20 {
			time.Sleep(time.Second)
			link.Reset()
		}
		link.Heal()
		require.NoError(t, <-acquired)
	})
}

// The largest data that the constructor takes is not refused by the server, which would
// close the connection.
func TestLargestData(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		size := 1 << 20
		for {
			if _, err := recipes.NewInterProcessMutex(
				p.Conn, path, recipes.WithData(make([]byte, size)),
			); err == nil {
				break
			}
			size--
		}
		lock := p.Mutex(path, recipes.WithData(bytes.Repeat([]byte("x"), size)))
		require.NoError(t, lock.Acquire(t.Context()))
		require.NoError(t, lock.Release(t.Context()))
		require.Equal(t, 1, p.Tap.Count("connect"))
	})
}

// Whose znode is deleted again and again pauses before each new one. What such a waiter
// is told who runs out of time meanwhile counts from the pause, and not from when it
// joined the queue: ZooKeeper has answered all the time.
func TestWhoRunsOutOfTimeBeforeItRejoins(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		holder := locktest.Owner(t)
		require.NoError(t, b.Mutex(t, b.Other, "/lock").Acquire(holder))
		const rejoins = 9 // so that the pause is half a second
		began := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := b.Lock.AcquireTimeout(locktest.Owner(t), time.Hour)
			done <- err
		}()
		for range rejoins {
			time.Sleep(time.Minute)
			nodes := locktest.AwaitChildren(t, b.Other, "/lock", 2)
			require.NoError(t, b.Other.Delete("/lock/"+nodes[1], -1))
		}
		locktest.AwaitChildren(t, b.Other, "/lock", 2)
		time.Sleep(time.Until(began.Add(time.Hour - 100*time.Millisecond)))
		nodes := locktest.AwaitChildren(t, b.Other, "/lock", 2)
		require.NoError(t, b.Other.Delete("/lock/"+nodes[1], -1))
		require.NoError(t, <-done, "others are ahead")
	})
}

// Whatever a multi lock has to give up and to give back, a try takes a second at most.
func TestATryOfAMultiLockTakesASecondAtMost(t *testing.T) {
	const step = 10 * time.Millisecond
	for delay := 10 * step; delay <= 25*step; delay += step {
		locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
			ctx := locktest.Owner(t)
			require.NoError(t, b.Mutex(t, b.Other, "/b").Acquire(ctx))
			lock := recipes.NewInterProcessMultiLockOf(
				b.Mutex(t, b.Ours, "/a"), b.Mutex(t, b.Ours, "/b"))
			ok, err := lock.AcquireTimeout(ctx, 0)
			require.NoError(t, err)
			require.False(t, ok)
			b.Cluster.Link("ours").Delay(delay, delay)
			began := time.Now()
			ok, err = lock.AcquireTimeout(ctx, 0)
			took := time.Since(began)
			b.Cluster.Link("ours").Delay(0, 0)
			require.LessOrEqual(t, took, time.Second, "%v each way", delay)
			require.False(t, ok, "%v each way", delay)
			if err != nil { // nobody knows whether others are ahead
				require.ErrorIs(t, err, recipes.ErrUnavailable, "%v each way", delay)
			}
		})
	}
}

// Nor does a cancelled Acquire take longer than 250 ms, see DESIGN.
func TestACancelledAcquireTakesAQuarterOfASecondAtMost(t *testing.T) {
	var worst time.Duration
	var at string
	cancelled := map[string]int{}
	const step = 5 * time.Millisecond
	for stall := step; stall <= 60*step; stall += step {
		for _, what := range []string{"multi", "semaphore", "mutex"} {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				var lock recipes.InterProcessLock
				sm := locktest.NewSemaphoreMutex(t, b.Ours, "/fresh/sm")
				switch what {
				case "multi":
					lock = recipes.NewInterProcessMultiLockOf(
						b.Mutex(t, b.Ours, "/a"), sm,
					)
				case "semaphore":
					lock = sm
				case "mutex":
					lock = b.Mutex(t, b.Ours, "/fresh/m")
				}
				link := b.Cluster.Link("ours")
				link.Delay(10*time.Millisecond, 10*time.Millisecond)
				ctx, cancel := context.WithCancel(locktest.Owner(t))
				done := make(chan error, 1)
				go func() { done <- lock.Acquire(ctx) }()
				time.Sleep(stall)
				link.Stall(zktest.Both)
				time.Sleep(500 * time.Millisecond)
				acquired := len(done) == 1 // before the stall
				cancel()
				began := time.Now()
				err := <-done
				if took := time.Since(began); took > worst {
					worst, at = took, what+" at "+stall.String()
				}
				if acquired {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, context.Canceled)
					cancelled[what]++
				}
				link.Heal()
				time.Sleep(time.Minute)
			})
		}
	}
	require.LessOrEqual(t, worst, 250*time.Millisecond, at)
	require.Len(t, cancelled, 3, "one was always acquired before")
}
