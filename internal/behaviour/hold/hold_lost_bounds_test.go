package hold_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A lossBound is a line of the table in docs/guarantees.md#how-long-a-silence-may-last: a
// cut of that share of the session timeout
// is no loss, whenever it begins.
type lossBound struct {
	name  string
	held  float64 // for how long the lock was held before, in session timeouts
	wait  wait    // before it was held
	bare  bool    // on a *zk.Conn with WithSessionTimeout, not a Client
	tick  bool    // WithServerTick tells that a session lasts for ten ticks
	share float64
}

// A wait is how a lock was acquired.
type wait int

const (
	free     wait = iota // nobody was ahead
	next                 // behind the holder
	moved                // behind two, of whom the nearer one left: then as next
	surprise             // behind two, who left at the same time
)

var lossBounds = []lossBound{
	{"held for half a session timeout", 0.5, free, false, false, 0.52},
	{"held for half a session timeout, bare", 0.5, free, true, false, 0.52},
	{"held for half a session timeout, ticks told", 0.5, free, false, true, 0.56},
	{"just acquired after an idle time", 0, free, false, false, 0.28},
	{"just acquired after an idle time, bare", 0, free, true, false, 0.28},
	{"just acquired after an idle time, ticks told", 0, free, false, true, 0.46},
	{"just acquired as the next in line", 0, next, false, false, 0.52},
	{"just acquired, moved to the front", 0, moved, false, false, 0.52},
	{"just acquired, moved to the front, bare", 0, moved, true, false, 0.52},
	{"just acquired by surprise", 0, surprise, false, false, 0.28},
	{"just acquired by surprise, bare", 0, surprise, true, false, 0.28},
	{"just acquired by surprise, ticks told", 0, surprise, false, true, 0.46},
}

// cutPhases are the times at which a cut begins, over a few heartbeats and the first
// proof.
const cutPhases = 8

// survives tells whether a hold survives a silence of that share of the session timeout.
func (b lossBound) survives(
	t *testing.T, timeout time.Duration, phase int, share float64,
) (survived bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts := []recipes.Option{recipes.WithSessionTimeout(timeout)}
		if b.tick {
			opts = append(opts, recipes.WithServerTick(timeout/10))
		}
		cluster := zktest.Start(t, zktest.WithTick(timeout/10))
		link, addr := cluster.Link(holdersLink), cluster.Leader().Addr()
		var conn recipes.Conn
		if b.bare {
			conn = locktest.ConnectBare(t, link, addr, timeout)
		} else {
			conn = locktest.Connect(t, link, addr, timeout)
		}
		lock := locktest.NewMutex(t, conn, "/lock", opts...)
		time.Sleep(3*timeout + timeout*time.Duration(phase)/71) // the pings' phase, too
		ctx := locktest.Owner(t)
		b.acquire(ctx, t, cluster, lock, timeout)
		hold := lock.Hold(ctx)
		held := time.Duration(b.held * float64(timeout))
		time.Sleep(held + timeout*3/10*time.Duration(phase)/cutPhases)
		require.NoError(t, hold.Err())
		link.Stall(zktest.Both)
		time.Sleep(time.Duration(share * float64(timeout)))
		link.Heal()
		time.Sleep(timeout)
		survived = hold.Err() == nil
		_ = lock.Release(ctx)
	})
	return survived
}

// acquire acquires the lock as the bound's wait says. Those ahead are another session's.
func (b lossBound) acquire(
	ctx context.Context, t *testing.T, cluster *zktest.Cluster,
	lock *recipes.InterProcessMutex, timeout time.Duration,
) {
	t.Helper()
	others := locktest.ConnectThrough(t, cluster, "others")
	anybody := zk.WorldACL(zk.PermAll)
	var leave []any // the deletes of those ahead
	if b.wait != free {
		_, err := others.Create("/lock", nil, 0, anybody)
		require.NoError(t, err)
	}
	for range map[wait]int{next: 1, moved: 2, surprise: 2}[b.wait] {
		path, err := others.Create(
			"/lock/lock-", nil, zk.FlagEphemeralSequential, anybody,
		)
		require.NoError(t, err)
		leave = append(leave, &zk.DeleteRequest{Path: path, Version: -1})
	}
	acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
	for len(leave) > 0 {
		time.Sleep(3 * timeout)
		now := leave // all, or the last
		if leave = nil; b.wait == moved && len(now) > 1 {
			leave, now = now[:1], now[1:]
		}
		_, err := others.Multi(now...)
		require.NoError(t, err)
	}
	require.NoError(t, <-acquired)
}

// docs/guarantees.md#how-long-a-silence-may-last: the cuts that are no loss. They are
// silences: nothing gets through, and then what was on its way does. A reset connection
// is away for as long as the cut and the new dial, before which go-zookeeper waits for a
// second once it has tried all the servers that it knows.
func TestTheCutsThatAreNoLoss(t *testing.T) {
	for _, b := range lossBounds {
		timeouts := []time.Duration{
			time.Second, 10 * time.Second, 60 * time.Second,
		}
		if b.wait != free { // what a wait leaves behind does not depend on it so much
			timeouts = timeouts[1:2]
		}
		for _, timeout := range timeouts {
			t.Run(fmt.Sprint(b.name, " ", timeout), func(t *testing.T) {
				lost := 0
				for phase := range cutPhases {
					require.True(
						t, b.survives(t, timeout, phase, b.share), "phase %d", phase,
					)
					if !b.survives(t, timeout, phase, b.share+0.1) {
						lost++
					}
				}
				// Of longer ones less than half is presumed to be a tick; and a Client,
				// which gives a silent server up after 0.57 T, may be back in time.
				if timeout <= 20*time.Second && (!b.tick || b.held == 0) {
					require.NotZero(t, lost, "the bound is far from what is true")
				}
			})
		}
	}
}
