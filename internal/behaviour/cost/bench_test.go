package cost_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Each benchmark that compares with zk.Lock runs both in turns, so that they meet the
// same machine and the same server. The time per operation is this library's;
// "zk.Lock/ours" is how many times as long zk.Lock takes.

func benchPeer(b *testing.B, roundTrip time.Duration) *locktest.Peer {
	b.Helper()
	p := locktest.NewPeer(b, zkserver.Shared(b).Connect(), 30*time.Second)
	p.Tap.Delay(roundTrip / 2)
	return p
}

// compare runs ours and theirs in turns, b.N times each.
func compare(b *testing.B, ours, theirs func() error) {
	b.Helper()
	err := errors.Join(ours(), theirs()) // both make their directory
	var our, their time.Duration
	for b.Loop() {
		began := time.Now()
		failed := ours()
		between := time.Now()
		alsoFailed := theirs()
		our, their = our+between.Sub(began), their+time.Since(between)
		err = errors.Join(err, failed, alsoFailed)
	}
	require.NoError(b, err)
	b.ReportMetric(float64(our)/float64(b.N), "ns/op")
	b.ReportMetric(float64(their)/float64(our), "zk.Lock/ours")
}

// cycleOurs returns a function that acquires and releases once.
func cycleOurs(p *locktest.Peer, path string) func() error {
	lock, ctx := p.Mutex(path), locktest.Owner(p.TB)
	return func() error {
		if err := lock.Acquire(ctx); err != nil {
			return err
		}
		return lock.Release(ctx)
	}
}

// cycleTheirs is cycleOurs by zk.Lock.
func cycleTheirs(p *locktest.Peer, path string) func() error {
	lock := zk.NewLock(p.Conn, path, zk.WorldACL(zk.PermAll))
	return func() error {
		if err := lock.Lock(); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

func BenchmarkFreeLock(b *testing.B) {
	for name, roundTrip := range map[string]time.Duration{
		"loopback": 0, "1ms": time.Millisecond,
	} {
		b.Run(name, func(b *testing.B) {
			p := benchPeer(b, roundTrip)
			compare(b, cycleOurs(p, zkserver.Path(b)), cycleTheirs(p, zkserver.Path(b)))
		})
	}
}

// BenchmarkKeptPlace uses a lock again and again, and asks nothing of ZooKeeper.
func BenchmarkKeptPlace(b *testing.B) {
	p := benchPeer(b, 0)
	lock := p.Mutex(zkserver.Path(b), recipes.WithCaching(time.Minute, 16))
	for name, ctx := range map[string]context.Context{
		"owner in ctx": locktest.Owner(b), "no owner in ctx": b.Context(),
	} {
		for how, use := range usesOf(lock) {
			b.Run(how+", "+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := use(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// usesOf are the ways to use a lock once.
func usesOf(lock recipes.InterProcessLock) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"its methods": func(ctx context.Context) error {
			if err := lock.Acquire(ctx); err != nil {
				return err
			}
			return lock.Release(ctx)
		},
		"Acquire": func(ctx context.Context) error {
			hold, err := recipes.Acquire(ctx, lock)
			if err != nil {
				return err
			}
			return hold.Release(ctx)
		},
		"Do": func(ctx context.Context) error {
			return recipes.Do(ctx, lock, locktest.Nothing)
		},
	}
}

// BenchmarkContended counts as one operation that each contender gets the lock eight
// times.
func BenchmarkContended(b *testing.B) {
	for name, c := range map[string]struct{ sessions, goroutines int }{
		"1 session of 16 goroutines": {1, 16},
		"8 sessions":                 {8, 1},
	} {
		b.Run(name, func(b *testing.B) {
			path, theirPath := zkserver.Path(b), zkserver.Path(b)
			var ours, theirs []func() error
			for range c.sessions {
				p := benchPeer(b, 0)
				for range c.goroutines {
					ours, theirs = append(ours, cycleOurs(p, path)), append(
						theirs, cycleTheirs(p, theirPath),
					)
				}
			}
			compare(b, crowd(ours), crowd(theirs))
		})
	}
}

// crowd runs all at once, each eight times.
func crowd(all []func() error) func() error {
	return func() error {
		failed := make(chan error, len(all))
		for _, f := range all {
			go func() {
				var err error
				for range 8 {
					err = errors.Join(err, f())
				}
				failed <- err
			}()
		}
		var err error
		for range all {
			err = errors.Join(err, <-failed)
		}
		return err
	}
}

// BenchmarkHandOver is the time from the call of Release to the return of the Acquire
// that has been waiting.
func BenchmarkHandOver(b *testing.B) {
	for name, sessions := range map[string]int{
		"between processes": 2, "inside a process": 1,
	} {
		b.Run(name, func(b *testing.B) {
			holder := benchPeer(b, 0)
			waiter := holder
			if sessions == 2 {
				waiter = benchPeer(b, 0)
			}
			path, ctx, waiting := zkserver.Path(b), locktest.Owner(b), locktest.Owner(b)
			held, wanted := holder.Mutex(path), waiter.Mutex(path)
			var handOver time.Duration
			for b.Loop() {
				require.NoError(b, held.Acquire(ctx))
				waiter.Tap.Reset()
				var at time.Time
				granted := locktest.Start(func() error {
					err := wanted.Acquire(waiting)
					at = time.Now()
					return err
				})
				// The one ahead, if it is another process's, and the own znode.
				locktest.Eventually(
					b, func() bool { return len(waiter.Watching()) >= sessions },
					"it does not wait, or is not watched",
				)
				began := time.Now()
				require.NoError(b, held.Release(ctx))
				require.NoError(b, <-granted)
				handOver += at.Sub(began)
				require.NoError(b, wanted.Release(waiting))
			}
			b.ReportMetric(float64(handOver)/float64(b.N), "ns/op")
		})
	}
}

func BenchmarkReentry(b *testing.B) {
	p := benchPeer(b, 0)
	lock := p.Mutex(zkserver.Path(b))
	for name, ctx := range map[string]context.Context{
		"owner in ctx": locktest.Owner(b), "owner is the goroutine": b.Context(),
	} {
		b.Run(name, func(b *testing.B) {
			require.NoError(b, lock.Acquire(ctx))
			b.ReportAllocs()
			for b.Loop() {
				if lock.Acquire(ctx) != nil || lock.Release(ctx) != nil {
					b.Fatal("no re-entry")
				}
			}
			require.NoError(b, lock.Release(ctx))
		})
	}
}
