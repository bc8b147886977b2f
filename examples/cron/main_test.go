package main

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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

// hosts starts three of them, in virtual time, and returns what they ran when stop is
// called.
func hosts(
	t *testing.T, cluster *zktest.Cluster, every, work time.Duration,
) (stop func() []jobRun) {
	t.Helper()
	var (
		mu      sync.Mutex
		runs    []jobRun
		running sync.WaitGroup
	)
	job := func(ctx context.Context, host string, slot time.Time) error {
		r := jobRun{host: host, slot: slot, began: time.Now()}
		select {
		case <-time.After(work):
		case <-ctx.Done():
			time.Sleep(timeToStop) // as slow as it may be
			r.err = context.Cause(ctx)
		}
		r.end = time.Now()
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, r)
		return r.err
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, name := range []string{"1", "2", "3"} {
		h := host{name, locktest.ConnectThrough(t, cluster, name), every, job}
		running.Go(func() {
			if err := h.run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return func() []jobRun {
		cancel()
		running.Wait()
		return runs
	}
}

func TestEachSlotRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		stop := hosts(t, zktest.Start(t), time.Minute, time.Second)
		time.Sleep(time.Until(first.Add(9*time.Minute + 30*time.Second)))
		var ran []time.Time
		for _, r := range stop() {
			require.NoError(t, r.err)
			ran = append(ran, r.slot)
		}
		var slots []time.Time
		for i := range 10 {
			slots = append(slots, first.Add(time.Duration(i)*time.Minute))
		}
		require.Equal(t, slots, ran)
	})
}

// The host that does the job is cut off from ZooKeeper in the middle of it. It has
// stopped before another one begins, which does all of it.
func TestTheJobStopsBeforeAnotherHostBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		slot := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
		stop := hosts(t, cluster, time.Hour, time.Minute)
		time.Sleep(time.Until(slot.Add(10 * time.Second)))
		holder := holderOf(t, cluster)
		cluster.Link(holder).Cut()
		time.Sleep(5 * time.Minute)
		cluster.Link(holder).Heal()
		runs := stop()
		require.Len(t, runs, 2)
		cut, done := runs[0], runs[1]
		require.Equal(t, holder, cut.host)
		require.Error(t, cut.err)
		require.NoError(t, done.err)
		require.Equal(t, slot, done.slot)
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
