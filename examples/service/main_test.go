package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A host is one of two, in virtual time.
type host struct {
	*service
	link  *zktest.Link
	stop  context.CancelFunc // as SIGTERM
	ended <-chan error
}

// startHost starts one whose work is that of the example, unless work is not nil.
func startHost(
	t *testing.T, cluster *zktest.Cluster, name string,
	work func(context.Context, *recipes.Hold) error,
) host {
	t.Helper()
	client := locktest.ConnectThrough(t, cluster, name)
	if work == nil {
		work = schedule(client)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &service{client: client, work: work, exit: func(int) { t.Error("exit") }}
	h := host{service: s, link: cluster.Link(name), stop: cancel}
	h.ended = locktest.Start(func() error { return s.campaign(ctx) })
	return h
}

// ready is what the probe answers.
func (h host) ready(t *testing.T, probe string) int {
	t.Helper()
	answer := httptest.NewRecorder()
	h.probes().ServeHTTP(answer, httptest.NewRequestWithContext(
		t.Context(), http.MethodGet, probe, nil))
	return answer.Code
}

func twoHosts(t *testing.T) (cluster *zktest.Cluster, first, second host) {
	t.Helper()
	cluster = zktest.Start(t)
	first = startHost(t, cluster, "first", nil)
	time.Sleep(time.Second)
	second = startHost(t, cluster, "second", nil)
	time.Sleep(time.Second)
	return cluster, first, second
}

func TestOneHostIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, first, second := twoHosts(t)
		require.Equal(t, http.StatusOK, first.ready(t, "/ready"))
		require.Equal(t, http.StatusServiceUnavailable, second.ready(t, "/ready"))
		require.Equal(t, http.StatusOK, second.ready(t, "/live"))
		first.stop()
		require.NoError(t, <-first.ended)
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, http.StatusServiceUnavailable, first.ready(t, "/ready"))
		require.Equal(t, http.StatusOK, second.ready(t, "/ready"), "not at once")
		second.stop()
		require.NoError(t, <-second.ended)
	})
}

// In an outage the leader is not ready before another one is, and comes back as a
// candidate.
func TestTheLeaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, first, second := twoHosts(t)
		first.link.Cut()
		for range 600 {
			time.Sleep(50 * time.Millisecond)
			require.False(t, first.ready(t, "/ready") == http.StatusOK &&
				second.ready(t, "/ready") == http.StatusOK, "both are ready")
			require.Equal(t, http.StatusOK, first.ready(t, "/live"))
		}
		require.Equal(t, http.StatusOK, second.ready(t, "/ready"))
		first.link.Heal()
		second.stop()
		require.NoError(t, <-second.ended)
		time.Sleep(5 * time.Second)
		require.Equal(t, http.StatusOK, first.ready(t, "/ready"))
		first.stop()
		require.NoError(t, <-first.ended)
	})
}

// Work that ignores its ctx ends with its process, before another host leads.
func TestWorkThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		deaf := make(chan struct{})
		first := startHost(t, cluster, "first",
			func(context.Context, *recipes.Hold) error { <-deaf; return nil })
		exited := make(chan struct{})
		first.exit = func(int) { close(exited) }
		time.Sleep(time.Second)
		second := startHost(t, cluster, "second", nil)
		time.Sleep(time.Second)
		first.link.Cut()
		<-exited
		require.Equal(t, http.StatusServiceUnavailable, second.ready(t, "/ready"))
		close(deaf)
		time.Sleep(30 * time.Second)
		require.Equal(t, http.StatusOK, second.ready(t, "/ready"))
		first.stop()
		second.stop()
		require.NoError(t, <-first.ended) // it was not ended here
		require.NoError(t, <-second.ended)
	})
}

// A candidate without probes would lead, and nobody would know.
func TestTheAddressOfTheProbesIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	err = run(t.Context(), zktest.Start(t).ConnectString(), taken.Addr().String())
	require.ErrorContains(t, err, "in use")
}

func TestTheCommandStops(t *testing.T) {
	cluster := zktest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := locktest.Start(func() error {
		return run(ctx, cluster.ConnectString(), "127.0.0.1:0")
	})
	locktest.Eventually(t, func() bool {
		return slices.Contains(cluster.Znodes(), tablePath)
	}, "it does not lead")
	cancel()
	require.NoError(t, locktest.Within(t, ended, "it does not stop"))
}
