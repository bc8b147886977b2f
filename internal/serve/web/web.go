package web

import (
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

//go:embed static
var static embed.FS

// A Config says what is shown, and to whom.
type Config struct {
	Access  Access
	Name    string   // of the program that shows them
	Servers string   // of ZooKeeper, as the pages name them
	Roots   []string // what is surveyed, likewise
	Log     *slog.Logger
	// Controls returns the buttons of each page. Somebody else answers them. nil: the
	// pages have none.
	Controls func() []Controls
}

// Controls are buttons that belong together.
type Controls struct {
	Of      string // what they change
	Buttons []Button
}

// A Button is one that is posted to a path.
type Button struct{ Label, Action string }

// A Site serves the pages of a survey.
type Site struct {
	config  Config
	survey  *survey.Survey
	feed    *feed
	viewers chan struct{} // of the events: one for each
	metrics bool

	mu    sync.Mutex // guards what follows
	state survey.State
	asked time.Time // when state was
}

// stateFor is for how long a state is shown again before another one is asked for.
const stateFor = 250 * time.Millisecond

// New returns the site of a survey, and what that is to call with each event.
func New(config Config) (s *Site, seen func(survey.Event)) {
	s = &Site{
		config: config, feed: newFeed(), viewers: make(chan struct{}, viewersAtMost),
	}
	return s, s.feed.tell
}

// Handler returns what answers requests about a survey. metrics answers those for
// /metrics; nil: there are none.
func (s *Site) Handler(of *survey.Survey, metrics http.Handler) http.Handler {
	s.survey, s.metrics = of, metrics != nil
	files, _ := fs.Sub(static, "static") // it is there
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.list)
	mux.HandleFunc("GET /lock", s.lock)
	mux.HandleFunc("GET /api/locks", s.api)
	mux.HandleFunc("GET /api/events", s.events)
	if s.metrics {
		mux.Handle("GET /metrics", metrics)
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(files)))
	return newGate(s.config.Access, mux)
}

// now is what is known, a moment ago at most: many may look at the same time.
func (s *Site) now() survey.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) > stateFor {
		s.state, s.asked = s.survey.State(), time.Now()
	}
	return s.state
}

// A detail is the JSON of one lock.
type detail struct {
	At       time.Time        `json:"at"`
	Lock     survey.Lock      `json:"lock"`
	Left     []survey.Stay    `json:"left"` // the oldest first
	Findings []survey.Finding `json:"findings"`
}

// api answers with JSON, in which all characters can be seen.
func (s *Site) api(w http.ResponseWriter, r *http.Request) {
	state := s.now()
	var answer any = state
	if path := r.URL.Query().Get("path"); path != "" {
		lock, stays, ok := s.survey.Detail(path)
		if !ok {
			http.Error(w, "no such lock is known", http.StatusNotFound)
			return
		}
		answer = detail{
			At: state.At, Lock: lock, Left: stays, Findings: findingsAt(state, path),
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err := text.WriteJSON(w, answer); err != nil {
		s.config.Log.Debug("zklock serve: a viewer has gone", "error", err)
	}
}

func findingsAt(state survey.State, path string) []survey.Finding {
	all := []survey.Finding{}
	for _, f := range state.Findings {
		if f.Concerns(path) {
			all = append(all, f)
		}
	}
	return all
}
