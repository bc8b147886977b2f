package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/survey"
)

const (
	// viewersAtMost may follow the events at the same time.
	viewersAtMost = 100
	// behindAtMost is how many events a viewer may be behind before it is dropped.
	behindAtMost = 256
	// writeWithin is how long a viewer may take to receive something.
	writeWithin = 10 * time.Second
	// paceOfState is the least time between two events that say that something changed.
	paceOfState = 250 * time.Millisecond
	// beat is the most: it shows that the connection lives.
	beat = 5 * time.Second
)

// A feed passes events on to those who follow it.
type feed struct {
	mu   sync.Mutex                     // guards what follows
	subs map[chan survey.Event]struct{} // each is closed when its viewer is too slow
}

func newFeed() *feed { return &feed{subs: map[chan survey.Event]struct{}{}} }

// tell never waits.
func (f *feed) tell(e survey.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subs {
		select {
		case sub <- e:
		default:
			delete(f.subs, sub)
			close(sub)
		}
	}
}

func (f *feed) join() (events chan survey.Event, leave func()) {
	events = make(chan survey.Event, behindAtMost)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subs[events] = struct{}{}
	return events, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, events)
	}
}

// A pulse is the data of an event "state": something has changed, or nothing has for some
// seconds.
type pulse struct {
	At       time.Time `json:"at"`
	Version  uint64    `json:"version"` // differs if something has changed
	Outdated time.Time `json:"outdatedSince,omitzero"`
	Findings int       `json:"findings"`
}

// events sends events for as long as the viewer stays.
func (s *Site) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.viewers <- struct{}{}:
		defer func() { <-s.viewers }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d viewers are here already", viewersAtMost),
			http.StatusServiceUnavailable)
		return
	}
	stream := &stream{to: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	events, leave := s.feed.join()
	defer leave()
	path := r.URL.Query().Get("path")
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for told := (time.Time{}); ; {
		changed := s.survey.Next()
		if time.Since(told) >= paceOfState {
			state := s.now()
			told = time.Now()
			stream.send("state", pulse{
				At: state.At, Version: state.Version, Outdated: state.Outdated,
				Findings: len(state.Findings),
			})
		}
		select {
		case e, ok := <-events:
			if !ok {
				return // too slow
			}
			if path == "" || e.Path == path {
				stream.send(string(e.Kind), e)
			}
		case <-changed:
			pause(r, paceOfState-time.Since(told))
		case <-beats.C:
		case <-r.Context().Done():
			return
		}
		if stream.err != nil {
			return
		}
	}
}

// pause waits, or until the viewer has gone.
func pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

// A stream is an answer of events. After an error nothing is sent.
type stream struct {
	to      http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *stream) send(name string, data any) {
	if s.err != nil {
		return
	}
	line, err := json.Marshal(data)
	if err == nil {
		err = s.control.SetWriteDeadline(time.Now().Add(writeWithin))
	}
	if err == nil {
		_, err = fmt.Fprintf(s.to, "event: %s\ndata: %s\n\n", name, line)
	}
	if err == nil {
		err = s.control.Flush()
	}
	s.err = err
}
