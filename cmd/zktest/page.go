package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/serve/web"
	"github.com/zkrecipes/recipes/zktest"
)

// A page shows the locks inside, as zklock serve does. Until somebody looks it does
// nothing: a test must not meet a session that is not its own.
type page struct {
	mu   sync.Mutex // guards last
	last *opening   // nil: nobody has looked, or it has failed
}

// An opening is the begin of a survey. All viewers wait for the same one.
type opening struct {
	before []int64       // the sessions that there were
	cancel func()        // ends it, and the survey
	done   chan struct{} // closed once what follows is valid

	handler http.Handler
	err     error
	client  *recipes.Client
	ended   chan struct{} // closed at the end of the survey
}

// show answers with the pages.
func (a *admin) show(w http.ResponseWriter, r *http.Request) {
	handler, err := a.page.open(r.Context(), a)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	handler.ServeHTTP(w, r)
}

const (
	// pageTimeout is the session timeout of the page itself.
	pageTimeout = 10 * time.Second
	// openWithin is how long a viewer waits for it.
	openWithin = 5 * time.Second
)

// open begins to survey, if nobody has looked before.
func (p *page) open(ctx context.Context, a *admin) (http.Handler, error) {
	p.mu.Lock()
	o := p.last
	if o == nil {
		surveying, cancel := context.WithCancel(context.Background())
		o = &opening{
			before: a.cluster.Sessions(), cancel: cancel, done: make(chan struct{}),
		}
		p.last = o
		go p.begin(surveying, a, o)
	}
	p.mu.Unlock()
	select {
	case <-o.done:
		return o.handler, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin surveys until ctx is done. It has a link of its own: what cuts the clients off
// does not blind the page.
func (p *page) begin(ctx context.Context, a *admin, o *opening) {
	defer close(o.done)
	within, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	client, err := recipes.Connect(within, strings.Join(a.cluster.Names(), ","),
		pageTimeout, recipes.WithDialer(a.cluster.Link("page").Dial))
	if err != nil {
		o.cancel()
		o.err = fmt.Errorf("the page has no session, try again: %w", err)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = nil
		return
	}
	site, seen := web.New(web.Config{
		Name: "zktest", Servers: a.connect, Log: slog.New(slog.DiscardHandler),
		Controls: a.controls,
	})
	locks := survey.New(client, survey.Config{
		Roots: []string{"/"}, Rate: 1000, PerLock: 5, Rescan: 10 * time.Minute,
		Old: 10 * time.Minute, Seen: seen,
	})
	o.client, o.handler, o.ended = client, site.Handler(locks, nil), make(chan struct{})
	go func() {
		defer close(o.ended)
		_ = locks.Run(ctx) // it ends with ctx
	}()
}

func (p *page) close() {
	p.mu.Lock()
	o := p.last
	p.mu.Unlock()
	if o == nil {
		return
	}
	o.cancel()
	<-o.done
	if o.client != nil {
		o.client.Close()
		<-o.ended
	}
}

// others are the sessions that are not the page's. They wait for a page that begins only
// if there is a session that may be its own.
func (p *page) others(of *zktest.Cluster) []int64 {
	sessions := of.Sessions()
	p.mu.Lock()
	o := p.last
	p.mu.Unlock()
	if o == nil || !slices.ContainsFunc(sessions, func(id int64) bool {
		return !slices.Contains(o.before, id)
	}) {
		return sessions
	}
	<-o.done
	if o.client == nil {
		return sessions
	}
	own := o.client.SessionID()
	return slices.DeleteFunc(sessions, func(id int64) bool { return id == own })
}

// sessionsShown have a button, at most.
const sessionsShown = 20

// controls are the buttons of the page: faults that the admin surface has.
func (a *admin) controls() []web.Controls {
	all := []web.Controls{{Of: "all clients", Buttons: []web.Button{
		{Label: "cut", Action: "/network/cut"},
		{Label: "stall", Action: "/network/stall?direction=both"},
		{Label: "heal", Action: "/network/heal"},
		{Label: "reset", Action: "/network/reset"},
		{Label: "freeze", Action: "/network/freeze"},
		{Label: "thaw", Action: "/network/thaw"},
	}}}
	servers := a.cluster.Servers()
	for i, s := range servers {
		all = append(all, a.controlsOf(i+1, s, len(servers) > 1))
	}
	sessions := web.Controls{Of: "end a session"}
	for _, id := range a.page.others(a.cluster) {
		if len(sessions.Buttons) < sessionsShown {
			text := fmt.Sprintf("%#x", uint64(id))
			sessions.Buttons = append(sessions.Buttons,
				web.Button{Label: text, Action: "/sessions/" + text + "/expire"})
		}
	}
	return append(all, sessions)
}

func (a *admin) controlsOf(n int, s *zktest.Server, isMember bool) web.Controls {
	of := fmt.Sprintf("server %d", n)
	faults := []string{"stop", "start", "freeze", "thaw"}
	if isMember {
		faults = append(faults, "isolate", "rejoin")
	}
	if isMember && s.Leading() {
		of += ", the leader"
	}
	buttons := make([]web.Button, len(faults))
	for i, fault := range faults {
		buttons[i] = web.Button{
			Label: fault, Action: fmt.Sprintf("/servers/%d/%s", n, fault),
		}
	}
	return web.Controls{Of: of, Buttons: buttons}
}
