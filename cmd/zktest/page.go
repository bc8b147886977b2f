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
	mu      sync.Mutex // guards what follows
	handler http.Handler
	client  *recipes.Client
	stop    func()
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

// open begins to survey, if nobody has looked before. It has a link of its own: what cuts
// the clients off does not blind the page.
func (p *page) open(ctx context.Context, a *admin) (http.Handler, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handler != nil {
		return p.handler, nil
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	client, err := recipes.Connect(ctx, strings.Join(a.cluster.Names(), ","), pageTimeout,
		recipes.WithDialer(a.cluster.Link("page").Dial))
	if err != nil {
		return nil, fmt.Errorf("the page has no session, try again: %w", err)
	}
	site, seen := web.New(web.Config{
		Name: "zktest", Servers: a.connect, Log: slog.New(slog.DiscardHandler),
		Controls: a.controls,
	})
	locks := survey.New(client, survey.Config{
		Roots: []string{"/"}, Rate: 1000, PerLock: 5, Rescan: 10 * time.Minute,
		Old: 10 * time.Minute, Seen: seen,
	})
	surveying, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = locks.Run(surveying) // it ends with surveying
	}()
	p.client, p.handler = client, site.Handler(locks, nil)
	p.stop = func() {
		end()
		client.Close()
		<-ended
	}
	return p.handler, nil
}

func (p *page) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.stop()
	}
}

// others are the sessions that are not the page's.
func (p *page) others(sessions []int64) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return sessions
	}
	own := p.client.SessionID()
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
	for _, id := range a.page.others(a.cluster.Sessions()) {
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
