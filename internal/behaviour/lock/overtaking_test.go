package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// overtaking are uses of one cached lock by owners of this process, each of which takes a
// millisecond.
type overtaking struct {
	lock recipes.InterProcessLock

	mu   sync.Mutex
	uses []time.Time // when each began
}

func (o *overtaking) note(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uses = append(o.uses, at)
}

const useTakes = time.Millisecond

// begin has so many owners use the lock again and again, until ctx is done.
func (o *overtaking) begin(ctx context.Context, owners int) {
	for range owners {
		go func() {
			for ctx.Err() == nil {
				_ = recipes.Do(ctx, o.lock, func(context.Context, *recipes.Hold) error {
					o.note(time.Now())
					time.Sleep(useTakes)
					return nil
				})
			}
		}()
	}
}

// between counts the uses that began in a time.
func (o *overtaking) between(from, to time.Time) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, at := range o.uses {
		if at.After(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// Whoever joins is overtaken while the notification is on its way, and then by as many
// hand-overs as the option says: not also while its process lists the queue, nor while it
// pauses between two lists.
func TestHowManyOvertakeANewcomer(t *testing.T) {
	const delay = 20 * time.Millisecond // of a notification
	for name, c := range map[string]struct {
		passes, owners int
		attempts       bool // a third process tries all the time
		readers        bool // a writer joins
	}{
		"one pass": {passes: 1, owners: 5}, "three passes": {passes: 3, owners: 5},
		"one owner":                {passes: 1, owners: 1},
		"beside attempts":          {passes: 1, owners: 5, attempts: true},
		"one owner, beside others": {passes: 3, owners: 1, attempts: true},
		"readers":                  {passes: 2, owners: 5, readers: true},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			b.Cluster.Link("ours").Delay(delay, delay)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := &overtaking{lock: b.Mutex(
				t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, c.passes))}
			theirs := recipes.InterProcessLock(b.Mutex(t, b.Other, "/lock"))
			together := 1
			if c.readers {
				caching := recipes.WithCaching(locktest.LongIdle, c.passes)
				o.lock = locktest.ReadWriteLock(t, b.Ours, caching).ReadLock()
				theirs = locktest.ReadWriteLock(t, b.Other).WriteLock()
				together = c.owners
			}
			o.begin(ctx, c.owners)
			if c.attempts {
				third := locktest.ConnectThrough(t, b.Cluster, "third")
				lock := b.Mutex(t, third, "/lock", recipes.WithNames("__other__"))
				go func() {
					for ctx.Err() == nil {
						tried, cancel := context.WithTimeout(ctx, useTakes)
						_ = recipes.Do(tried, lock, locktest.Nothing)
						cancel()
						time.Sleep(7 * useTakes)
					}
				}()
			}
			worst := 0
			for range 20 {
				time.Sleep(177 * time.Millisecond)
				joined := time.Now() // without a delay on its link
				err := recipes.Do(ctx, theirs, locktest.Nothing)
				require.NoError(t, err)
				worst = max(worst, o.between(joined, time.Now()))
			}
			cancel()
			time.Sleep(time.Second)
			// The one that holds it as the notification comes is none that overtakes.
			atMost := together*int((delay+2*useTakes)/useTakes) + c.passes
			require.LessOrEqual(t, worst, atMost)
			require.Greater(t, worst, c.passes, "it is no race")
		})
	}
}
