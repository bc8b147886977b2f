// Package lanes draws who waited and who held over time, as an SVG picture for a page: a
// lane for each participant, in which it waits (faint) and holds (full), and a step where
// a hold is handed over; or a lane for each lock, and what went wrong meanwhile. What it
// draws has classes and no styles, so that a page can have a strict
// Content-Security-Policy and its own colours.
//
// A picture is as wide as its place. All texts may be anybody's: they are escaped, and
// what cannot be seen in them is made visible.
package lanes

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/text"
)

// A Chart is what is drawn.
type Chart struct {
	Title    string // for those who do not see it
	From, To time.Time
	Lanes    []Lane // from top to bottom
	Steps    bool   // from each hold to the one that succeeded it, in another lane
}

// A Lane is what one participant did, or what happened to one thing.
type Lane struct {
	Label string
	Spans []Span
}

// A Span is something that lasted.
type Span struct {
	Kind     Kind
	From, To time.Time
	Open     bool   // it has not ended
	Title    string // shown when somebody points at it
}

// A Kind is what a Span is. It is its class in the picture.
type Kind string

// The kinds.
const (
	Waits Kind = "waits"
	Holds Kind = "holds"
	Lost  Kind = "lost"  // a hold that ended by a loss
	Fault Kind = "fault" // something that goes wrong
)

// Sizes, in pixels.
const (
	laneHeight = 34 // of a lane, with its label above the bar
	labelBase  = 13
	barTop     = 18
	barHeight  = 12
	axisHeight = 22
)

// stepWithin is how long after one hold another one may begin as its successor.
const stepWithin = 2 * time.Second

// Write draws the chart.
func (c Chart) Write(to io.Writer) error {
	var out strings.Builder
	height := len(c.Lanes)*laneHeight + axisHeight
	fmt.Fprintf(&out, `<svg class="lanes" role="img" xmlns="http://www.w3.org/2000/svg" `+
		`width="100%%" height="%d"><title>%s</title>`, height, escape(c.Title))
	c.axis(&out, height)
	for i, lane := range c.Lanes {
		c.lane(&out, i*laneHeight, lane)
	}
	if c.Steps {
		c.steps(&out)
	}
	out.WriteString("</svg>\n")
	_, err := io.WriteString(to, out.String())
	return err
}

// escape makes a text one of XML, in which everything can be seen.
func escape(s string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text.Printable(s))) // a Builder takes everything
	return out.String()
}

// x is where a time is, in percent of the width.
func (c Chart) x(at time.Time) float64 {
	whole := max(c.To.Sub(c.From), 1)
	return min(100, max(0, 100*float64(at.Sub(c.From))/float64(whole)))
}

// ticks are the distances of the lines of the axis: the first is taken that has few
// lines.
var ticks = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute,
	10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
}

func (c Chart) axis(out *strings.Builder, height int) {
	const most = 6
	whole := c.To.Sub(c.From)
	at := slices.IndexFunc(ticks, func(d time.Duration) bool { return whole/d <= most })
	if at < 0 {
		return
	}
	layout := "15:04"
	if ticks[at] < time.Minute {
		layout = time.TimeOnly
	}
	step := ticks[at]
	for t := c.From.Truncate(step).Add(step); t.Before(c.To); t = t.Add(step) {
		x := c.x(t)
		fmt.Fprintf(out, `<line class="tick" x1="%.2f%%" x2="%.2f%%" y1="0" y2="%d"/>`,
			x, x, height-axisHeight)
		if x > 4 && x < 96 { // else it would be cut
			fmt.Fprintf(out, `<text class="tick" x="%.2f%%" y="%d">%s</text>`, x,
				height-6, t.Local().Format(layout))
		}
	}
}

func (c Chart) lane(out *strings.Builder, top int, lane Lane) {
	fmt.Fprintf(out, `<text class="label" x="0" y="%d">%s</text>`, top+labelBase,
		escape(lane.Label))
	fmt.Fprintf(out, `<rect class="track" x="0" y="%d" width="100%%" height="%d"/>`,
		top+barTop, barHeight)
	for _, s := range lane.Spans {
		if !s.To.After(c.From) {
			continue
		}
		class := string(s.Kind)
		if s.Open {
			class += " open"
		}
		from := c.x(s.From)
		const least = 0.15 // or nobody would see it
		fmt.Fprintf(out, `<rect class="%s" x="%.2f%%" y="%d" width="%.2f%%" height="%d">`+
			`<title>%s</title></rect>`, class, from, top+barTop,
			max(least, c.x(s.To)-from), barHeight, escape(s.Title))
	}
}

// steps draws a line from each hold to the one that succeeded it.
func (c Chart) steps(out *strings.Builder) {
	for i, lane := range c.Lanes {
		for _, s := range lane.Spans {
			if from := c.predecessor(i, s); from >= 0 && s.From.After(c.From) {
				a, b := min(from, i), max(from, i)
				fmt.Fprintf(out, `<line class="step" x1="%.2f%%" x2="%.2f%%" y1="%d" `+
					`y2="%d"/>`, c.x(s.From), c.x(s.From), a*laneHeight+barTop+barHeight,
					b*laneHeight+barTop)
			}
		}
	}
}

// predecessor is the lane of the hold that ended right before another one began, in
// another lane; -1: none.
func (c Chart) predecessor(self int, next Span) int {
	best, found := time.Time{}, -1
	for i, lane := range c.Lanes {
		for _, s := range lane.Spans {
			late := next.From.Sub(s.To)
			areHolds := next.Kind == Holds && s.Kind == Holds
			if areHolds && !s.Open && i != self && late <= stepWithin &&
				late >= -stepWithin && s.To.After(best) {
				best, found = s.To, i
			}
		}
	}
	return found
}
