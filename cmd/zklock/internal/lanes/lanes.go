// Package lanes draws a timeline in lanes, as SVG: who held what, and what went wrong
// meanwhile. It knows nothing of locks.
package lanes

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// A Chart is a timeline.
type Chart struct {
	Title    string
	From, To time.Duration
	Lanes    []Lane
}

// A Lane is a row of it.
type Lane struct {
	Name string
	Bars []Bar
}

// A Bar is something that lasted. Nothing is drawn of what is outside of the chart.
type Bar struct {
	From, To time.Duration
	Label    string // is shown where there is room, and when one points at the bar
	Kind     Kind
}

// A Kind is what a bar looks like.
type Kind int

// The kinds.
const (
	Hold  Kind = iota
	Lost       // a hold that ended by a loss
	Fault      // something that goes wrong
	Mark       // what one is to look at
)

// Colours that colour-blind people can tell apart (Okabe and Ito).
var colours = map[Kind]string{
	Hold: "#0072b2", Lost: "#e69f00", Fault: "#999999", Mark: "#d55e00",
}

const (
	width, left  = 1200, 180
	height       = 22 // of a lane
	top          = 40
	ticks        = 10
	letterWidth  = 7
	barsMost     = 20_000
	labelMost    = 200 // letters
	leastVisible = 1.5
)

// WriteSVG draws it. Names and labels may be anybody's.
func (c Chart) WriteSVG(to io.Writer) error {
	var b strings.Builder
	total := top + height*(len(c.Lanes)+1)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" `+
		`viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width, total)
	fmt.Fprintf(&b, "<title>%s</title>\n", text(c.Title))
	c.axis(&b, total)
	drawn := 0
	for i, lane := range c.Lanes {
		y := top + height*i
		fmt.Fprintf(&b, `<text x="4" y="%d">%s</text>`+"\n", y+15, text(lane.Name))
		for _, bar := range lane.Bars {
			if drawn++; drawn <= barsMost {
				c.bar(&b, bar, y)
			}
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(to, b.String())
	return err
}

// axis draws the time.
func (c Chart) axis(b *strings.Builder, total int) {
	for i := range ticks + 1 {
		at := c.From + (c.To-c.From)*time.Duration(i)/ticks
		x := c.x(at)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+
			`<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%.1f s</text>`+"\n",
			x, top-6, x, total-height, x, top-12, at.Seconds())
	}
}

func (c Chart) bar(b *strings.Builder, bar Bar, y int) {
	from, to := max(bar.From, c.From), min(bar.To, c.To)
	if from > to {
		return
	}
	x, wide := c.x(from), max(c.x(to)-c.x(from), leastVisible)
	label := text(bar.Label)
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s">`+
		`<title>%s, %.3f s to %.3f s</title></rect>`, x, y+2, wide, height-4,
		colours[bar.Kind], label, bar.From.Seconds(), bar.To.Seconds())
	if float64(letterWidth*len([]rune(bar.Label))) < wide {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="#fff" pointer-events="none">`+
			`%s</text>`, x+3, y+15, label)
	}
	b.WriteString("\n")
}

func (c Chart) x(at time.Duration) float64 {
	share := float64(at-c.From) / float64(max(c.To-c.From, 1))
	return left + share*(width-left-20)
}

// text is what may stand in XML: short, and without characters that it does not have.
func text(of string) string {
	letters := []rune(strings.ToValidUTF8(of, "?"))
	if len(letters) > labelMost {
		letters = append(letters[:labelMost], '…')
	}
	for i, r := range letters {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			letters[i] = '?'
		}
	}
	return html.EscapeString(string(letters))
}
