package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/otelrecipes"
	"github.com/zkrecipes/recipes/zktest"
)

// scrape returns what Prometheus gets.
func scrape(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(body)
}

// namesIn returns the names of the samples in a scrape.
func namesIn(text string) []string {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			found[line[:strings.IndexAny(line, "{ ")]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// order posts an order of a customer, by its name as a URL has it.
func order(t *testing.T, h http.Handler, customer string) *http.Response {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(
		t.Context(), http.MethodPost, "/customers/"+customer+"/orders", nil,
	))
	return answer.Result()
}

// everything makes all happen that is counted, until seen says so.
func everything(t *testing.T, observer *otelrecipes.Observer, seen func() bool) {
	t.Helper()
	ctx := t.Context()
	cluster := zktest.Start(t)
	client, err := recipes.Connect(ctx, cluster.ConnectString(), sessionTimeout,
		recipes.WithClientObserver(observer.Session))
	require.NoError(t, err)
	s := service{client, observer.Lock}.handler(http.NotFoundHandler())
	require.Equal(t, http.StatusNoContent, order(t, s, "ann").StatusCode)
	mutex, err := recipes.NewInterProcessMutex(
		client, "/mine/1", recipes.WithObserver(observer.Lock),
	)
	require.NoError(t, err)
	owner, other := recipes.WithOwner(t.Context()), recipes.WithOwner(t.Context())
	require.NoError(t, mutex.Acquire(owner))
	held, err := mutex.AcquireTimeout(other, 10*time.Millisecond)
	require.NoError(t, err)
	require.False(t, held)
	cluster.ExpireSession(client.SessionID())
	<-mutex.Hold(owner).Lost()
	// Observed as an election's candidate is.
	for _, kind := range []recipes.EventKind{
		recipes.EventQueued, recipes.EventAcquired,
	} {
		observer.Lock(ctx, recipes.Event{
			Kind: kind, Recipe: "leader selector", Path: "/election", Node: "/election/n",
		})
	}
	open, err := recipes.Connect(ctx, cluster.ConnectString(), sessionTimeout,
		recipes.WithClientObserver(observer.Session))
	require.NoError(t, err)
	t.Cleanup(open.Close)
	lasting, err := recipes.NewInterProcessMutex(
		open, "/mine/2", recipes.WithObserver(observer.Lock),
	)
	require.NoError(t, err)
	require.NoError(t, lasting.Acquire(ctx))
	client.Close()
	require.Eventually(t, seen, time.Minute, 10*time.Millisecond)
}

// scrapeOfAll returns what Prometheus gets when everything has happened.
func scrapeOfAll(t *testing.T) string {
	t.Helper()
	observer, metrics, err := newTelemetry()
	require.NoError(t, err)
	server := httptest.NewServer(metrics)
	defer server.Close()
	everything(t, observer, func() bool {
		text := scrape(t, server.URL)
		return strings.Contains(text, "losses_total{") &&
			strings.Contains(text, `hold_duration_seconds_count{name="customers"`) &&
			strings.Contains(text, `state="closed"`)
	})
	return scrape(t, server.URL)
}

// The example's endpoint has all that the package's doc lists, and the dashboard asks for
// nothing else.
func TestScrape(t *testing.T) {
	text := scrapeOfAll(t)
	names := namesIn(text)
	require.Equal(t, []string{
		"target_info",
		"zookeeper_leader",
		"zookeeper_lock_hold_age_seconds",
		"zookeeper_lock_hold_duration_seconds_bucket",
		"zookeeper_lock_hold_duration_seconds_count",
		"zookeeper_lock_hold_duration_seconds_sum",
		"zookeeper_lock_hold_remaining_seconds",
		"zookeeper_lock_holders",
		"zookeeper_lock_losses_total",
		"zookeeper_lock_timeouts_total",
		"zookeeper_lock_wait_age_seconds",
		"zookeeper_lock_wait_duration_seconds_bucket",
		"zookeeper_lock_wait_duration_seconds_count",
		"zookeeper_lock_wait_duration_seconds_sum",
		"zookeeper_lock_waiters",
		"zookeeper_session_connected",
		"zookeeper_session_disconnected_seconds",
		"zookeeper_session_transitions_total",
	}, names)
	for _, line := range []string{
		`zookeeper_leader{name="election",recipe="leader selector"} 1`,
		`zookeeper_lock_timeouts_total{name="mine",recipe="mutex"} 1`,
		`zookeeper_lock_holders{name="customers",recipe="mutex"} 0`,
		`zookeeper_lock_waiters{name="customers",recipe="mutex"} 0`,
		`zookeeper_session_connected 1`,
		`zookeeper_session_transitions_total{state="closed"} 1`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotContains(t, text, "token")

	asked := metricsOf(t)
	histogram := regexp.MustCompile("_(count|sum|bucket)$")
	for _, name := range names[1:] {
		require.Contains(t, asked, histogram.ReplaceAllString(name, "_bucket"),
			"the dashboard has it")
	}
}

// Each error has a status of its own, and nobody waits for longer than the bound.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		connect := func(link string) *recipes.Client {
			client, err := recipes.Connect(
				t.Context(), strings.Join(cluster.Names(), ","), sessionTimeout,
				recipes.WithDialer(cluster.Link(link).Dial),
			)
			require.NoError(t, err)
			return client
		}
		client, other := connect("ours"), connect("other")
		unobserved := func(context.Context, recipes.Event) {}
		s := service{client, unobserved}.handler(http.NotFoundHandler())
		ordered := func(customer string, status int) {
			t.Helper()
			began := time.Now()
			answer := order(t, s, customer)
			require.Equal(t, status, answer.StatusCode)
			require.Less(t, time.Since(began), patience+time.Second)
			again := status == http.StatusConflict ||
				status == http.StatusServiceUnavailable
			require.Equal(t, again, answer.Header.Get("Retry-After") != "")
		}

		lock, err := recipes.NewInterProcessMutex(other, "/customers/a%2Fb")
		require.NoError(t, err)
		require.NoError(t, lock.Acquire(t.Context()))
		ordered("a%2Fb", http.StatusConflict)
		ordered("a", http.StatusNoContent)
		ordered("%2e%2e", http.StatusBadRequest)
		ordered(strings.Repeat("a", longestName+1), http.StatusBadRequest)
		ordered("bob", http.StatusNotFound)
		require.NotContains(t, cluster.Znodes(), "/customers/bob")
		require.NoError(t, lock.Release(t.Context()))
		ordered("a%2Fb", http.StatusNoContent)
		cluster.Link("ours").Cut()
		ordered("a", http.StatusServiceUnavailable)

		client.Close()
		other.Close()
		time.Sleep(time.Minute) // what is under way ends by itself
	})
}

func TestTheServiceStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, zktest.Start(t).ConnectString(), "127.0.0.1:0") }()
	cancel()
	err := <-ended
	require.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
}

func TestLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	observe := both(func(context.Context, recipes.Event) {}, logged(log))
	observe(t.Context(), recipes.Event{Kind: recipes.EventAcquired, Recipe: "mutex"})
	observe(t.Context(), recipes.Event{
		Kind: recipes.EventLost, Recipe: "mutex", Path: "/a", Node: "/a/n",
		Elapsed: time.Second, Err: errors.New("gone"),
	})
	require.Equal(t, "level=WARN msg=\"lock lost\" recipe=mutex path=/a node=/a/n "+
		"elapsed=1s error=gone\n", b.String())
}
