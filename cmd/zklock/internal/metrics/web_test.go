package metrics_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/go-zookeeper/zk"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/cmd/zklock/internal/metrics"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/serve/web"
)

// get sends a request with headers, "Name: value", and returns the answer.
func (s *scene) get(method, path string, headers ...string) (int, string, http.Header) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, nil)
	require.NoError(s, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
		if name == "Host" {
			request.Host = value
		}
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	return answer.StatusCode, string(body), answer.Header
}

func TestWhoIsLetIn(t *testing.T) {
	s := newScene(t, web.Access{Hosts: []string{"locks.example.com"}})
	own := strings.TrimPrefix(s.url, "http://")
	_, port, _ := strings.Cut(own, ":")
	for name, c := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"as it is":              {"GET", nil, 200},
		"head":                  {"HEAD", nil, 200},
		"another method":        {"POST", nil, 405},
		"a name that was given": {"GET", []string{"Host: Locks.Example.com:8632"}, 200},
		"localhost":             {"GET", []string{"Host: localhost:" + port}, 200},
		"rebound":               {"GET", []string{"Host: evil.example.com"}, 421},
		"rebound, a part":       {"GET", []string{"Host: evil.locks.example.com"}, 421},
		"no host":               {"GET", []string{"Host: :1"}, 421},
		"its own page":          {"GET", []string{"Origin: http://" + own}, 200},
		"another page":          {"GET", []string{"Origin: http://evil.example"}, 403},
		"another port":          {"GET", []string{"Origin: http://127.0.0.1:1"}, 403},
		"another scheme":        {"GET", []string{"Origin: https://" + own}, 403},
		"no origin of its own":  {"GET", []string{"Origin: null"}, 403},
		"a frame of another": {
			"GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403,
		},
		"another port of the host": {
			"GET", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"}, 403,
		},
		"a link to it": {
			"GET",
			[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"},
			200,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{
				"/", "/api/locks", "/metrics", "/static/live.js",
			} {
				code, _, header := s.get(c.method, path, c.headers...)
				require.Equal(t, c.want, code, path)
				policy := header.Get("Content-Security-Policy")
				for _, want := range []string{
					"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'",
					"form-action 'self'", "script-src 'self';", "style-src 'self';",
				} {
					require.Contains(t, policy, want)
				}
				require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
			}
		})
	}
}

func TestTheToken(t *testing.T) {
	s := newScene(t, web.Access{Token: "correct horse battery"})
	for _, path := range []string{
		"/", "/api/locks", "/api/events", "/metrics", "/static/x",
	} {
		code, body, header := s.get("GET", path)
		require.Equal(t, 401, code, path)
		require.NotContains(t, body, "horse")
		require.Contains(t, header.Get("WWW-Authenticate"), "Basic ")
		code, _, _ = s.get("GET", path+"?token=correct+horse+battery")
		require.Equal(t, 401, code, "never in a URL")
	}
	code, _, header := s.get("GET", "/", "Authorization: Bearer correct horse battery")
	require.Equal(t, 200, code)
	require.Empty(t, header.Get("Set-Cookie"))
	code, _, _ = s.get("GET", "/", "Authorization: Bearer wrong")
	require.Equal(t, 401, code)
	code, _, header = s.get("GET", "/",
		"Authorization: Basic YW55Ym9keTpjb3JyZWN0IGhvcnNlIGJhdHRlcnk=")
	require.Equal(t, 200, code)
	cookie := header.Get("Set-Cookie")
	require.Contains(t, cookie, "HttpOnly")
	require.Contains(t, cookie, "SameSite=Strict")
	require.NotContains(t, cookie, "horse")
	cookie, _, _ = strings.Cut(cookie, ";")
	code, _, _ = s.get("GET", "/", "Cookie: "+cookie)
	require.Equal(t, 200, code)
	code, _, _ = s.get("GET", "/", "Cookie: zklock=")
	require.Equal(t, 401, code)
}

func TestTheAPI(t *testing.T) {
	s := populated(t)
	_, body, header := s.get("GET", "/api/locks")
	require.Equal(t, "application/json; charset=utf-8", header.Get("Content-Type"))
	var state survey.State
	require.NoError(t, json.Unmarshal([]byte(body), &state))
	require.Len(t, state.Locks, 3)
	require.Equal(t, survey.Ownerless, state.Findings[0].Kind)
	_, body, _ = s.get("GET", "/api/locks?path=/locks/report")
	var one struct {
		Lock     survey.Lock
		Left     []survey.Stay
		Findings []survey.Finding
	}
	require.NoError(t, json.Unmarshal([]byte(body), &one))
	require.Equal(t, "host-1 (pid 4711, report)", one.Lock.Queue[0].Data)
	require.Equal(t, "holds", one.Lock.Queue[0].State)
	for _, path := range []string{"/api/locks", "/api/locks?path=/locks/report"} {
		_, body, _ = s.get("GET", path)
		require.NotContains(t, body, "null", "a list may be empty: %s", path)
	}
	code, _, _ := s.get("GET", "/api/locks?path=/nowhere")
	require.Equal(t, 404, code)
	code, _, _ = s.get("GET", "/lock?path=/nowhere")
	require.Equal(t, 404, code)
}

// An event of a stream.
type event struct{ name, data string }

func (s *scene) follow(path string) <-chan event {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), "GET", s.url+path, nil)
	require.NoError(s, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s, err)
	require.Equal(s, 200, answer.StatusCode)
	events := make(chan event, 100)
	go func() {
		defer answer.Body.Close()
		defer close(events)
		var e event
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "data":
				e.data = value
				events <- e
			}
		}
	}()
	return events
}

func TestTheEvents(t *testing.T) {
	s := populated(t)
	all, one := s.follow("/api/events"), s.follow("/api/events?path=/locks/deploy")
	require.Equal(t, "state", (<-all).name)
	require.Equal(t, "state", (<-one).name)
	head := s.survey.State().Locks[2].Queue[0].Node
	require.NoError(t, s.client.Delete(head, -1))
	next := func(events <-chan event) (e event) {
		for e = range events {
			if e.name != "state" {
				return e
			}
		}
		t.Fatal("it has ended")
		return e
	}
	granted, left := next(all), next(all)
	require.Equal(t, "granted", granted.name)
	var who survey.Event
	require.NoError(t, json.Unmarshal([]byte(granted.data), &who))
	require.Equal(t, "host-2 (pid 1204, report)", who.Who.Data)
	require.Equal(t, "/locks/report", who.Path)
	require.Equal(t, "left", left.name)
	s.join("/locks/deploy", "ci-6")
	require.NoError(t, s.client.Delete(s.survey.State().Locks[1].Queue[0].Node, -1))
	require.Contains(t, next(one).data, "/locks/deploy")
}

// More viewers than there may be are turned away, and one who leaves makes room.
func TestTooManyViewers(t *testing.T) {
	s := newScene(t, web.Access{})
	ctx, leave := context.WithCancel(t.Context())
	for range 100 {
		request, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/events", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, 200, answer.StatusCode)
	}
	code, _, header := s.get("GET", "/api/events")
	require.Equal(t, 503, code)
	require.Equal(t, "10", header.Get("Retry-After"))
	leave()
	s.until(func() bool {
		request, err := http.NewRequestWithContext(t.Context(), "GET",
			s.url+"/api/events", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		return answer.StatusCode == 200
	})
}

const report = `{path="/locks/report",recipe="mutex"}`

// valueOf is what a page of metrics says of one of them; 0 if it does not name it.
func valueOf(t *testing.T, page, series string) int {
	t.Helper()
	_, rest, named := strings.Cut(page, "\n"+series+" ")
	if !named {
		return 0
	}
	text, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.Atoi(text)
	require.NoError(t, err)
	return value
}

func TestTheMetrics(t *testing.T) {
	s := populated(t)
	s.join("/locks/\u202e\"", "x")
	s.knows(8)
	// The first holder's grant counts as well if it came after the walk.
	_, body, _ := s.get("GET", "/metrics")
	handovers := valueOf(t, body, "zklock_handovers_total"+report)
	waited := valueOf(t, body, "zklock_waited_seconds_count"+report)
	require.NoError(t, s.client.Delete(s.survey.State().Locks[2].Queue[0].Node, -1))
	s.knows(7)
	_, body, _ = s.get("GET", "/metrics")
	require.Equal(t, handovers+1, valueOf(t, body, "zklock_handovers_total"+report))
	require.Equal(t, waited+1, valueOf(t, body, "zklock_waited_seconds_count"+report))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err, body)
	for _, want := range []string{
		"zklock_holders" + report + " 1",
		"zklock_waiters" + report + " 1",
		`zklock_findings{kind="ownerless"} 1`, `zklock_state_age_seconds 0`,
		"zklock_held_seconds_count" + report + " 1",
		`zklock_holders{path="/locks/\\u202e\"",recipe="mutex"} 1`,
		`zklock_requests_total{operation="list"}`,
	} {
		require.Contains(t, body, want)
	}
	require.Contains(t, families, "zklock_oldest_hold_seconds")
}

// However many paths there are, few have a label, and whoever has one keeps it. The roots
// always have.
func TestFewPathsHaveLabels(t *testing.T) {
	const most = 3
	m := metrics.New(most, []string{"/root"})
	m.Seen(survey.Event{Path: "/\xff is no UTF-8", Recipe: "mutex"})
	for i := range 100 {
		for _, path := range []string{"/first", fmt.Sprintf("/stranger/%d", i), "/root"} {
			m.Seen(survey.Event{Kind: survey.Granted, Path: path, Recipe: "mutex"})
		}
	}
	registry := prometheus.NewPedanticRegistry()
	m.Handler(newScene(t, web.Access{}).survey, slog.New(slog.DiscardHandler))
	registry.MustRegister(m)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	n, err := testutil.GatherAndCount(registry, "zklock_handovers_total")
	require.NoError(t, err)
	require.LessOrEqual(t, n, most+2)
	families, err := registry.Gather()
	require.NoError(t, err)
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool {
		return f.GetName() == "zklock_handovers_total"
	})
	paths := map[string]float64{}
	for _, metric := range families[at].GetMetric() {
		paths[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
	}
	require.InDelta(t, 100, paths["/first"], 0)
	require.InDelta(t, 100, paths["/root"], 0)
	require.InDelta(t, 98, paths["other"], 1)
}

// Registrations are counted by the directory that they are in. Those in a directory
// without a label are counted together.
func TestTheMetricOfRegistrations(t *testing.T) {
	s := newScene(t, web.Access{})
	for _, path := range []string{"/a", "/b", "/c", "/c/d"} {
		_, err := s.client.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	for _, path := range []string{"/a/1", "/a/2", "/b/1", "/c/1", "/c/d/1", "/top"} {
		_, err := s.client.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	s.until(func() bool { return len(s.survey.State().Registrations) == 6 })
	m := metrics.New(1, []string{"/"})
	_ = m.Handler(s.survey, slog.New(slog.DiscardHandler))
	requireInA := func(n int) {
		want := fmt.Sprintf(`
# HELP zklock_registrations Ephemeral znodes that register something, by their parent.
# TYPE zklock_registrations gauge
zklock_registrations{path="/"} 1
zklock_registrations{path="/a"} %d
zklock_registrations{path="other"} 3
`, n)
		require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(want),
			"zklock_registrations"))
	}
	requireInA(2)
	require.NoError(t, s.client.Delete("/a/1", -1))
	require.NoError(t, s.client.Delete("/a/2", -1))
	s.until(func() bool { return len(s.survey.State().Registrations) == 4 })
	requireInA(0)
}

// The names and units are as Prometheus' conventions have them.
func TestTheMetricsAreNamedWell(t *testing.T) {
	s := populated(t)
	m := metrics.New(10, nil)
	_ = m.Handler(s.survey, slog.New(slog.DiscardHandler))
	problems, err := testutil.CollectAndLint(m)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// What is not meant to be read is not read.
func TestNothingElseIsServed(t *testing.T) {
	s := newScene(t, web.Access{})
	for _, path := range []string{"/nowhere", "/static/../web.go", "/api/", "/lock/x"} {
		code, _, _ := s.get("GET", path)
		require.Equal(t, 404, code, path)
	}
	code, _, _ := s.get("GET", "/", "X: "+strings.Repeat("x", 2<<20))
	require.Equal(t, 431, code)
}

var aMetric = regexp.MustCompile(`\bzklock_\w+`)

// The dashboard and the alerts ask for metrics that there are.
func TestWhatIsAskedForIsThere(t *testing.T) {
	s := populated(t)
	require.NoError(t, s.client.Delete(s.survey.State().Locks[2].Queue[0].Node, -1))
	s.knows(6)
	_, err := s.client.Create("/registered", nil, zk.FlagEphemeral,
		zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	s.until(func() bool { return len(s.survey.State().Registrations) == 1 })
	_, body, _ := s.get("GET", "/metrics")
	for _, file := range []string{"dashboard-zklock.json", "alerts-zklock.yml"} {
		text, err := os.ReadFile("../../../../otelrecipes/example/" + file)
		require.NoError(t, err)
		asked := aMetric.FindAllString(string(text), -1)
		require.NotEmpty(t, asked)
		for _, name := range asked {
			require.Contains(t, body, "\n"+name, "%s asks for it", file)
		}
	}
}

// Registrations are on the page and in the JSON, and the filter finds them.
func TestTheRegistrations(t *testing.T) {
	s := newScene(t, web.Access{})
	_, err := s.client.Create("/instances", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = s.client.Create("/instances/one", []byte("10.0.0.1:80 <b>"),
		zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	s.until(func() bool { return len(s.survey.State().Registrations) == 1 })
	session := fmt.Sprintf("0x%x", uint64(s.client.SessionID()))
	for path, want := range map[string]string{
		"/":               "10.0.0.1:80 &lt;b&gt;",
		"/?q=10.0.0.1":    "<code>" + session + "</code>",
		"/?q=INSTANCES":   "/instances/one",
		"/?q=" + session:  "/instances/one",
		"/api/locks":      `"path": "/instances/one"`,
		"/?q=nothing-has": "No lock has",
		"/metrics":        `zklock_registrations{path="/instances"} 1`,
	} {
		status, body, _ := s.get(http.MethodGet, path)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, want, path)
	}
	_, body, _ := s.get(http.MethodGet, "/?q=nothing-has")
	require.NotContains(t, body, "/instances/one")
}

// The addresses of sessions are on the page and in the JSON, and the filter finds them;
// but nowhere unless they are asked for.
func TestTheAddresses(t *testing.T) {
	for name, change := range map[string]func(s *scene, c *survey.Config){
		"off": func(*scene, *survey.Config) {},
		"on": func(s *scene, c *survey.Config) {
			c.Addresses = &survey.Addresses{
				Servers: s.cluster.Addrs(),
				Dial: func(ctx context.Context, server string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "tcp", server)
				},
				Silent: func(_ string, err error) { require.NoError(s, err) },
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, web.Access{}, change)
			s.join("/lock", "x")
			_, err := s.client.Create("/registered", nil, zk.FlagEphemeral,
				zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			s.knows(1)
			s.until(func() bool {
				state := s.survey.State()
				return len(state.Registrations) == 1 &&
					(name == "off" || state.Locks[0].Queue[0].Address != "")
			})
			address := cmp.Or(s.survey.State().Locks[0].Queue[0].Address, "127.0.0.1:")
			for path, times := range map[string]int{
				"/": 1, "/lock?path=/lock": 1, "/api/locks": 2,
				"/api/locks?path=/lock": 1,
			} {
				if name == "off" {
					times = 0
				}
				s.until(func() bool { // a page may be of a moment ago
					_, body, _ := s.get(http.MethodGet, path)
					return strings.Count(body, address) == times
				})
			}
			_, body, _ := s.get(http.MethodGet, "/?q="+address)
			require.Equal(t, name == "on", strings.Contains(body, "/lock?path="))
		})
	}
}

// A deadlock is on the page of each of its locks, and marks each in the list.
func TestADeadlockIsOnThePageOfEachLock(t *testing.T) {
	s := newScene(t, web.Access{})
	first, second := s.client, s.connect()
	for _, one := range []struct {
		client *recipes.Client
		path   string
	}{{first, "/a"}, {second, "/b"}, {first, "/b"}, {second, "/a"}} {
		s.client = one.client
		s.join(one.path, "x")
	}
	s.until(func() bool { return len(s.survey.State().Findings) == 1 })
	for _, path := range []string{"/a", "/b"} {
		s.until(func() bool { // a page may be of a moment ago
			_, body, _ := s.get(http.MethodGet, "/lock?path="+path)
			return strings.Contains(body, "deadlock?")
		})
	}
	_, body, _ := s.get(http.MethodGet, "/")
	require.Equal(t, 2, strings.Count(body, `<tr class="bad">`))
}
