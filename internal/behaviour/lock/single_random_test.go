package lock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A wish is the time from a call that acquires to the end of the release, or of the call.
type wish struct {
	from, to time.Time
	who      int
	busy     bool
}

// A crowd uses one read/write lock, each of its owners through a value and a process of
// its own or another's, and notes its wishes.
type crowd struct {
	mu     sync.Mutex
	wishes []wish
}

func (c *crowd) note(w wish) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wishes = append(c.wishes, w)
}

// goOn has an owner acquire again and again, by attempts or waiting, until ctx is done.
func (c *crowd) goOn(
	ctx context.Context, who int, lock recipes.InterProcessLock, attempts bool,
	random *rand.Rand, pause time.Duration,
) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.Int64N(int64(pause))))
		w := wish{from: time.Now(), who: who}
		var opts []recipes.DoOption
		if attempts {
			opts = append(opts, recipes.WaitAtMost(0))
		}
		hold := time.Duration(random.Int64N(int64(3 * time.Millisecond)))
		err := recipes.Do(context.WithoutCancel(ctx), lock,
			func(context.Context, *recipes.Hold) error {
				time.Sleep(hold)
				return nil
			}, opts...)
		w.to, w.busy = time.Now(), err != nil
		c.note(w)
	}
}

// disturbed tells whether another's wish was in the way of an attempt. What it has left
// is still being deleted for a while.
func (c *crowd) disturbed(attempt wish, deleted time.Duration) bool {
	for _, w := range c.wishes {
		if w.who != attempt.who && w.from.Before(attempt.to) &&
			w.to.Add(deleted).After(attempt.from) {
			return true
		}
	}
	return false
}

// Whoever fails as busy has met somebody who held the lock or waited for it, however many
// cached entries lie about.
func TestWhoMakesASingleAttemptFail(t *testing.T) {
	for seed := range uint64(8) {
		locktest.Run(t, fmt.Sprint("seed ", seed), func(
			t *testing.T, b *locktest.Bubble,
		) {
			random := rand.New(rand.NewPCG(seed, 39))
			delay := time.Duration(random.Int64N(int64(30 * time.Millisecond)))
			third := locktest.ConnectThrough(t, b.Cluster, "third")
			for _, link := range []string{"ours", "other", "third"} {
				b.Cluster.Link(link).Delay(delay, delay)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c, all := &crowd{}, sync.WaitGroup{}
			caching := recipes.WithCaching(5*time.Second, 1+random.IntN(3))
			for who := range 4 {
				client := []*recipes.Client{b.Ours, b.Ours, b.Other, third}[who]
				var opts []recipes.Option
				if random.IntN(4) > 0 {
					opts = append(opts, caching)
				}
				rw := locktest.ReadWriteLock(t, client, opts...)
				lock := recipes.InterProcessLock(rw.ReadLock())
				if random.IntN(2) == 0 {
					lock = rw.WriteLock()
				}
				owns := rand.New(rand.NewPCG(seed, uint64(who)))
				all.Go(func() {
					c.goOn(ctx, who, lock, who > 0, owns, 4*time.Second)
				})
			}
			all.Wait()
			busy := 0
			for _, w := range c.wishes {
				if w.busy {
					busy++
					require.True(t, c.disturbed(w, 3*delay),
						"the attempt of %d failed", w.who)
				}
			}
			t.Log(len(c.wishes), "wishes,", busy, "busy, a delay of", delay)
		})
	}
}
