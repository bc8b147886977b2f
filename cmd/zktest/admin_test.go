package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

var anyone = zk.WorldACL(zk.PermAll)

func hex(session int64) string { return fmt.Sprintf("%#x\n", uint64(session)) }

type silent struct{}

func (silent) Printf(string, ...any) {}

// connect returns a client that has a session.
func connect(t *testing.T, servers string) *zk.Conn {
	t.Helper()
	conn, _ := connectAnd(t, servers)
	return conn
}

// connectAnd also returns the states of the connection from then on.
func connectAnd(t *testing.T, servers string) (*zk.Conn, <-chan zk.State) {
	t.Helper()
	states := make(chan zk.State, 10_000)
	conn, _, err := zk.Connect(
		strings.Split(servers, ","), 20*time.Second, zk.WithLogger(silent{}),
		zk.WithEventCallback(func(e zk.Event) {
			if e.Type == zk.EventSession {
				select {
				case states <- e.State:
				default: // nobody reads that many
				}
			}
		}),
	)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	await(t, states, zk.StateHasSession)
	return conn, states
}

func await(t *testing.T, states <-chan zk.State, want zk.State) {
	t.Helper()
	for timeout := time.After(30 * time.Second); ; {
		select {
		case got := <-states:
			if got == want {
				return
			}
		case <-timeout:
			t.Fatalf("never came: %v", want)
		}
	}
}

func TestExpire(t *testing.T) {
	p := start(t)
	conn, states := connectAnd(t, p.servers)
	other := connect(t, p.servers)
	session := conn.SessionID()
	_, err := conn.Create("/e", nil, zk.FlagEphemeral, anyone)
	require.NoError(t, err)
	_, _, gone, err := other.ExistsW("/e")
	require.NoError(t, err)
	require.Contains(t, p.look("/sessions"), hex(session))
	require.Equal(t, "/e\n", p.look("/znodes"))
	require.Equal(t, "1\n", p.look("/watches"))
	p.disturb("/sessions/"+strings.TrimSpace(hex(session))+"/expire", "")
	require.NotContains(t, p.look("/sessions"), hex(session))
	require.Equal(t, zk.EventNodeDeleted, (<-gone).Type)
	await(t, states, zk.StateExpired)
	await(t, states, zk.StateHasSession)
}

func TestNetworkFaults(t *testing.T) {
	p := start(t)
	conn, states := connectAnd(t, p.servers)
	p.disturb("/network/cut", "")
	await(t, states, zk.StateDisconnected)
	p.disturb("/network/heal", "")
	await(t, states, zk.StateHasSession)
	p.disturb("/network/reset", "")
	await(t, states, zk.StateDisconnected)
	await(t, states, zk.StateHasSession)
	for path, form := range map[string]string{
		"/network/stall": "direction=both", "/network/freeze": "",
		"/servers/1/freeze": "",
	} {
		p.disturb(path, form)
		answered := make(chan error, 1)
		go func() {
			_, _, err := conn.Exists("/")
			answered <- err
		}()
		select {
		case err := <-answered:
			t.Fatalf("%s: answered: %v", path, err)
		case <-time.After(100 * time.Millisecond):
		}
		p.disturb("/network/heal", "")
		p.disturb("/network/thaw", "")
		p.disturb("/servers/1/thaw", "")
		require.NoError(t, <-answered, path)
	}
	p.disturb("/network/lose-request?op=create", "")
	_, err := conn.Create("/a", nil, 0, anyone)
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	await(t, states, zk.StateDisconnected)
	await(t, states, zk.StateHasSession)
	p.disturb("/network/lose-reply", "op=create")
	_, err = conn.Create("/b", nil, 0, anyone)
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	await(t, states, zk.StateDisconnected)
	await(t, states, zk.StateHasSession)
	require.Equal(t, "/b\n", p.look("/znodes"), "only one had no effect")
	p.disturb("/network/throttle", "op=any")
	p.disturb("/network/spare", "")
	p.disturb("/network/delay", "least=20ms&most=30ms")
	began := time.Now()
	_, _, err = conn.Exists("/b")
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 40*time.Millisecond)
	p.disturb("/network/throttle", "op=exists")
	_, _, err = conn.Exists("/b")
	require.ErrorContains(t, err, "-127")
	p.disturb("/network/hostile", "reply=create-null-path")
	_, err = conn.Create("/c", nil, 0, anyone)
	require.ErrorContains(t, err, "buffer too small")
	require.Equal(t, "/b\n/c\n", p.look("/znodes"), "it has taken effect")
}

func TestServerFaults(t *testing.T) {
	p := start(t, "-servers", "3", "-tick", "200ms", "-max-session", "10s")
	addrs := strings.Split(p.servers, ",")
	require.Len(t, addrs, 3)
	leads := regexp.MustCompile(`(?m)^(\d) (\S+) leader$`).
		FindStringSubmatch(p.look("/servers"))
	require.NotNil(t, leads, p.look("/servers"))
	follower := 1
	if leads[1] == "1" {
		follower = 2
	}
	atLeader, leading := connectAnd(t, leads[2])
	behind, following := connectAnd(t, addrs[follower-1])
	fault := fmt.Sprintf("/servers/%d/", follower)

	p.disturb(fault+"lag", "by=10s")
	_, err := atLeader.Create("/new", nil, 0, anyone)
	require.NoError(t, err)
	found, _, err := behind.Exists("/new")
	require.NoError(t, err)
	require.False(t, found, "it does not know that yet")
	p.disturb(fault+"lag?by=0", "")

	p.disturb(fault+"isolate", "")
	_, err = atLeader.Set("/new", []byte("x"), -1)
	require.NoError(t, err)
	p.disturb(fault+"rejoin", "")
	p.disturb(fault+"stop", "")
	await(t, following, zk.StateDisconnected)
	p.disturb(fault+"start", "")
	await(t, following, zk.StateHasSession)
	p.disturb("/servers/leader/stop", "")
	await(t, leading, zk.StateDisconnected)
	status, text := p.request(http.MethodPost, "/servers/leader/start", "")
	require.Equal(t, http.StatusConflict, status, text)
	p.disturb("/servers/"+leads[1]+"/start", "")
	await(t, leading, zk.StateHasSession)
}

func TestSequence(t *testing.T) {
	p := start(t)
	conn := connect(t, p.servers)
	_, err := conn.Create("/q", nil, 0, anyone)
	require.NoError(t, err)
	p.disturb("/sequence", "path=/q&next=2147483640")
	path, err := conn.Create("/q/n-", nil, zk.FlagSequence, anyone)
	require.NoError(t, err)
	require.Equal(t, "/q/n-2147483640", path)
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	p := start(t)
	for request, want := range map[string]string{
		"POST /sessions/me/expire":        `400 session "me": want an id`,
		"POST /sessions/0x1/expire":       "404 session 0x1: there is none",
		"POST /servers/2/stop":            `404 server "2": want a number from 1 to 1`,
		"POST /servers/0/stop":            `404 server "0": want`,
		"POST /servers/1/burn":            `404 fault "burn"`,
		"POST /servers/1/stop?by=3s":      "400 by: /servers/1/stop takes none",
		"POST /servers/1/lag":             "400 by: /servers/1/lag needs one",
		"POST /servers/1/lag?by=3":        `400 by "3": want a duration`,
		"POST /servers/1/lag?by=-3s":      `400 by "-3s": want a duration`,
		"POST /network/burn":              `404 fault "burn"`,
		"POST /network/stall?direction=x": `400 direction "x": want one of both, to-`,
		"POST /network/throttle":          "400 op: /network/throttle needs one",
		"POST /network/throttle?op=x":     `400 op "x": want one of add-watch, any`,
		"POST /network/hostile?reply=x":   `400 reply "x": want one of children-count,`,
		"POST /network/delay?least=1s":    "400 most: /network/delay needs one",
		"POST /sequence?path=/a&next=1":   "409 zktest: set sequence of /a to 1",
		"POST /sequence?path=/a&next=x":   "400 next: strconv",
		"GET /network/cut":                "405 Method Not Allowed",
		"GET /nothing":                    "404 404 page not found",

		"POST /network/delay?least=2s&most=1s": "400 least 2s: want at most 1s",
	} {
		method, path, _ := strings.Cut(request, " ")
		status, text := p.request(method, path, "")
		require.Contains(t, fmt.Sprintf("%d %s", status, text), want, request)
		require.Equal(t, 1, strings.Count(text, "\n"), request)
	}
	connect(t, p.servers) // nothing of it has done anything
	require.Contains(t, p.look("/"), "lose-reply")
}

// The page of another origin in a browser on the same machine disturbs nothing.
func TestPagesAreRefused(t *testing.T) {
	p := start(t)
	for name, change := range map[string]func(*http.Request){
		"origin": func(r *http.Request) { r.Header.Set("Origin", "https://example.org") },
		"port": func(r *http.Request) {
			r.Header.Set("Origin", "http://127.0.0.1:1")
		},
		"no origin": func(r *http.Request) { r.Header.Set("Origin", "null") },
		"a button": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		},
		"host": func(r *http.Request) { r.Host = "example.org:80" },
	} {
		t.Run(name, func(t *testing.T) {
			answer := p.asks(t, http.MethodPost, "/network/cut", change)
			if name == "host" {
				require.Equal(t, http.StatusMisdirectedRequest, answer.StatusCode)
			} else {
				require.Equal(t, http.StatusForbidden, answer.StatusCode)
			}
		})
	}
	connect(t, p.servers)
}

// asks sends a request as a browser may, and follows no redirect.
func (p *process) asks(
	t *testing.T, method, path string, change func(*http.Request),
) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.admin+path, nil)
	require.NoError(t, err)
	change(req)
	answer, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// asBrowser is what a browser sends with the requests of the page itself.
func asBrowser(p *process) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Accept", "text/html,*/*")
		r.Header.Set("User-Agent", "Mozilla/5.0")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		if r.Method == http.MethodPost {
			r.Header.Set("Origin", p.admin)
		}
	}
}

// A browser gets the page of the locks inside, with buttons that bring it back. Nobody
// else sees the page's session.
func TestThePage(t *testing.T) {
	p := start(t, "-servers", "3")
	client, err := recipes.Connect(t.Context(), p.servers, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	lock, err := recipes.NewInterProcessMutex(client, "/locks/report",
		recipes.WithData([]byte("host-1 (report)")))
	require.NoError(t, err)
	require.NoError(t, lock.Acquire(t.Context()))
	shown := func(path string) string {
		answer := p.asks(t, http.MethodGet, path, asBrowser(p))
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s", body)
		return string(body)
	}
	require.Equal(t, hex(client.SessionID()), p.look("/sessions"))
	require.Eventually(t, func() bool {
		return strings.Contains(shown("/"), "host-1 (report)")
	}, time.Minute, 10*time.Millisecond)
	page := shown("/")
	for _, action := range []string{
		"/network/cut", "/network/stall?direction=both",
		"/sessions/" + strings.TrimSpace(hex(client.SessionID())) + "/expire",
		"/network/heal", "/servers/3/stop", "/servers/1/isolate",
	} {
		require.Contains(t, page, `<form method="post" action="`+action+`"><button>`)
		answer := p.asks(t, http.MethodPost, action, asBrowser(p))
		require.Equal(t, http.StatusSeeOther, answer.StatusCode, action)
		require.Equal(t, "/", answer.Header.Get("Location"))
	}
	require.Contains(t, shown("/lock?path=/locks/report"), "/network/cut")
	require.NotContains(t, page, "/metrics")
	require.NotContains(t, p.look("/sessions"), hex(client.SessionID()))
	require.Empty(t, p.look("/sessions"), "the page's own is not listed")
	require.Contains(t, p.look("/"), "lose-reply", "programs get text")
}

func TestAnyAddressOfLoopback(t *testing.T) {
	p := start(t, "-admin", "127.0.0.2:0")
	status, text := p.request(http.MethodGet, "/sessions", "")
	require.Equal(t, http.StatusOK, status, text)
}

// Java's HttpURLConnection accepts HTML unless it is told not to, and gets text.
func TestJavaIsNoBrowser(t *testing.T) {
	p := start(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.admin, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2")
	r.Header.Set("User-Agent", "Java/17.0.15")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Contains(t, answer.Header.Get("Content-Type"), "text/plain")
	require.Equal(t, "0\n", p.look("/watches"))
}

// Viewers who wait for the page keep no program waiting, nor each other.
func TestViewersWhileZooKeeperIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admin{cluster: zktest.Start(t)}
		t.Cleanup(a.page.close)
		handler := a.handler()
		asks := func(path, agent string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://127.0.0.1"+path, nil)
			r.Header.Set("Accept", "text/html")
			r.Header.Set("User-Agent", agent)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			return answer
		}
		a.cluster.Server(0).Stop()
		began := time.Now()
		var viewers sync.WaitGroup
		for range 3 {
			viewers.Go(func() {
				answer := asks("/", "Mozilla/5.0")
				require.Equal(t, http.StatusServiceUnavailable, answer.Code)
				require.Less(t, time.Since(began), openWithin+time.Second)
			})
		}
		synctest.Wait()
		require.Equal(t, http.StatusOK, asks("/sessions", "test").Code)
		require.Zero(t, time.Since(began))
		viewers.Wait()
		a.cluster.Server(0).Start()
		require.Equal(t, http.StatusOK, asks("/", "Mozilla/5.0").Code)
		require.Empty(t, asks("/sessions", "test").Body.String())
	})
}
