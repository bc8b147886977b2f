package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/serve/web"
)

// through is the address of a proxy of the site, which lets through what pass returns
// true for, once that returns.
func (s *scene) through(pass func(w http.ResponseWriter, r *http.Request) bool) string {
	s.Helper()
	to, err := url.Parse(s.url)
	require.NoError(s, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if pass(w, r) {
				proxy.ServeHTTP(w, r)
			}
		}))
	s.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// A page whose events are refused, as by a proxy whose zklock is being restarted, or that
// falls silent without a word, goes on once they come again.
func TestEventsThatStop(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "nobody is behind this proxy", http.StatusBadGateway)
		},
		"silent": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush() // else it is over
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, web.Access{})
			var stopped atomic.Bool
			url := s.through(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/api/events" || stopped.Swap(true) {
					return true
				}
				stop(w, r)
				return false
			})
			ctx := s.browser()
			s.do(ctx, chromedp.Navigate(url))
			s.until(stopped.Load)
			s.join("/locks/new", "host-9")
			s.sees(ctx, "host-9")
		})
	}
}

// A page that was asked for, and never came, is asked for again.
func TestAPageThatDoesNotCome(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.Access{})
	var asked atomic.Int64
	url := s.through(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/" && asked.Add(1) == 2 { // the first refresh
			<-r.Context().Done()
			return false
		}
		return true
	})
	ctx := s.browser()
	s.do(ctx, chromedp.Navigate(url))
	s.until(func() bool { return asked.Load() > 1 })
	s.join("/locks/new", "host-9")
	s.sees(ctx, "host-9")
}
