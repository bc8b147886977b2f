package lock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A chronicle keeps the events of each acquisition, in the order in which they are told,
// and takes its time with each.
type chronicle struct {
	pause func() time.Duration
	lock  recipes.InterProcessLock // what is released meanwhile; nil: nothing is

	mu      sync.Mutex
	told    map[chapter]string // by the first letters of the kinds
	busy    map[chapter]bool
	granted map[uint64]bool
	clash   []string
}

func newChronicle(pause func() time.Duration) *chronicle {
	return &chronicle{
		pause: pause, told: map[chapter]string{}, busy: map[chapter]bool{},
		granted: map[uint64]bool{},
	}
}

// A chapter is one acquisition of one lock: of a multi lock each member has its own, and
// another one each time that the multi lock starts over, which may have the same znode if
// that is cached. Of leases that are acquired together each has one from EventAcquired
// on.
type chapter struct {
	id   uint64
	call int // whose acquisition it is: the same in all events
	path string
	node string
}

func (c *chronicle) observe(ctx context.Context, e recipes.Event) {
	of := chapter{id: e.ID, call: ctx.Value(callKey{}).(int), path: e.Path}
	switch e.Kind {
	case recipes.EventAcquired, recipes.EventReleased, recipes.EventLost:
		of.node = e.Node
	}
	letter := e.Kind.String()[:1]
	c.mu.Lock()
	c.told[of] += letter
	if c.busy[of] {
		c.clash = append(c.clash, fmt.Sprint(of, " ", c.told[of]))
	}
	c.busy[of] = true
	pause := c.pause()
	if c.lock != nil && e.Kind == recipes.EventAcquired && !c.granted[e.ID] {
		c.granted[e.ID] = true
		if hold := c.lock.Hold(ctx); hold != nil { // else it is a multi lock's member
			time.AfterFunc(c.pause(), func() { _ = hold.Release(ctx) })
		}
	}
	c.mu.Unlock()
	time.Sleep(pause)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy[of] = false
}

// What is told of an acquisition before it is one, and of one: (q)ueued, (t)imed out,
// (f)ailed; (a)cquired, (r)eleased, (l)ost.
var (
	waited = regexp.MustCompile(`^q*[tf]?$`)
	lasted = regexp.MustCompile(`^a(r|l|rl)?$`)
)

// In whatever happens, no step of an acquisition is told before the one that precedes it
// is, by any lock.
func TestTheStepsOfAnAcquisitionAreInOrder(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		ended := ""
		for seed := range uint64(2) {
			random := rand.New(rand.NewPCG(seed, 1))
			c := newChronicle(func() time.Duration {
				return time.Duration(random.Int64N(int64(2 * time.Second)))
			})
			lock := k.MustMake(t, b.Ours, "/lock", recipes.WithObserver(c.observe),
				recipes.WithMaxHold(8*time.Second), recipes.WithLossMargin(time.Second))
			if seed > 0 {
				c.lock = lock
			}
			var done []<-chan error
			calls := 0
			for range 3 {
				from := calls
				calls += 100
				script := rand.New(rand.NewPCG(seed, uint64(calls)))
				done = append(done, locktest.Start(func() error {
					come(locktest.Owner(t), lock, from, script)
					return nil
				}))
			}
			trouble(b, random, c)
			for _, d := range done {
				require.NoError(t, <-d)
			}
			time.Sleep(time.Minute)
			c.mu.Lock() // the last may have been told on another goroutine
			defer c.mu.Unlock()
			require.Empty(t, c.clash)
			for of, told := range c.told {
				if of.node == "" {
					require.Regexp(t, waited, told, "%v", of)
				} else {
					require.Regexp(t, lasted, told, "%v", of)
					ended += told
				}
			}
		}
		require.Contains(t, ended, "ar")
		require.Contains(t, ended, "al")
	})
}

// come is an owner who acquires and releases for a while; each acquisition is a call.
func come(
	owner context.Context, lock recipes.InterProcessLock, call int, random *rand.Rand,
) {
	some := func(most time.Duration) time.Duration {
		return time.Duration(random.Int64N(int64(most)))
	}
	for range 12 {
		call++
		ctx := context.WithValue(owner, callKey{}, call)
		wait := recipes.WaitAtMost(some(20 * time.Second))
		hold, err := recipes.Acquire(ctx, lock, wait)
		if err != nil {
			continue
		}
		time.Sleep(some(10 * time.Second))
		within, cancel := context.WithTimeout(ctx, some(2*time.Second))
		_ = hold.Release(within)
		cancel()
	}
}

// trouble cuts the connection, and ends sessions, for as long as that takes.
func trouble(b *locktest.Bubble, random *rand.Rand, c *chronicle) {
	for range 10 {
		c.mu.Lock()
		pause := time.Duration(random.Int64N(int64(15 * time.Second)))
		what := random.IntN(3)
		c.mu.Unlock()
		time.Sleep(pause)
		switch what {
		case 0:
			b.Cluster.ExpireSession(b.Ours.SessionID())
		case 1:
			b.Cluster.Link("ours").Stall(zktest.Both)
		case 2:
			b.Cluster.Link("ours").Reset()
		}
		time.Sleep(8 * time.Second)
		b.Cluster.Link("ours").Heal()
	}
}

// A loss that follows a release is told behind it, also where the observer takes long.
func TestALossIsToldBehindTheRelease(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		c := newChronicle(func() time.Duration { return time.Minute })
		lock := k.MustMake(t, b.Ours, "/lock", recipes.WithObserver(c.observe))
		ctx := context.WithValue(locktest.Owner(t), callKey{}, 1)
		require.NoError(t, lock.Acquire(ctx))
		time.Sleep(time.Minute)
		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(2 * time.Second)
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, lock.Release(within), context.DeadlineExceeded)
		time.Sleep(time.Minute)
		b.Cluster.Link("ours").Heal()
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Empty(t, c.clash)
		holds := 0
		for of, told := range c.told {
			if of.node != "" {
				require.Contains(t, []string{"arl", "al"}, told)
				holds++
			}
		}
		require.NotZero(t, holds)
	})
}

// The owner who queues would wait for itself.
func TestTheObserverOfAQueueingOwner(t *testing.T) {
	for name, opts := range map[string][]recipes.Option{
		"": nil, "cached": {recipes.WithCaching(locktest.LongIdle, 1)},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var lock *recipes.InterProcessMutex
			refused := make(chan error, 2)
			lock = b.Mutex(t, b.Ours, "/lock", append(opts, recipes.WithObserver(
				func(ctx context.Context, e recipes.Event) {
					if e.Kind == recipes.EventQueued {
						refused <- lock.Acquire(ctx)
					}
				}))...)
			held := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
			ctx := locktest.Owner(t)
			done := locktest.Start(func() error { return lock.Acquire(ctx) })
			require.ErrorContains(t, <-refused, "acquire /lock: the owner is queueing")
			held.Entered()
			held.Leave()
			require.NoError(t, <-done)
			require.NoError(t, lock.Release(ctx))
		})
	}
}

// A release in the middle of EventAcquired is told behind it, to all observers.
func TestAReleaseIsToldBehindTheGrant(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		for name, release := range map[string]func(
			ctx context.Context, lock recipes.InterProcessLock,
		) error{
			"by the observer": func(
				ctx context.Context, lock recipes.InterProcessLock,
			) error {
				return lock.Release(ctx)
			},
			"by another goroutine": func(
				ctx context.Context, lock recipes.InterProcessLock,
			) error {
				// Neither waits for the other.
				return <-locktest.Start(func() error { return lock.Release(ctx) })
			},
		} {
			var lock recipes.InterProcessLock
			var told locktest.Recorder
			ctx, err := locktest.Owner(t), recipes.ErrNotOwner
			lock = k.MustMake(t, b.Ours, "/lock", recipes.WithObserver(
				func(_ context.Context, e recipes.Event) {
					if e.Kind == recipes.EventAcquired && err != nil {
						err = release(ctx, lock)
					}
				}), recipes.WithObserver(told.Observe))
			require.NoError(t, lock.Acquire(ctx))
			if strings.HasPrefix(k.Name, "multi lock") { // no member has a record of it
				err = lock.Release(ctx)
			}
			require.NoError(t, err, name)
			require.False(t, lock.IsAcquiredInThisProcess(), name)
			steps := map[string][]recipes.EventKind{}
			for _, e := range told.All() {
				if e.Kind != recipes.EventQueued {
					steps[e.Node] = append(steps[e.Node], e.Kind)
				}
			}
			require.NotEmpty(t, steps)
			for _, kinds := range steps {
				require.Equal(t, []recipes.EventKind{
					recipes.EventAcquired, recipes.EventReleased,
				}, kinds, name)
			}
		}
	})
}

// A caller that releases what the observer still hears of does not wait for it, and the
// observer hears of one step at a time.
func TestAReleaseDoesNotWaitForTheObserverOfTheGrant(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := newChronicle(func() time.Duration { return time.Minute })
		s := locktest.NewSemaphore(t, b.Ours, "/s", 2, recipes.WithObserver(c.observe))
		lock := s.AsLock(2)
		ctx := context.WithValue(locktest.Owner(t), callKey{}, 1)
		done := locktest.Start(func() error { return lock.Acquire(ctx) })
		time.Sleep(90 * time.Second) // one minute for EventQueued
		began := time.Now()
		stranger := context.WithValue(locktest.Owner(t), callKey{}, 1)
		require.NoError(t, lock.Release(stranger))
		require.Less(t, time.Since(began), time.Second)
		require.NoError(t, <-done)
		require.Empty(t, c.clash)
		ended := 0
		for of, told := range c.told {
			if of.node != "" {
				require.Equal(t, "ar", told)
				ended++
			}
		}
		require.Equal(t, 2, ended)
	})
}

// What an observer ends has acquired nothing, of which no loss is told.
func TestNoLossOfWhatAnObserverHasEnded(t *testing.T) {
	for name, end := range ends {
		for at := range 2 {
			locktest.Run(t, fmt.Sprint(name, " at lease ", at+1), func(
				t *testing.T, b *locktest.Bubble,
			) {
				var told locktest.Recorder
				granted := 0
				s := locktest.NewSemaphore(t, b.Ours, "/s", 2,
					recipes.WithObserver(told.Observe), recipes.WithObserver(
						func(ctx context.Context, e recipes.Event) {
							if e.Kind != recipes.EventAcquired {
								return
							}
							if granted++; granted > at {
								b.Cluster.Link("ours").Cut() // so that nothing is deleted
								end(ctx, e)
							}
						}))
				requireEnded(t, name, func() { _, _ = s.AcquireN(t.Context(), 2) })
				time.Sleep(time.Minute)
				kinds := told.Kinds()
				require.Equal(t, recipes.EventAcquired, kinds[len(kinds)-1])
				b.Cluster.Link("ours").Heal()
			})
		}
	}
}
