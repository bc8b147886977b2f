package hold_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A slowBound is a line of the table in docs/guarantees.md#slow-answers: answers that
// take up to that share of the session timeout are no loss, however long they do.
type slowBound struct {
	name    string
	tick    bool // WithServerTick tells that a session lasts for ten ticks
	servers int
	commits bool // the servers' disks are slow, not the network
	busy    bool // the client writes a hundred times a second, besides
	share   float64
	// They take half as long until the lock was acquired, after an idle time: then it was
	// granted without waiting for a proof.
	rising bool
	bare   bool // on a *zk.Conn with WithSessionTimeout, not a Client
}

var slowBounds = []slowBound{
	{name: "slow network", servers: 1, share: 0.26},
	{name: "slow network, bare", servers: 1, share: 0.26, bare: true},
	{name: "slow network, three servers", servers: 3, share: 0.26},
	{name: "slow network, ticks told", servers: 1, share: 0.37, tick: true},
	{
		name:    "slow network, ticks told, three servers",
		servers: 3, share: 0.37, tick: true,
	},
	{name: "slow network, busy", servers: 3, share: 0.26, busy: true},
	{
		name:    "slow network, busy, ticks told",
		servers: 1, share: 0.37, tick: true, busy: true,
	},
	{name: "slow commits", servers: 1, share: 0.26, commits: true},
	{name: "slow commits, three servers", servers: 3, share: 0.26, commits: true},
	{name: "slow commits, busy", servers: 3, share: 0.26, commits: true, busy: true},
	{
		name:    "slow commits, busy, ticks told",
		servers: 1, share: 0.37, tick: true, commits: true, busy: true,
	},
	{name: "slower from then on", servers: 3, share: 0.14, rising: true},
	{
		name:    "slower from then on, ticks told",
		servers: 3, share: 0.25, tick: true, rising: true,
	},
}

// survives tells whether a hold survives answers that take that long. They do from the
// acquire on, or begin to only when it was held for T/2 and a phase of the heartbeat.
func (b slowBound) survives(
	t *testing.T, timeout time.Duration, phase int, slowBefore bool, share float64,
) (survived bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts := []recipes.Option{recipes.WithSessionTimeout(timeout)}
		if b.tick {
			opts = append(opts, recipes.WithServerTick(timeout/10))
		}
		cluster := zktest.Start(
			t, zktest.WithTick(timeout/10), zktest.WithServers(b.servers),
		)
		link := cluster.Link(holdersLink)
		servers := strings.Join(cluster.Names(), ",")
		var client recipes.Conn
		if b.bare {
			client = locktest.ConnectBare(t, link, servers, timeout)
		} else {
			client = locktest.Connect(t, link, servers, timeout)
		}
		slow := func(answer time.Duration) {
			if b.commits {
				cluster.SlowCommit(answer)
			} else {
				link.Delay(answer/2, answer/2)
			}
		}
		if b.busy {
			stop := writeOften(t, client)
			defer stop()
		}
		defer slow(0)
		answer := time.Duration(share * float64(timeout))
		switch {
		case b.rising:
			slow(answer / 2)
		case slowBefore:
			slow(answer)
		}
		time.Sleep(3*timeout + timeout*time.Duration(phase)/71)
		lock := locktest.NewMutex(t, client, "/lock", opts...)
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		hold := lock.Hold(ctx)
		if !b.rising {
			time.Sleep(timeout/2 + timeout*3/10*time.Duration(phase)/slowPhases)
		}
		slow(answer)
		time.Sleep(6 * timeout)
		survived = hold.Err() == nil
		if err := lock.Release(ctx); survived {
			require.NoError(t, err)
		}
	})
	return survived
}

const slowPhases = 3

// writeOften writes a hundred times a second, whether the write before was answered or
// not.
func writeOften(t *testing.T, conn recipes.Conn) (stop func()) {
	t.Helper()
	_, err := conn.Create("/other", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	stopped := make(chan struct{})
	ticker := time.NewTicker(time.Second / 100)
	go func() {
		for {
			select {
			case <-ticker.C:
				go func() { _, _ = conn.Set("/other", nil, -1) }()
			case <-stopped:
				ticker.Stop()
				return
			}
		}
	}()
	return func() { close(stopped) }
}

// docs/guarantees.md#slow-answers: answers that are no loss, and some that are longer,
// which are one.
func TestTheAnswersThatAreNoLoss(t *testing.T) {
	for _, b := range slowBounds {
		for _, timeout := range []time.Duration{4 * time.Second, 30 * time.Second} {
			if b.busy && timeout > 10*time.Second {
				continue // a minute of work
			}
			t.Run(fmt.Sprint(b.name, " ", timeout), func(t *testing.T) {
				lost := 0
				for phase := range slowPhases {
					for _, before := range []bool{true, false} {
						require.True(t, b.survives(t, timeout, phase, before, b.share),
							"phase %d, slow before: %v", phase, before)
					}
					if !b.survives(t, timeout, phase, false, b.share+0.05) {
						lost++
					}
				}
				// Else the syncs are fast; of longer sessions less than half is presumed
				// to be a tick.
				fast, known := !b.commits || b.busy, b.tick || timeout <= 20*time.Second
				if fast && known && !b.rising {
					require.NotZero(t, lost, "the bound is far from what is true")
				}
			})
		}
	}
}

// A lock that is acquired again and again, after idle times, by a client behind a slow
// network or of servers whose disks are slow: no release says that it was lost.
func TestReleasesBehindSlowAnswers(t *testing.T) {
	const timeout = 10 * time.Second
	for name, create := range map[string]func(
		recipes.Conn,
	) (recipes.InterProcessLock, error){
		"mutex": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
			return recipes.NewInterProcessMutex(conn, "/lock")
		},
		"cached": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
			return recipes.NewInterProcessMutex(conn, "/lock",
				recipes.WithCaching(timeout/5, 16))
		},
		"semaphore mutex": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
			return recipes.NewInterProcessSemaphoreMutex(conn, "/lock")
		},
	} {
		for _, share := range []float64{0.02, 0.1, 0.2, 0.26} {
			for _, commits := range []bool{false, true} {
				name := fmt.Sprintf("%s, %v, slow commits: %v", name, share, commits)
				locktest.RunVirtual(t, name, func(t *testing.T) {
					cluster := zktest.Start(t, zktest.WithServers(3))
					client := locktest.ConnectThrough(t, cluster, holdersLink)
					answer := time.Duration(share * float64(timeout))
					if link := cluster.Link(holdersLink); commits {
						cluster.SlowCommit(answer)
					} else {
						link.Delay(answer/2, answer/2)
						defer link.Delay(0, 0)
					}
					lock, err := create(client)
					require.NoError(t, err)
					for range 6 {
						ctx := locktest.Owner(t)
						require.NoError(t, lock.Acquire(ctx))
						time.Sleep(timeout / 10)
						require.NoError(t, lock.Release(ctx))
						time.Sleep(timeout * 3 / 2)
					}
				})
			}
		}
	}
}

// Whoever is paged finds in the log that answers were slow, before a hold is lost by it.
func TestSlowAnswersAreInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, holdersLink)
		var log bytes.Buffer
		lock := locktest.NewMutex(t, client, "/lock",
			recipes.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		time.Sleep(time.Minute)
		require.Empty(t, log.String())
		link := cluster.Link(holdersLink)
		link.Delay(time.Second, time.Second)
		time.Sleep(150 * time.Second)
		require.NoError(t, lock.Hold(ctx).Err())
		link.Delay(0, 0)
		time.Sleep(time.Minute)
		require.NoError(t, lock.Release(ctx))
		require.Equal(t, 3, strings.Count(log.String(), "level=WARN "+
			"msg=\"zookeeper lock: answers are slow, holds may be lost\" "+
			"answer=2s timeout=10s lost_from=2.6s"),
			log.String())
	})
}

// A log handler that does not return from the warning that answers are slow, once a
// minute, stops no heartbeat. Some took a sync along: after twenty, each hold was lost.
func TestAHandlerThatHangsStopsNoHeartbeat(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		end := make(chan struct{})
		defer close(end)
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithLogger(
			slog.New(hangingHandler{slog.DiscardHandler, end})))
		const delay = 800 * time.Millisecond // each way, of a session timeout of 10 s
		b.Cluster.Link("ours").Delay(delay, delay)
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		time.Sleep(3 * time.Hour)
		require.NoError(t, lock.Hold(ctx).Err())
		require.NoError(t, lock.Release(ctx))
	})
}
