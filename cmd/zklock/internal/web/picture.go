package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/lanes"
	"github.com/zkrecipes/recipes/cmd/zklock/internal/queues"
	"github.com/zkrecipes/recipes/cmd/zklock/internal/survey"
)

const (
	// pictured is how much time a picture shows.
	pictured = 10 * time.Minute
	// lanesAtMost are drawn: first those who are in the queue, then the last who left.
	lanesAtMost = 24
)

// picture draws the last minutes of a lock, with a lane for each session and data.
func picture(l survey.Lock, stays []survey.Stay, now time.Time) template.HTML {
	chart := lanes.Chart{
		Title: fmt.Sprintf("who held and who waited for %s in the last %d minutes", l.Path,
			int(pictured.Minutes())),
		From: now.Add(-pictured), To: now,
	}
	at := map[string]int{} // the lane of somebody
	add := func(s survey.Stay, open bool) {
		key := s.Session + " " + s.Data
		i, known := at[key]
		if !known {
			if len(chart.Lanes) == lanesAtMost || !s.Left.After(chart.From) {
				return
			}
			i = len(chart.Lanes)
			at[key] = i
			label := who(survey.Participant{Row: queues.Row{
				Session: s.Session, Data: s.Data, Node: s.Node,
			}})
			chart.Lanes = append(chart.Lanes, lanes.Lane{Label: label})
		}
		chart.Lanes[i].Spans = append(chart.Lanes[i].Spans, spansOf(s, open)...)
	}
	for _, p := range l.Queue {
		add(survey.Stay{
			Node: p.Node, Session: p.Session, Data: p.Data, Since: p.Since, Held: p.Held,
			Left: now,
		}, true)
	}
	for _, s := range slices.Backward(stays) {
		add(s, false)
	}
	var out strings.Builder
	_ = chart.Write(&out)              // a Builder takes everything
	return template.HTML(out.String()) //nolint:gosec // lanes escapes what it is given
}

// spansOf are the wait and the hold of a stay.
func spansOf(s survey.Stay, open bool) (all []lanes.Span) {
	until := s.Left
	if !s.Held.IsZero() {
		until = s.Held
	}
	if until.After(s.Since) {
		all = append(all, lanes.Span{
			From: s.Since, To: until, Open: open && s.Held.IsZero(),
			Title: "waits " + duration(until.Sub(s.Since)) + " from " + clock(s.Since),
		})
	}
	if !s.Held.IsZero() {
		all = append(all, lanes.Span{
			From: s.Held, To: s.Left, Holds: true, Open: open,
			Title: "holds " + duration(s.Left.Sub(s.Held)) + " from " + clock(s.Held),
		})
	}
	return all
}
