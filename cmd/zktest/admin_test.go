package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
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

// A page in a browser on the same machine disturbs nothing.
func TestPagesAreRefused(t *testing.T) {
	p := start(t)
	for name, change := range map[string]func(*http.Request){
		"origin": func(r *http.Request) { r.Header.Set("Origin", "https://example.org") },
		"host":   func(r *http.Request) { r.Host = "example.org:80" },
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(
				t.Context(), http.MethodPost, p.admin+"/network/cut", nil,
			)
			require.NoError(t, err)
			change(req)
			answer, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusForbidden, answer.StatusCode)
		})
	}
	connect(t, p.servers)
}
