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

// picture draws the last minutes of a lock.
func picture(l survey.Lock, stays []survey.Stay, now time.Time) template.HTML {
	d := drawing{lanes.Chart{
		Title: fmt.Sprintf("who held and who waited for %s in the last %d minutes",
			l.Path, int(pictured.Minutes())),
		From: now.Add(-pictured), To: now, Steps: true,
	}}
	for _, p := range l.Queue {
		d.add(survey.Stay{
			Node: p.Node, Session: p.Session, Data: p.Data, Since: p.Since, Held: p.Held,
			Left: now,
		}, true)
	}
	for _, s := range slices.Backward(stays) {
		d.add(s, false)
	}
	var out strings.Builder
	_ = d.Write(&out)                  // a Builder takes everything
	return template.HTML(out.String()) //nolint:gosec // lanes escapes what it is given
}

// A drawing is a chart that grows from the present backwards.
type drawing struct{ lanes.Chart }

// add draws a stay.
func (d *drawing) add(s survey.Stay, open bool) {
	if !s.Left.After(d.From) {
		return
	}
	label := who(survey.Participant{Row: queues.Row{
		Session: s.Session, Data: s.Data, Node: s.Node,
	}})
	i := d.laneFor(label, s.Left)
	if i < 0 {
		return
	}
	d.Lanes[i].Spans = append(d.Lanes[i].Spans, spansOf(s, open)...)
}

// laneFor returns a lane of somebody that is free until a time: a program that runs again
// has another session. -1: there are enough lanes.
func (d *drawing) laneFor(label string, until time.Time) int {
	for i, lane := range d.Lanes {
		isBusy := slices.ContainsFunc(lane.Spans, func(s lanes.Span) bool {
			return s.From.Before(until)
		})
		if lane.Label == label && !isBusy {
			return i
		}
	}
	if len(d.Lanes) == lanesAtMost {
		return -1
	}
	d.Lanes = append(d.Lanes, lanes.Lane{Label: label})
	return len(d.Lanes) - 1
}

// spansOf are the wait and the hold of a stay.
func spansOf(s survey.Stay, open bool) (all []lanes.Span) {
	until := s.Left
	if !s.Held.IsZero() {
		until = s.Held
	}
	if until.After(s.Since) {
		all = append(all, lanes.Span{
			Kind: lanes.Waits, From: s.Since, To: until, Open: open && s.Held.IsZero(),
			Title: "waits " + duration(until.Sub(s.Since)) + " from " + clock(s.Since),
		})
	}
	if !s.Held.IsZero() {
		all = append(all, lanes.Span{
			Kind: lanes.Holds, From: s.Held, To: s.Left, Open: open,
			Title: "holds " + duration(s.Left.Sub(s.Held)) + " from " + clock(s.Held),
		})
	}
	return all
}
