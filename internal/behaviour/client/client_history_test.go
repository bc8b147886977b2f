package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	historyTimeout = 10 * time.Second
	historyOlder   = "level=ERROR msg=\"zookeeper: the ensemble's history is older " +
		"than what this client has seen: fencing tokens start over\""
)

// historyClient is a client of all servers by a link, with its log.
func historyClient(
	t *testing.T, cluster *zktest.Cluster, link *zktest.Link,
) (*recipes.Client, *hostileLog) {
	t.Helper()
	log := &hostileLog{}
	client, err := recipes.Connect(t.Context(), strings.Join(cluster.Names(), ","),
		historyTimeout, recipes.WithDialer(link.Dial),
		recipes.WithClientLogger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		time.Sleep(time.Minute)
	})
	return client, log
}

// An ensemble that comes back empty, or as it was before, gets its clients back once
// their sessions are over: who waited and who led rejoins. Tokens start over.
func TestAnEnsembleWithAnOlderHistory(t *testing.T) {
	for _, servers := range []int{1, 3} {
		for _, empty := range []bool{true, false} {
			locktest.RunVirtual(t, fmt.Sprint(servers, " empty: ", empty), func(
				t *testing.T,
			) {
				olderHistory(t, servers, empty)
			})
		}
	}
}

func olderHistory(t *testing.T, servers int, empty bool) {
	t.Helper()
	cluster := zktest.Start(t, zktest.WithServers(servers))
	client, log := historyClient(t, cluster, cluster.Link("client"))
	var shot zktest.Snapshot
	lock := locktest.NewMutex(t, client, "/lock")
	ctx := locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	hold := lock.Hold(ctx)
	if !empty {
		shot = cluster.Snapshot()
	}
	for range 2 { // each leader has a new epoch
		cluster.Leader().Stop()
		time.Sleep(historyTimeout / 10)
		for _, s := range cluster.Servers() {
			s.Start()
		}
		time.Sleep(historyTimeout / 2)
	}
	for range 20 {
		_, err := client.Create("/other", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}

	selector, err := recipes.NewLeaderSelector(client, "/election")
	require.NoError(t, err)
	var terms atomic.Int64
	campaign, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- selector.Run(campaign, func(ctx context.Context, _ *recipes.Hold) error {
			terms.Add(1)
			<-ctx.Done()
			return nil
		})
	}()
	waited := make(chan error, 1)
	waiter := locktest.Owner(t)
	go func() { waited <- lock.Acquire(waiter) }()
	time.Sleep(time.Minute)
	require.EqualValues(t, 1, terms.Load())

	cluster.Restore(shot)
	began, session := time.Now(), client.SessionID()
	time.Sleep(historyTimeout - time.Second)
	require.NotContains(t, log.String(), historyOlder, "it may be an election")
	<-hold.Lost()
	require.LessOrEqual(t, time.Since(began), historyTimeout)
	require.NoError(t, <-waited)
	require.LessOrEqual(t, time.Since(began), 3*historyTimeout)
	require.NotEqual(t, session, client.SessionID())
	require.Equal(t, 1, strings.Count(log.String(), historyOlder), log.String())
	time.Sleep(3 * historyTimeout)
	require.EqualValues(t, 2, terms.Load(), "it leads again")
	require.NoError(t, lock.Release(waiter))
	end()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Len(t, cluster.Sessions(), 1, "those that asked have ended")
}

// Servers that lag, are cut off, or have no quorum hang up as well, for as long as they
// please. The client keeps what it has seen, and its session if that lives on.
func TestALaggingServerIsNoOlderHistory(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(follower *zktest.Server, others []*zktest.Server)
		lives bool // the session
	}{
		"it lags": {func(follower *zktest.Server, _ []*zktest.Server) {
			follower.Lag(20 * historyTimeout)
		}, false},
		"it is cut off": {func(follower *zktest.Server, _ []*zktest.Server) {
			follower.Isolate()
		}, false},
		"there is no quorum": {func(_ *zktest.Server, others []*zktest.Server) {
			for _, s := range others {
				s.Stop()
			}
		}, true},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t, zktest.WithServers(3))
			var follower *zktest.Server
			var others []*zktest.Server
			for _, s := range cluster.Servers() {
				if follower == nil && !s.Leading() {
					follower = s
				} else {
					others = append(others, s)
				}
			}
			// The client reaches the others only at first, and then the follower.
			var cut, healed atomic.Bool
			link := cluster.Link("client")
			log := &hostileLog{}
			client, err := recipes.Connect(t.Context(),
				strings.Join(cluster.Names(), ","), historyTimeout,
				recipes.WithDialer(func(network, address string, d time.Duration) (
					net.Conn, error,
				) {
					here := address == follower.Addr()
					if !healed.Load() && cut.Load() != here {
						return nil, errors.New("no route")
					}
					return link.Dial(network, address, d)
				}),
				recipes.WithClientLogger(slog.New(slog.NewTextHandler(log, nil))))
			require.NoError(t, err)
			defer client.Close()
			session := client.SessionID()

			_, err = client.Create("/before", nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			c.begin(follower, others)
			_, _ = client.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
			cut.Store(true)
			link.Reset()
			time.Sleep(5 * historyTimeout)
			hung := strings.Count(log.String(), "the server hung up")
			require.Greater(t, hung, 3, log.String())

			healed.Store(true)
			follower.Lag(0)
			for _, s := range cluster.Servers() {
				s.Rejoin()
				s.Start()
			}
			time.Sleep(2 * historyTimeout)
			require.Equal(t, zk.StateHasSession, client.State())
			require.Equal(t, c.lives, session == client.SessionID(), log.String())
			require.NotContains(t, log.String(), historyOlder)
		})
	}
}
