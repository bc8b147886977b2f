package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

//go:embed templates
var sources embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"shown": text.Printable, "short": func(s string) string {
		return text.Shorten(text.Printable(s), dataShown)
	},
	"clock": clock, "stamp": func(t time.Time) string { return t.Format(time.RFC3339) },
}).ParseFS(sources, "templates/*.html"))

const (
	// rowsAtMost are shown of a list: more would be read by nobody.
	rowsAtMost = 200
	// dataShown is how much is shown of data, in characters.
	dataShown = 100
	// findingsAtMost are shown of each kind.
	findingsAtMost = 20
)

// A head is what all pages begin with.
type head struct {
	Title    string // of the page, without the number of findings
	Name     string // of the program
	Servers  string
	Roots    []string
	At       time.Time
	Outdated time.Time
	Findings []finding
	Hidden   int // findings that are not shown
	Bad      int // those that are certain
	Query    string
	Walking  bool   // the first walk has not ended
	Events   string // where the page's events come from
	JSON     string
	Metrics  bool
	Controls []Controls
}

// A finding is one as a page shows it.
type finding struct {
	survey.Finding
	Label string
	Link  bool // its path is that of a lock
}

// labels say in a word or two what is wrong.
var labels = map[survey.FindingKind]string{
	survey.Deadlock: "deadlock?", survey.Ownerless: "no owner", survey.Apart: "no order",
	survey.Counter: "counter", survey.Old: "held long", survey.Mixed: "mixed recipes",
	survey.Rights: "wide rights", survey.Unrelated: "unrelated",
	survey.Skipped: "not seen",
}

func (s *Site) head(state survey.State, title string) head {
	h := head{
		Title: title, Name: s.config.Name, Servers: s.config.Servers,
		Roots: s.config.Roots, At: state.At,
		Outdated: state.Outdated, Walking: state.Walked.IsZero(), Events: "/api/events",
		JSON: "/api/locks", Metrics: s.metrics,
	}
	if s.config.Controls != nil {
		h.Controls = s.config.Controls()
	}
	isLock := map[string]bool{}
	for _, l := range state.Locks {
		isLock[l.Path] = true
	}
	of := map[survey.FindingKind]int{}
	for _, f := range state.Findings {
		if f.Certain || f.Kind == survey.Deadlock {
			h.Bad++
		}
		if of[f.Kind]++; of[f.Kind] > findingsAtMost {
			h.Hidden++
			continue
		}
		h.Findings = append(h.Findings, finding{f, labels[f.Kind], isLock[f.Path]})
	}
	return h
}

// All is how many findings there are.
func (h head) All() int { return len(h.Findings) + h.Hidden }

// A listPage is the list of locks.
type listPage struct {
	head
	Rows                           []lockRow
	Locks, InUse, Holders, Waiters int // of all locks
	Matching, More                 int // rows; those that are not shown
	Registrations                  []registrationRow
	Registered                     int // registrations that match, shown or not
}

// A registrationRow is a registration in the list.
type registrationRow struct {
	survey.Registration
	For string // since it was created
}

// A lockRow is a lock in the list.
type lockRow struct {
	survey.Lock
	Bad     bool
	Holder  string // "": nobody
	Others  int    // more holders
	Held    string // for how long
	Waiting int
	Wait    string // the longest
	wait    time.Duration
	held    time.Duration
}

// Link is the page of the lock.
func (r lockRow) Link() string { return linkTo(r.Path) }

func linkTo(path string) string {
	return "/lock?path=" + template.URLQueryEscaper(path)
}

func (s *Site) list(w http.ResponseWriter, r *http.Request) {
	state := s.now()
	page := listPage{head: s.head(state, "Locks"), Locks: len(state.Locks)}
	page.Query = text.Shorten(r.URL.Query().Get("q"), dataShown)
	bad := map[string]bool{}
	for _, f := range state.Findings {
		for _, path := range slices.Concat(f.Others, []string{f.Path}) {
			bad[path] = bad[path] || f.Certain || f.Kind == survey.Deadlock
		}
	}
	for _, l := range state.Locks {
		row := rowOf(l, state.At)
		row.Bad = bad[l.Path]
		holders := len(l.Queue) + l.More - row.Waiting
		if len(l.Queue) > 0 {
			page.InUse++
		}
		page.Holders, page.Waiters = page.Holders+holders, page.Waiters+row.Waiting
		if matches(l, page.Query) && (len(l.Queue) > 0 || page.Query != "") {
			page.Rows = append(page.Rows, row)
		}
	}
	slices.SortStableFunc(page.Rows, func(a, b lockRow) int {
		return cmp.Or(cmp.Compare(b.wait, a.wait), cmp.Compare(b.held, a.held))
	})
	page.Matching = len(page.Rows)
	page.More = max(0, page.Matching-rowsAtMost)
	page.Rows = page.Rows[:page.Matching-page.More]
	page.register(state)
	s.render(w, "list.html", page)
}

// register has the page show the registrations that match its query.
func (p *listPage) register(state survey.State) {
	for _, r := range state.Registrations {
		if !contains(p.Query, r.Path, r.Data, r.Session, r.Address) {
			continue
		}
		if p.Registered++; len(p.Registrations) < rowsAtMost {
			p.Registrations = append(p.Registrations,
				registrationRow{r, ago(r.Since, state.At)})
		}
	}
}

// contains tells whether one of the texts, as it is shown, has the query in it.
func contains(query string, texts ...string) bool {
	query = strings.ToLower(query)
	return slices.ContainsFunc(texts, func(one string) bool {
		return strings.Contains(strings.ToLower(text.Printable(one)), query)
	})
}

// matches tells whether what a lock shows has a text.
func matches(l survey.Lock, query string) bool {
	return contains(query, l.Path, l.Recipe) ||
		slices.ContainsFunc(l.Queue, func(p survey.Participant) bool {
			return contains(query, p.Data, p.Session, p.Address)
		})
}

func rowOf(l survey.Lock, now time.Time) lockRow {
	row := lockRow{Lock: l, Waiting: l.Waiters()}
	if holders := l.Holders(); len(holders) > 0 {
		row.Holder, row.Others = holders[0].Who(), len(holders)-1
		row.held = now.Sub(l.HeldSince())
		row.Held = duration(row.held)
	}
	if since := l.WaitingSince(); !since.IsZero() {
		row.wait = now.Sub(since)
		row.Wait = duration(row.wait)
	}
	return row
}

// duration is a time as people say it.
func duration(d time.Duration) string {
	switch d = max(0, d); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// clock is a time of day; with the date if that is not of late.
func clock(t time.Time) string {
	if time.Since(t).Abs() < 12*time.Hour {
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}

// A lockPage is one lock.
type lockPage struct {
	head
	Lock    survey.Lock
	Known   bool
	Path    string
	Queue   []queueRow
	Left    []leftRow
	Picture template.HTML
}

// A queueRow is a participant in the queue.
type queueRow struct {
	survey.Participant
	Number int
	Who    string
	For    string // since it joined, or held
}

// A leftRow is one who has left.
type leftRow struct {
	survey.Stay
	Waited, Hold string
}

// leftShown are listed of those who have left.
const leftShown = 50

func (s *Site) lock(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	state := s.now()
	state.Findings = findingsAt(state, path)
	lock, stays, known := s.survey.Detail(path)
	escaped := template.URLQueryEscaper(path)
	page := lockPage{head: s.head(state, path), Lock: lock, Known: known, Path: path}
	page.Events, page.JSON = "/api/events?path="+escaped, "/api/locks?path="+escaped
	if !lock.Outdated.IsZero() {
		page.Outdated = lock.Outdated
	}
	for i, p := range lock.Queue {
		since := p.Since
		if p.State == queues.Holds {
			since = p.Held
		}
		page.Queue = append(page.Queue, queueRow{p, i + 1, p.Who(), ago(since, state.At)})
	}
	for _, stay := range slices.Backward(stays) {
		if len(page.Left) == leftShown {
			break
		}
		row := leftRow{Stay: stay, Waited: duration(stay.Left.Sub(stay.Since))}
		if !stay.Held.IsZero() {
			row.Waited = duration(stay.Held.Sub(stay.Since))
			row.Hold = duration(stay.Left.Sub(stay.Held))
		}
		page.Left = append(page.Left, row)
	}
	page.Picture = picture(lock, stays, state.At)
	if !known {
		w.WriteHeader(http.StatusNotFound)
	}
	s.render(w, "lock.html", page)
}

// ago is the time since a time, if that is known.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration(now.Sub(t))
}

// render writes a page at once, or an error.
func (s *Site) render(w http.ResponseWriter, name string, page any) {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, page); err != nil {
		s.config.Log.Error("zklock serve: cannot make a page", "page", name, "error", err)
		http.Error(w, "this page cannot be made; see the log",
			http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // or the viewer has gone
}
