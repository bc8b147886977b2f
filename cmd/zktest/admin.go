package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/web"
	"github.com/zkrecipes/recipes/zktest"
)

// An admin answers the requests that the help lists.
type admin struct {
	cluster *zktest.Cluster
	connect string
	page    page
}

// A refusal is an answer other than 200.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Sprintf(format, args...)}
}

// listen answers until stop is called.
func (a *admin) listen(addr string) (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("-admin: %w", err)
	}
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is closed
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close() // nothing is lost
		<-done
		a.page.close()
	}, nil
}

func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*http.Request) (string, error){
		"GET /connect":   func(*http.Request) (string, error) { return a.connect, nil },
		"GET /sessions":  a.sessions,
		"GET /servers":   a.servers,
		"GET /znodes":    a.znodes,
		"GET /watches":   a.watches,
		"POST /sequence": a.sequence,

		"POST /sessions/{id}/expire":     a.expire,
		"POST /servers/{server}/{fault}": a.server,
		"POST /network/{fault}":          a.network,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			reply(w, r, answer)
		})
	}
	for _, of := range []string{"/lock", "/api/", "/static/"} {
		mux.HandleFunc("GET "+of, a.show)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if isBrowser(r) {
			a.show(w, r)
			return
		}
		_, _ = w.Write([]byte(help())) // who asked has gone if it fails
	})
	return web.Guard(web.Access{Posts: true}, mux)
}

// isBrowser tells whether a person asks. Programs get text, also Java's, which accept
// HTML unless they are told not to.
func isBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") &&
		strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// reply writes what a request has come to. A button brings its browser back.
func reply(
	w http.ResponseWriter, r *http.Request, answer func(*http.Request) (string, error),
) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := answer(r)
	var no refusal
	switch {
	case errors.As(err, &no):
		http.Error(w, no.text, no.status)
		return
	case r.Method == http.MethodPost && isBrowser(r):
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = w.Write([]byte(text)) // who asked has gone if it fails
}

func (a *admin) sessions(*http.Request) (string, error) {
	var b strings.Builder
	for _, id := range a.page.others(a.cluster) {
		fmt.Fprintf(&b, "%#x\n", uint64(id))
	}
	return b.String(), nil
}

func (a *admin) servers(*http.Request) (string, error) {
	var b strings.Builder
	addrs := a.cluster.Addrs()
	for i, s := range a.cluster.Servers() {
		fmt.Fprintf(&b, "%d %s", i+1, addrs[i])
		if s.Leading() {
			b.WriteString(" leader")
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func (a *admin) znodes(*http.Request) (string, error) {
	return strings.Join(a.cluster.Znodes(), "\n"), nil
}

func (a *admin) watches(*http.Request) (string, error) {
	return strconv.Itoa(a.cluster.Watches()), nil
}

func (a *admin) expire(r *http.Request) (string, error) {
	text := r.PathValue("id")
	id, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return "", refuse(http.StatusBadRequest,
			"session %q: want an id, such as 0x18d2f6a1c0b0001", text)
	}
	switch {
	case !slices.Contains(a.cluster.Sessions(), int64(id)):
		return "", refuse(http.StatusNotFound, "session %#x: there is none", id)
	case !a.cluster.ExpireSession(int64(id)):
		return "", refuse(http.StatusConflict, "session %#x: no leader to end it", id)
	}
	return "", nil
}

func (a *admin) server(r *http.Request) (string, error) {
	s, err := a.find(r.PathValue("server"))
	if err != nil {
		return "", err
	}
	faults := map[string]func(){
		"stop": s.Stop, "start": s.Start, "freeze": s.Freeze, "thaw": s.Thaw,
		"isolate": s.Isolate, "rejoin": s.Rejoin,
	}
	fault := r.PathValue("fault")
	if fault == "lag" {
		by, err := durations(r, "by")
		if err == nil {
			s.Lag(by[0])
		}
		return "", err
	}
	do, ok := faults[fault]
	if !ok {
		return "", refuse(http.StatusNotFound, "fault %q: no server has it", fault)
	}
	if err := only(r); err != nil {
		return "", err
	}
	do()
	return "", nil
}

func (a *admin) find(name string) (*zktest.Server, error) {
	if name == "leader" {
		if s := a.cluster.Leader(); s != nil {
			return s, nil
		}
		return nil, refuse(http.StatusConflict, "server leader: there is none just now")
	}
	all := a.cluster.Servers()
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || n > len(all) {
		return nil, refuse(http.StatusNotFound,
			`server %q: want a number from 1 to %d, or "leader"`, name, len(all))
	}
	return all[n-1], nil
}

func (a *admin) sequence(r *http.Request) (string, error) {
	if err := only(r, "path", "next"); err != nil {
		return "", err
	}
	next, err := strconv.ParseInt(r.Form.Get("next"), 0, 32)
	if err != nil {
		return "", refuse(http.StatusBadRequest, "next: %v", err)
	}
	if err := a.cluster.SetSequence(r.Form.Get("path"), int32(next)); err != nil {
		return "", refuse(http.StatusConflict, "%v", err)
	}
	return "", nil
}

// only refuses what a request has besides the given keys, and those that are missing.
func only(r *http.Request, keys ...string) error {
	for key := range r.Form {
		if !slices.Contains(keys, key) {
			return refuse(http.StatusBadRequest, "%s: %s takes none", key, r.URL.Path)
		}
	}
	for _, key := range keys {
		if !r.Form.Has(key) {
			return refuse(http.StatusBadRequest, "%s: %s needs one", key, r.URL.Path)
		}
	}
	return nil
}

// durations reads the only things that a request has.
func durations(r *http.Request, keys ...string) ([]time.Duration, error) {
	if err := only(r, keys...); err != nil {
		return nil, err
	}
	var all []time.Duration
	for _, key := range keys {
		d, err := time.ParseDuration(r.Form.Get(key))
		if err != nil || d < 0 {
			return nil, refuse(http.StatusBadRequest,
				"%s %q: want a duration, such as 500ms", key, r.Form.Get(key))
		}
		all = append(all, d)
	}
	return all, nil
}
