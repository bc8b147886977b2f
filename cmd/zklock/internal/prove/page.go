package prove

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/lanes"
	"github.com/zkrecipes/recipes/internal/simulator"
)

// pageOf is one page, which loads nothing from anywhere.
var pageOf = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<title>zklock prove: {{.Verdict}}</title>
<style>
body { font-family: sans-serif; margin: 2em }
pre { overflow-x: auto }
.lanes { overflow: visible }
.lanes text { font-size: 12px }
.lanes text.tick { fill: #555; text-anchor: middle }
.lanes line.tick { stroke: #ddd }
.lanes .track { fill: #f4f4f4 }
.holds { fill: #0072b2 } .lost { fill: #e69f00 } .fault { fill: #999 }
</style></head>
<body><h1>zklock prove: {{.Verdict}}</h1>
<pre>{{.Text}}</pre>
<h2>{{.Caption}}</h2>
{{.Picture}}
{{range .Findings}}{{if .Excerpt}}<h2>{{call $.Plain .What}}</h2>
<pre>{{range .Excerpt}}{{call $.Plain .}}
{{end}}</pre>{{end}}{{end}}
</body></html>
`))

// WritePage writes the report with a timeline: of the round in which something was found,
// else of the last one.
func (r *Report) WritePage(to io.Writer) error {
	var picture strings.Builder
	if err := r.shown.chart().Write(&picture); err != nil {
		return err
	}
	return pageOf.Execute(to, map[string]any{
		"Verdict": r.Verdict, "Text": r.Text(), "Findings": r.Findings,
		"Plain": r.plain,
		"Caption": fmt.Sprintf("Round %d: holds by lock (orange: ended by a loss), and "+
			"faults by worker", r.shown.head.Number),
		"Picture": template.HTML(picture.String()), //nolint:gosec // lanes escapes
	})
}

// when is a time of the round's clock, which begins at 0, as the chart has it.
func when(at time.Duration) time.Time { return time.Time{}.Add(at) }

// chart has a lane for each lock, and one for each worker.
func (r round) chart() lanes.Chart {
	d := &drawing{
		locks: map[string]*lanes.Lane{}, workers: map[int]*lanes.Lane{},
		open: map[simulator.ID]simulator.Event{}, faults: map[faultKey]time.Duration{},
	}
	for _, e := range r.history {
		d.take(e)
		d.end = max(d.end, e.At)
	}
	d.closeAll()
	c := lanes.Chart{
		Title: fmt.Sprintf("round %d", r.head.Number), From: when(0), To: when(d.end),
	}
	for _, path := range slices.Sorted(maps.Keys(d.locks)) {
		c.Lanes = append(c.Lanes, *d.locks[path])
	}
	for _, n := range slices.Sorted(maps.Keys(d.workers)) {
		c.Lanes = append(c.Lanes, *d.workers[n])
	}
	return c
}

// A drawing is a chart under way.
type drawing struct {
	locks   map[string]*lanes.Lane
	workers map[int]*lanes.Lane
	open    map[simulator.ID]simulator.Event // holds
	faults  map[faultKey]time.Duration       // since when they are
	end     time.Duration
}

type faultKey struct {
	worker int
	kind   simulator.Kind // that it began with
}

// begins are the kinds with which a fault begins, by those with which it ends.
var begins = map[simulator.Kind]simulator.Kind{
	simulator.Mended: simulator.Cut, simulator.Resumed: simulator.Paused,
}

func (d *drawing) take(e simulator.Event) {
	switch e.Kind {
	case simulator.Granted:
		d.open[e.ID] = e
	case simulator.Lost, simulator.Releasing:
		d.hold(e.ID, e.At, e.Kind == simulator.Lost)
	case simulator.Cut, simulator.Paused:
		d.faults[faultKey{e.Worker, e.Kind}] = e.At
	case simulator.Mended, simulator.Resumed:
		d.fault(faultKey{e.Worker, begins[e.Kind]}, e.At)
	}
}

// hold draws a hold that has ended.
func (d *drawing) hold(id simulator.ID, at time.Duration, lost bool) {
	e, held := d.open[id]
	if !held {
		return
	}
	delete(d.open, id)
	lane := laneOf(d.locks, e.Path, path.Base(e.Path))
	span := lanes.Span{
		Kind: lanes.Holds, From: when(e.At), To: when(at),
		Title: fmt.Sprintf("worker %d, owner %d, token %d", id.Worker, id.Owner, e.Token),
	}
	if lost {
		span.Kind = lanes.Lost
	}
	lane.Spans = append(lane.Spans, span)
}

// laneOf returns the lane of a key, with that label if it is a new one.
func laneOf[K comparable](all map[K]*lanes.Lane, key K, label string) *lanes.Lane {
	if all[key] == nil {
		all[key] = &lanes.Lane{Label: label}
	}
	return all[key]
}

// fault draws one that is over.
func (d *drawing) fault(key faultKey, at time.Duration) {
	since, is := d.faults[key]
	if !is {
		return
	}
	delete(d.faults, key)
	lane := laneOf(d.workers, key.worker, fmt.Sprintf("worker %d", key.worker))
	label := map[simulator.Kind]string{
		simulator.Cut: "cut off", simulator.Paused: "suspended, or killed",
	}[key.kind]
	lane.Spans = append(lane.Spans, lanes.Span{
		Kind: lanes.Fault, From: when(since), To: when(at), Title: label,
	})
}

// closeAll draws what has no end.
func (d *drawing) closeAll() {
	for id := range d.open {
		d.hold(id, d.end, false)
	}
	for key := range d.faults {
		d.fault(key, d.end)
	}
}
