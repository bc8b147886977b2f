package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A jobRun is one run of the job.
type jobRun struct {
	host       string
	slot       time.Time
	began, end time.Time
	err        error
}

// A site is what some hosts run on, in virtual time.
type site struct {
	cluster *zktest.Cluster
	names   []string
	first   time.Time // the first slot
	every   time.Duration
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex // guards what follows
	runs []jobRun   // that have ended
}

// newSite starts three hosts whose job is as long as work says.
func newSite(t *testing.T, every, work time.Duration) *site {
	t.Helper()
	s := emptySite(t, 3, every)
	s.start(t, func(name string) job { return s.worker(name, work) })
	return s
}

// emptySite returns a site whose hosts have not started yet.
func emptySite(t *testing.T, hosts int, every time.Duration) *site {
	t.Helper()
	s := &site{
		cluster: zktest.Start(t), first: time.Now().UTC().Truncate(every).Add(every),
		every: every,
	}
	for i := range hosts {
		s.names = append(s.names, fmt.Sprint(i+1))
	}
	return s
}

// start runs the hosts until the end of the test, or [site.finish].
func (s *site) start(t *testing.T, jobOf func(name string) job) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	for _, name := range s.names {
		h := host{
			name: name, client: locktest.ConnectThrough(t, s.cluster, name),
			every: s.every, job: jobOf(name),
		}
		s.running.Go(func() {
			if err := h.run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// worker returns a job that takes as long as work says, and then all of timeToStop if it
// has to stop.
func (s *site) worker(name string, work time.Duration) job {
	return func(ctx context.Context, _ *recipes.Hold, slot time.Time) ([]any, error) {
		r := jobRun{host: name, slot: slot, began: time.Now()}
		select {
		case <-time.After(work):
		case <-ctx.Done():
			time.Sleep(timeToStop)
			r.err = context.Cause(ctx)
		}
		r.end = time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs = append(s.runs, r)
		return nil, r.err
	}
}

// links calls f with the link of each host.
func (s *site) links(f func(*zktest.Link)) {
	for _, name := range s.names {
		f(s.cluster.Link(name))
	}
}

// slots returns the first n slots.
func (s *site) slots(n int) (all []time.Time) {
	for i := range n {
		all = append(all, s.first.Add(time.Duration(i)*s.every))
	}
	return all
}

// finish stops the hosts shortly after the nth slot has begun, and returns the slots
// whose jobs have run, each without an error.
func (s *site) finish(t *testing.T, n int) (ran []time.Time) {
	t.Helper()
	last := s.first.Add(time.Duration(n-1) * s.every)
	time.Sleep(time.Until(last.Add(s.every / 2)))
	s.stop()
	s.running.Wait()
	for _, r := range s.runs {
		require.NoError(t, r.err)
		ran = append(ran, r.slot)
	}
	return ran
}

func TestEachSlotRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, time.Minute, time.Second)
		require.Equal(t, s.slots(10), s.finish(t, 10))
	})
}

// No host can reach ZooKeeper for 7 s, while slots of 2 s go by.
func TestSlotsOfAnOutageAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 2*time.Second, 100*time.Millisecond)
		time.Sleep(time.Until(s.first.Add(5 * time.Second)))
		s.links((*zktest.Link).Cut)
		time.Sleep(7 * time.Second)
		s.links((*zktest.Link).Heal)
		require.Equal(t, s.slots(16), s.finish(t, 16))
	})
}

// Of the slots in an outage that is too long the last ones are made up for, and no more
// than the example's first lines say.
func TestHowManySlotsAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, time.Minute, 100*time.Millisecond)
		time.Sleep(time.Until(s.first.Add(30 * time.Second)))
		s.links((*zktest.Link).Cut)
		time.Sleep(150 * time.Minute) // slots 1 to 150
		s.links((*zktest.Link).Heal)
		all := s.slots(161)
		made := all[150-madeUpFor:]
		require.Equal(t, append(all[:1:1], made...), s.finish(t, 161))
	})
}

// The host that does the job is cut off from ZooKeeper in the middle of it. It has
// stopped before another one begins, which does all of it.
func TestTheJobStopsBeforeAnotherHostBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, time.Hour, time.Minute)
		time.Sleep(time.Until(s.first.Add(10 * time.Second)))
		holder := holderOf(t, s.cluster)
		s.cluster.Link(holder).Cut()
		time.Sleep(5 * time.Minute)
		s.cluster.Link(holder).Heal()
		s.stop()
		s.running.Wait()
		require.Len(t, s.runs, 2)
		cut, done := s.runs[0], s.runs[1]
		require.Equal(t, holder, cut.host)
		require.Error(t, cut.err)
		require.NoError(t, done.err)
		require.Equal(t, s.first, done.slot)
		require.NotEqual(t, holder, done.host)
		require.False(t, done.began.Before(cut.end), "two hosts at once")
	})
}

// holderOf is the host that has the lock.
func holderOf(t *testing.T, cluster *zktest.Cluster) string {
	t.Helper()
	client := locktest.ConnectThrough(t, cluster, "looking")
	queue := locktest.Children(t, client, lockPath)
	require.NotEmpty(t, queue)
	name, _, err := client.Get(lockPath + "/" + queue[0])
	require.NoError(t, err)
	return string(name)
}

// A mark in the future would have all slots until then left out, in silence.
func TestAMarkInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, time.Minute, time.Second)
		time.Sleep(time.Until(s.first.Add(30 * time.Second)))
		client := locktest.ConnectThrough(t, s.cluster, "somebody")
		h := host{client: client, every: s.every}
		_, err := client.Set(markPath, markOf(time.Now().Add(90*time.Minute)), -1)
		require.NoError(t, err)
		_, err = h.next()
		require.ErrorContains(t, err, "is 1h30m0s in the future")
		_, err = client.Set(markPath, markOf(time.Now().Add(s.every)), -1)
		require.NoError(t, err)
		_, err = h.next()
		require.NoError(t, err, "the clocks of two hosts differ")
		s.stop()
		s.running.Wait()
	})
}

// Whoever may write the mark, or delete it, decides what is left out.
func TestTheMarkIsTheHosts(t *testing.T) {
	cluster := zktest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := host{name: "1", every: 10 * time.Millisecond, job: reportBy("1"), auth: "cron:x"}
	ended := locktest.Start(func() error {
		return h.connectAndRun(ctx, cluster.ConnectString())
	})
	locktest.Eventually(t, func() bool {
		return slices.Contains(cluster.Znodes(), markPath)
	}, "the host has not begun")
	stranger, err := recipes.Connect(ctx, cluster.ConnectString(), sessionTimeout)
	require.NoError(t, err)
	defer stranger.Close()
	_, err = stranger.Set(markPath, markOf(time.Now()), -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	cancel()
	require.NoError(t, locktest.Within(t, ended, "the host does not stop"))
}

func TestTheCommandStops(t *testing.T) {
	cluster := zktest.Start(t)
	t.Setenv("ZOOKEEPER_SERVERS", cluster.ConnectString())
	ctx, cancel := context.WithCancel(t.Context())
	ended := locktest.Start(func() error { return run(ctx, 10*time.Millisecond, 3) })
	locktest.Eventually(t, func() bool {
		return slices.Contains(cluster.Znodes(), markPath)
	}, "no host has begun")
	cancel()
	require.NoError(t, locktest.Within(t, ended, "the command does not stop"))
}
