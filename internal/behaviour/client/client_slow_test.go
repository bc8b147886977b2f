package client_test

import (
	"context"
	"fmt"
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

// A new session is a commit. Where that takes longer than a server has at first, it has
// more at the next attempts: Connect succeeds, and so does the client after an expiry.
func TestASessionOnSlowDisks(t *testing.T) {
	for _, timeout := range []time.Duration{
		4 * time.Second, 10 * time.Second, 30 * time.Second,
	} {
		for _, share := range []float64{0.25, 0.35, 0.5, 0.6} {
			for _, servers := range []int{1, 3} {
				name := fmt.Sprint(timeout, " ", share, " ", servers)
				locktest.RunVirtual(t, name, func(t *testing.T) {
					commit := time.Duration(share * float64(timeout))
					cluster := zktest.Start(t, zktest.WithServers(servers),
						zktest.WithSlowCommit(commit))
					ctx, cancel := context.WithTimeout(
						t.Context(), time.Duration(servers)*6*timeout)
					defer cancel()
					client, err := recipes.Connect(
						ctx, strings.Join(cluster.Names(), ","), timeout,
						recipes.WithDialer(cluster.Link("client").Dial))
					require.NoError(t, err)
					defer client.Close()

					session := client.SessionID()
					require.True(t, cluster.ExpireSession(session))
					time.Sleep(time.Duration(servers) * 6 * timeout)
					require.Equal(t, zk.StateHasSession, client.State())
					require.NotEqual(t, session, client.SessionID())
				})
			}
		}
	}
}

// In the first round a frozen server costs a third of the session timeout, as ever: there
// is time to resume the session at another one.
func TestAFrozenServerCostsAThirdOfTheSession(t *testing.T) {
	for range 10 { // the order of the servers is random
		synctest.Test(t, func(t *testing.T) {
			const timeout = 12 * time.Second
			cluster := zktest.Start(t, zktest.WithServers(3))
			link := cluster.Link("client")
			client := locktest.Connect(
				t, link, strings.Join(cluster.Names(), ","), timeout)
			session := client.SessionID()
			time.Sleep(time.Minute)
			for _, s := range cluster.Servers() {
				if s != cluster.Leader() {
					s.Freeze()
					break
				}
			}
			link.Reset()
			began := time.Now()
			for client.State() != zk.StateHasSession || client.SessionID() == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			require.LessOrEqual(t, time.Since(began), timeout/3+100*time.Millisecond)
			require.Equal(t, session, client.SessionID())
			for _, s := range cluster.Servers() {
				s.Thaw()
			}
		})
	}
}
